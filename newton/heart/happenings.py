"""What an event says in one line, by its type; and what it must be to be kept. Pure."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from newton.errors import InputError
from newton.memory.hygiene import redacted
from newton.memory.representations import ELLIPSIS, one_line

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]
Payload = Mapping[str, Json]

MOST_BYTES, DEEPEST = 65_536, 10
TOLD_CHARACTERS = 400  # of all that is told, the time included
HEAD_CHARACTERS = 200  # of a path, a command or a message, so that what came of it is told too
OUTCOME_CHARACTERS = 80
OUTPUT_CHARACTERS = 360  # of all that is told before the time, with the output in whole lines
STACK_LINES = 3
MOST_CODE = 2**32

# Fields that hold words from outside. An event with one of them is a tool's word, not the agent's.
OUTPUTS = frozenset({"stdout", "stderr", "content", "output", "stack", "body", "text", "response", "result"})

_TYPE = re.compile(r"[a-z][a-z0-9_.-]{0,59}")
_SPAN = re.compile(r"\d{1,9}(?: ?[-–:,] ?\d{1,9}){0,9}")
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")  # colours and the like


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened: a file read or written, a command run, an error, or what the caller names."""

    type: str
    at: datetime
    payload: Payload


def checked(type: str, at: datetime, payload: Payload) -> Event:
    """The event as plain JSON without its secrets. Raises InputError for a type or a payload that cannot be kept."""
    if not _TYPE.fullmatch(type):
        raise InputError(
            f"{type[:80]!r} is no type of event.",
            hint="Begin with a small letter; up to 59 small letters, digits, '_', '-' and '.' follow.",
        )
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False, default=_plain)
        plain = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise InputError(
            "The payload is not plain JSON.", hint="Send texts, finite numbers, lists and objects, without cycles."
        ) from None
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise InputError(f"The payload is larger than {MOST_BYTES:,} bytes.", hint="Send the part that matters.")
    if not isinstance(plain, dict):
        raise InputError("The payload is no object.", hint='Give each value a name: {"path": "a.py"}.')
    return Event(type=type, at=at, payload=cast("Payload", _clean(cast("Payload", plain), depth=1)))


def told(event: Event) -> str:
    """The event in one line of at most 400 characters. A payload of another shape than usual is told as JSON."""
    tell = _FORMATS.get(event.type)
    said = (tell(event.payload) if tell else None) or f"{event.type} {_json(event.payload)}"
    at = f"[{event.at.isoformat(timespec='seconds')}] "
    return at + _cut(said, TOLD_CHARACTERS - len(at))


def carries_output(event: Event) -> bool:
    """Whether it holds words that came from outside: in a field of OUTPUTS, at any depth, names of fields included."""
    left: list[tuple[Json, bool]] = [(event.payload, False)]
    while left:
        value, outside = left.pop()
        match value:
            case str():
                if outside and value.strip():
                    return True
            case Mapping():
                if outside and any(map(str.strip, value)):
                    return True
                left += [(item, outside or name.casefold() in OUTPUTS) for name, item in value.items()]
            case Sequence():
                left += [(item, outside) for item in value]
            case _:
                pass
    return False


def entity_line(name: str, type: str, properties: Payload) -> str:
    """
    >>> entity_line("Ana Berg", "person", {"role": "nurse"})
    'Ana Berg (person): role nurse'
    """
    told_of = ", ".join(f"{key} {_said(value)}" for key, value in sorted(properties.items()))
    return _cut(f"{name} ({type})" + (f": {told_of}" if told_of else ""), TOLD_CHARACTERS)


def relation_line(source: str, type: str, target: str) -> str:
    """
    >>> relation_line("Ana", "lives_in", "Oslo")
    'Ana lives in Oslo'
    """
    return _cut(f"{source} {type.replace('_', ' ')} {target}", TOLD_CHARACTERS)


def _read(payload: Payload) -> str | None:
    span = _span(payload.get("lines"))
    match _texts(payload, "path"):
        case [path] if path and span is not None:
            return _joined(f"read {path}", f"lines {span}" if span else "")
        case _:
            return None


