"""Readers of memories that other memory systems export as JSON or keep in SQLite: mem0, Hindsight, Letta, LangGraph."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from newton.errors import InputError
from newton.runtime.transfer.exports.export_files import read_entries
from newton.runtime.transfer.exports.export_lines import (
    ExportLine,
    JsonObject,
    build_fact_line,
    build_message_line,
    derive_ref,
    extract_text,
    find_time,
    is_object,
    list_objects,
    list_strings,
    read_change_time,
)

FILES = ("*.json",)
MEM0_KEYS, HINDSIGHT_KEYS, LANGGRAPH_KEYS = ("results", "memories"), ("items", "results"), ("items",)
_TEXT_KEYS = ("memory", "text", "content", "data", "value")
_USER_BLOCKS = ("human", "user")  # labels of Letta's blocks about the user


def matches_mem0(entry: JsonObject) -> bool:
    """Return whether an entry is a memory of mem0, as its client lists them."""
    return "memory" in entry and "id" in entry


def matches_hindsight(entry: JsonObject) -> bool:
    """Return whether an entry is a memory of Hindsight, as its API lists a bank."""
    return "text" in entry and ("fact_type" in entry or "type" in entry)


def matches_langgraph(entry: JsonObject) -> bool:
    """Return whether an entry is an item of a LangGraph store."""
    return "namespace" in entry and "key" in entry


def matches_letta(entry: JsonObject) -> bool:
    """Return whether an entry is an agent file of Letta."""
    return "agents" in entry and "blocks" in entry


def read_mem0(path: Path, passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield a fact to import for each memory in an export of mem0, with its user as subject and categories as tags.

    The relations of its graph follow.
    """
    changed = read_change_time(path)
    for place, entry in read_entries(path, *FILES, keys=MEM0_KEYS):
        yield place, entry if isinstance(entry, InputError) else _read_mem0_memory(entry, changed)
    for place, entry in read_entries(path, *FILES, keys=("relations",)):
        if not isinstance(entry, InputError) and "relationship" in entry:
            names = {name: str(entry.get(name)) for name in ("source", "target")}
            yield place, {"type": "relation", "relation_type": str(entry["relationship"]).replace("_", " "), **names}


def _read_mem0_memory(entry: JsonObject, changed: str | None) -> JsonObject | InputError:
    metadata = entry.get("metadata")
    fields = {**(metadata if is_object(metadata) else {}), **{name: one for name, one in entry.items() if one}}
    categories, user = fields.get("categories"), fields.get("user_id")
    text = extract_text(entry.get("memory"))
    at = find_time(entry.get("created_at"), entry.get("updated_at")) or changed
    if not text:
        return InputError("it has no text under 'memory'.", hint="Leave it out.")
    return build_fact_line(
        ref=f"mem0:{entry['id']}" if entry.get("id") else derive_ref("mem0", text),
        content=text,
        at=at,
        subject=str(user) if user else None,
        tags=list_strings([categories] if isinstance(categories, str) else categories),
    )


