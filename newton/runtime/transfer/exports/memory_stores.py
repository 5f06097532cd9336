"""Readers of memories that other memory systems export as JSON: mem0, Hindsight, Letta and LangGraph.

Their memories were written by a model, so they become facts with the trust of an agent, below the user's own words.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from newton.runtime.transfer.exports.archive_files import read_json_files
from newton.runtime.transfer.exports.export_lines import (
    JsonObject,
    build_fact_line,
    build_message_line,
    extract_text,
    find_time,
    is_object,
    list_objects,
    list_strings,
)

_TEXT_KEYS = ("memory", "text", "content", "data", "value")
_USER_BLOCKS = ("human", "user")  # labels of Letta's blocks about the user


def matches_mem0(value: JsonValue) -> bool:
    """Return whether a JSON value is a list of memories of mem0, as its client lists them."""
    entries = _list_entries(value, "results", "memories")
    return bool(entries) and all("memory" in one and "id" in one for one in entries[:5])


def matches_hindsight(value: JsonValue) -> bool:
    """Return whether a JSON value is a list of memories of Hindsight, as its API lists a bank."""
    entries = _list_entries(value, "items", "results")
    return bool(entries) and all("text" in one and ("fact_type" in one or "type" in one) for one in entries[:5])


def matches_langgraph(value: JsonValue) -> bool:
    """Return whether a JSON value is a list of items of a LangGraph store."""
    entries = _list_entries(value, "items")
    return bool(entries) and all("namespace" in one and "key" in one for one in entries[:5])


def matches_letta(value: JsonValue) -> bool:
    """Return whether a JSON value is an agent file of Letta."""
    return is_object(value) and "agents" in value and "blocks" in value


def read_mem0(path: Path, passed_over: Counter[str]) -> Iterator[JsonObject]:
    """Yield the import lines of the memories in an export of mem0."""
    for entry in _read_entries(path, passed_over, "results", "memories"):
        at = find_time(entry.get("created_at"), entry.get("updated_at"))
        yield from _keep(to_fact(dict(entry), ref=f"mem0:{entry.get('id')}", at=at), passed_over)


def read_hindsight(path: Path, passed_over: Counter[str]) -> Iterator[JsonObject]:
    """Yield the import lines of the memories in a bank of Hindsight."""
    for entry in _read_entries(path, passed_over, "items", "results"):
        at = find_time(entry.get("occurred_start"), entry.get("mentioned_at"), entry.get("date"))
        yield from _keep(to_fact(dict(entry), ref=f"hindsight:{entry.get('id')}", at=at), passed_over)


def read_langgraph(path: Path, passed_over: Counter[str]) -> Iterator[JsonObject]:
    """Yield the import lines of the items of a LangGraph store, exported as JSON."""
    for entry in _read_entries(path, passed_over, "items"):
        namespace = ".".join(list_strings(entry.get("namespace")))
        at = find_time(entry.get("updated_at"), entry.get("created_at"))
        ref = f"langgraph:{namespace}:{entry.get('key')}"
        yield from _keep(to_fact(entry.get("value"), ref=ref, at=at), passed_over)


def read_letta(path: Path, passed_over: Counter[str]) -> Iterator[JsonObject]:
    """Yield the import lines of an agent file: the messages, and a fact for each line of the block about the user."""
    passed_over.clear()
    for value in read_json_files(path, "*.af").values():
        if not is_object(value):
            continue
        at = None
        for agent in list_objects(value.get("agents")):
            session = f"letta:{agent.get('name') or agent.get('id')}"
            for message in list_objects(agent.get("messages")):
                at = find_time(message.get("created_at")) or at
                yield from _read_letta_message(message, session, at, passed_over)
        at = at or find_time(value.get("created_at"))
        for block in list_objects(value.get("blocks")):
            yield from _read_block(block, at, passed_over)


def to_fact(value: JsonValue, *, ref: str, at: str | None) -> JsonObject | None:
    """Return the import line of a stored memory: its text, or its fields as "name: value". None if it has neither."""
    if not is_object(value):
        content = extract_text(value)
    else:
        content = next((text for key in _TEXT_KEYS if (text := extract_text(value.get(key)))), "") or _join_fields(
            value
        )
    return build_fact_line(ref=ref, content=content, at=at) if content else None


def _join_fields(value: JsonObject) -> str:
    simple = {key: one for key, one in value.items() if isinstance(one, str | int | float) and one != ""}
    return "; ".join(f"{key}: {one}" for key, one in simple.items())


def _keep(line: JsonObject | None, passed_over: Counter[str]) -> Iterator[JsonObject]:
    if line:
        yield line
    else:
        passed_over["memories without text"] += 1


def _read_entries(path: Path, passed_over: Counter[str], *keys: str) -> Iterator[JsonObject]:
    passed_over.clear()
    for value in read_json_files(path, "*.json").values():
        yield from _list_entries(value, *keys)


def _list_entries(value: JsonValue, *keys: str) -> list[JsonObject]:
    """Return the entries of a list, or of the first of these keys that an object has."""
    if isinstance(value, list):
        return list_objects(value)
    if is_object(value):
        return next((list_objects(value[key]) for key in keys if isinstance(value.get(key), list)), list[JsonObject]())
    return []


def _read_letta_message(
    message: JsonObject, session: str, at: str | None, passed_over: Counter[str]
) -> Iterator[JsonObject]:
    role = str(message.get("role"))
    text = _unpack_letta_text(extract_text(message.get("content"))) or _read_sent_text(message)
    if role not in ("user", "assistant"):
        passed_over[f"messages of the {role}"] += 1
    elif not text:
        passed_over["empty messages"] += 1
    else:
        yield build_message_line(session=session, ref=f"{session}:{message.get('id')}", role=role, content=text, at=at)


def _unpack_letta_text(text: str) -> str:
    """Return the message inside a text that Letta wrapped as JSON, such as `{"type": "user_message", ...}`.

    Notices of Letta itself, such as a login, are empty.
    """
    if not text.startswith("{"):
        return text
    try:
        wrapped: JsonValue = json.loads(text)
    except ValueError:
        return text
    if not (is_object(wrapped) and "type" in wrapped):
        return text
    return extract_text(wrapped.get("message")) if wrapped["type"] == "user_message" else ""


def _read_sent_text(message: JsonObject) -> str:
    """Return what an assistant said by a call of `send_message`."""
    for call in list_objects(message.get("tool_calls")):
        function = call.get("function")
        if is_object(function) and function.get("name") == "send_message":
            try:
                arguments: JsonValue = json.loads(str(function.get("arguments")))
            except ValueError:
                return ""
            return extract_text(arguments.get("message")) if is_object(arguments) else ""
    return ""


def _read_block(block: JsonObject, at: str | None, passed_over: Counter[str]) -> Iterator[JsonObject]:
    label = str(block.get("label"))
    if label not in _USER_BLOCKS:
        passed_over[f"block {label}"] += 1
        return
    lines = [line.strip() for line in extract_text(block.get("value")).splitlines() if line.strip()]
    for number, line in enumerate(lines, start=1):
        if not line.endswith(("?", ":")):  # a form that is not filled in
            yield build_fact_line(ref=f"letta:{block.get('id')}:{number}", content=line, at=at, subject="user")