def _written(payload: Payload) -> str | None:
    match _texts(payload, "path", "outcome"):
        case [path, outcome] if path:
            return _joined(f"wrote {path}", _cut(outcome, OUTCOME_CHARACTERS))
        case _:
            return None


def _run(payload: Payload) -> str | None:
    code = payload.get("exit_code")
    if code is not None and (not isinstance(code, int) or isinstance(code, bool) or abs(code) > MOST_CODE):
        return None
    match _texts(payload, "command", "outcome", "stdout", "stderr"):
        case [command, outcome, stdout, stderr] if command:
            ended = _cut(outcome, OUTCOME_CHARACTERS) if code is None else f"exit {code:d}"
            head = _joined(f"ran {command}", ended)
            return _joined(head, _whole_lines(stdout or stderr, OUTPUT_CHARACTERS - len(head)))
        case _:
            return None


def _failed(payload: Payload) -> str | None:
    match _texts(payload, "message", "stack"):
        case [message, stack] if message:
            return _joined(f"error: {message}", " | ".join(filter(str.strip, stack.splitlines()[:STACK_LINES])))
        case _:
            return None


_FORMATS: Mapping[str, Callable[[Payload], str | None]] = {
    "file_read": _read,
    "file_write": _written,
    "shell_exec": _run,
    "error": _failed,
}


def _texts(payload: Payload, head: str, *others: str) -> list[str] | None:
    """The fields as texts, empty where there is none; the first is cut. None when one is no text."""
    values = [payload.get(name) for name in (head, *others)]
    texts = [value.strip() for value in values if isinstance(value, str)]
    if len(texts) + values.count(None) < len(values):
        return None
    first, *rest = [value.strip() if isinstance(value, str) else "" for value in values]
    return [_cut(first, HEAD_CHARACTERS), *rest]


def _span(lines: Json) -> str | None:
    """Which lines, as a text or as numbers; "" for all, None when it says something else."""
    match lines:
        case None:
            return ""
        case str() if _SPAN.fullmatch(lines):
            return lines
        case bool():
            return None
        case int() if 0 <= lines < 10**9:
            return str(lines)
        case [int(first), int(last)] if 0 <= first <= last < 10**9:
            return f"{first:d}-{last:d}"
        case _:
            return None


def _whole_lines(text: str, room: int) -> str:
    """As many of the first lines as there is room for, one after the other; of a line that is too long its words."""
    lines = [line for line in map(one_line, text.splitlines()) if line]
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return " ".join(kept) + ELLIPSIS if kept else _cut(line, room + len(line) + 1)
        kept.append(line)
    return " ".join(kept)


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _said(value: Json) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Json) -> str:
    """Compact, keys sorted. What cannot be written so is told by its names alone."""
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError, RecursionError):
        return ", ".join(sorted(map(str, value))) if isinstance(value, Mapping) else "?"


def _plain(value: object) -> object:
    """A mapping or a sequence that is not the one that `json` knows, as that one."""
    match value:
        case Mapping():
            return dict(cast("Payload", value))
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return list(cast("Sequence[Json]", value))
        case _:
            raise TypeError(value)


def _cut(text: str, most: int) -> str:
    """In one line of at most so many characters, ended at a word if one ends in its second half."""
    line = one_line(_CONTROLS.sub("", text))
    if len(line) <= most:
        return line
    head = line[: most - len(ELLIPSIS)]
    space = head.rfind(" ")
    return (head[:space] if space >= most // 2 else head).rstrip(" ,;:·|-") + ELLIPSIS


def _clean(value: Json, *, depth: int) -> Json:
    if isinstance(value, str):
        return _clean_text(value)
    if not isinstance(value, Mapping | Sequence):
        return value
    if depth > DEEPEST:
        raise InputError(f"The payload is nested deeper than {DEEPEST}.", hint="Flatten it.")
    if isinstance(value, Mapping):
        return {_clean_text(key): _clean(item, depth=depth + 1) for key, item in value.items()}
    return [_clean(item, depth=depth + 1) for item in value]


def _clean_text(text: str) -> str:
    if "\0" in text:
        raise InputError("The payload holds a NUL byte.", hint="Remove it: PostgreSQL cannot keep one in a text.")
    return redacted(text.encode("utf-8", "replace").decode())