def read_hindsight(path: Path, passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield a fact to import for each memory in a bank of Hindsight, exported as JSON."""
    changed = read_change_time(path)
    for place, entry in read_entries(path, *FILES, keys=HINDSIGHT_KEYS):
        if isinstance(entry, InputError):
            yield place, entry
            continue
        at = find_time(entry.get("occurred_start"), entry.get("mentioned_at"), entry.get("date")) or changed
        yield place, to_fact(extract_text(entry.get("text")), ref=f"hindsight:{entry.get('id')}", at=at)


def read_langgraph(path: Path, passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield a fact to import for each item of a LangGraph store, exported as JSON."""
    changed = read_change_time(path)
    for place, entry in read_entries(path, *FILES, keys=LANGGRAPH_KEYS):
        if isinstance(entry, InputError):
            yield place, entry
            continue
        namespace = ".".join(list_strings(entry.get("namespace")))
        at = find_time(entry.get("updated_at"), entry.get("created_at")) or changed
        yield place, to_fact(entry.get("value"), ref=f"langgraph:{namespace}:{entry.get('key')}", at=at)


def read_letta(path: Path, passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield what to import from an agent file of Letta: the messages, and the lines about the user as facts."""
    for file, value in read_entries(path, "*.af"):
        if isinstance(value, InputError):
            yield file, value
            continue
        at = None
        for agent in list_objects(value.get("agents")):
            session = f"letta:{agent.get('name') or agent.get('id')}"
            for number, message in enumerate(list_objects(agent.get("messages")), start=1):
                at = find_time(message.get("created_at")) or at
                for line in _read_letta_message(message, session, at or read_change_time(path), passed_over):
                    yield f"{file}, message {number}", line
        at = at or find_time(value.get("created_at")) or read_change_time(path)
        for block in list_objects(value.get("blocks")):
            for line in _read_block(block, at, passed_over):
                yield f"{file}, block {block.get('label')}", line


def to_fact(value: JsonValue, *, ref: str, at: str | None) -> JsonObject | InputError:
    """Return a fact to import with the text of a stored memory, or with its fields as "name: value".

    Return an error if it has neither.
    """
    if not is_object(value):
        content = extract_text(value)
    else:
        content = next((text for key in _TEXT_KEYS if (text := extract_text(value.get(key)))), "") or _join_fields(
            value
        )
    if not content:
        return InputError("it has no text.", hint="Leave it out.")
    return build_fact_line(ref=ref, content=content, at=at)


def _join_fields(value: JsonObject) -> str:
    simple = {key: one for key, one in value.items() if isinstance(one, str | int | float) and one != ""}
    return "; ".join(f"{key}: {one}" for key, one in simple.items())


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


MAGIC = b"SQLite format 3\0"
_HINT = "Close the program that uses the file, and check the path."
MAX_ROW_BYTES = 64 * 1024 * 1024

LLM_TABLE, LANGGRAPH_TABLE = "responses", "store"
_LLM_QUERY = """
    select id, conversation_id, prompt, response, datetime_utc from responses order by datetime_utc, id
"""
_LANGGRAPH_QUERY = "select prefix, key, value, created_at, updated_at from store order by created_at, prefix, key"


def list_tables(path: Path) -> set[str]:
    """Return the names of the tables in the SQLite database at `path`."""
    return {str(name) for (name,) in _query(path, "select name from sqlite_master where type = 'table'")}


def read_llm_log(path: Path, passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield the prompts and replies in a log (an SQLite database) of the program `llm` as messages to import."""
    _require_plain_table(path, LLM_TABLE)
    for ref, conversation, prompt, response, time in _query(path, _LLM_QUERY):
        session, at = f"llm:{conversation or ref}", find_time(time) or read_change_time(path)
        for role, text in (("user", prompt), ("assistant", response)):
            if not (isinstance(text, str) and text.strip()):
                passed_over["messages without text"] += 1
                continue
            line = build_message_line(session=session, ref=f"{ref}:{role}", role=role, content=text.strip(), at=at)
            yield f"response {ref}", line


def read_langgraph_store(path: Path, passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield a fact to import, about its namespace, for each item in the SQLite store of LangGraph at `path`."""
    _require_plain_table(path, LANGGRAPH_TABLE)
    for prefix, key, value, created_at, updated_at in _query(path, _LANGGRAPH_QUERY):
        place = f"item {prefix}/{key}"
        try:
            content = json.loads(value if isinstance(value, bytes) else str(value))
        except (ValueError, RecursionError) as error:
            yield place, InputError(f"its value is not JSON: {error}.", hint="Correct it, or leave it out.")
            continue
        at = find_time(updated_at, created_at) or read_change_time(path)
        yield place, to_fact(content, ref=f"langgraph:{prefix}:{key}", at=at)


def _require_plain_table(path: Path, table: str) -> None:
    """Raise InputError for a table with computed columns, whose expressions can take any memory and time."""
    columns = _query(path, f"select name from pragma_table_xinfo('{table}') where hidden")  # noqa: S608 - a constant
    if names := [name for (name,) in columns]:
        hint = "Import a file that the program itself has written."
        raise InputError(f"The table {table!r} has computed columns: {', '.join(map(str, names))[:200]}.", hint=hint)


def _query(path: Path, query: str) -> Iterator[tuple[Any, ...]]:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
            connection.execute("pragma trusted_schema = off")  # its functions do not run for a view or a default
            yield from connection.execute(query)
    except sqlite3.Error as error:
        raise InputError(f"{path} cannot be read: {error}.", hint=_HINT) from None
