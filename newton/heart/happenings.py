"""What an event says in one line, by its type; and what it must be to be kept. Pure."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from newton.errors import InputError
from newton.memory.hygiene import redacted
from newton.memory.representations import one_line

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]
Payload = Mapping[str, Json]

MOST_BYTES, DEEPEST = 65_536, 10
TOLD_CHARACTERS = 400
STACK_LINES = 3
_TYPE = re.compile(r"[a-z][a-z0-9_.-]{0,59}")

# Fields that hold words from outside. An event with one of them is a tool's word, not the agent's.
OUTPUTS = frozenset({"stdout", "stderr", "content", "output", "stack", "body", "text", "response", "result"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened: a file read or written, a command run, an error, or what the caller names."""

    type: str
    at: datetime
    payload: Payload


def checked(type: str, at: datetime, payload: Payload) -> Event:
    """The event without its secrets. Raises InputError for a type or a payload that cannot be kept."""
    if not _TYPE.fullmatch(type):
        raise InputError(f"{type[:80]!r} is no type of event.", hint="Use small letters, digits, '_', '-' and '.'.")
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise InputError("The payload is not plain JSON.", hint="Send finite numbers and no cycles.") from None
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise InputError(f"The payload is larger than {MOST_BYTES:,} bytes.", hint="Send the part that matters.")
    return Event(type=type, at=at, payload=cast("Payload", _clean(payload, depth=0)))


def told(event: Event) -> str:
    """The event in one line of at most some 400 characters. A payload of another shape than usual is told as JSON."""
    said = _FORMATS.get(event.type, lambda payload: None)(event.payload)
    if said is None:
        said = f"{event.type} {json.dumps(event.payload, ensure_ascii=False, sort_keys=True, separators=(',', ':'))}"
    return f"[{event.at.isoformat(timespec='seconds')}] {_cut(said)}"


def carries_output(event: Event) -> bool:
    """Whether it holds words that came from outside."""
    return any(name in OUTPUTS and value not in (None, "", [], {}) for name, value in event.payload.items())


def entity_line(name: str, type: str, properties: Payload) -> str:
    """
    >>> entity_line("Ana Berg", "person", {"role": "nurse"})
    'Ana Berg (person): role nurse'
    """
    told_of = ", ".join(f"{key} {_plain(value)}" for key, value in sorted(properties.items()))
    return _cut(f"{name} ({type})" + (f": {told_of}" if told_of else ""))


def relation_line(source: str, type: str, target: str) -> str:
    """
    >>> relation_line("Ana", "lives_in", "Oslo")
    'Ana lives in Oslo'
    """
    return _cut(f"{source} {type.replace('_', ' ')} {target}")


def _read(payload: Payload) -> str | None:
    path, lines = payload.get("path"), payload.get("lines")
    return _told(f"read {path}", f"lines {lines}" if lines is not None else "") if isinstance(path, str) else None


def _written(payload: Payload) -> str | None:
    path, outcome = payload.get("path"), payload.get("outcome")
    return _told(f"wrote {path}", _plain(outcome) if outcome else "") if isinstance(path, str) else None


def _run(payload: Payload) -> str | None:
    command = payload.get("command")
    if not isinstance(command, str):
        return None
    code = payload.get("exit_code", payload.get("outcome"))
    output = payload.get("stdout") or payload.get("stderr") or ""
    return _told(f"ran {command}", f"exit {code}" if code is not None else "", _plain(output))


def _failed(payload: Payload) -> str | None:
    message, stack = payload.get("message"), payload.get("stack")
    if not isinstance(message, str):
        return None
    first = " | ".join(stack.splitlines()[:STACK_LINES]) if isinstance(stack, str) else ""
    return _told(f"error: {message}", first)


_FORMATS: Mapping[str, Callable[[Payload], str | None]] = {
    "file_read": _read,
    "file_write": _written,
    "shell_exec": _run,
    "error": _failed,
}


def _told(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= TOLD_CHARACTERS else line[:TOLD_CHARACTERS].rsplit(" ", 1)[0][:TOLD_CHARACTERS] + " …"


def _clean(value: Json, *, depth: int) -> Json:
    if depth > DEEPEST:
        raise InputError(f"The payload is nested deeper than {DEEPEST}.", hint="Flatten it.")
    match value:
        case str():
            return redacted(value.replace("\0", "").encode("utf-8", "replace").decode())
        case Mapping():
            return {str(_clean(key, depth=depth)): _clean(item, depth=depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [_clean(item, depth=depth + 1) for item in value]
        case _:
            return value
