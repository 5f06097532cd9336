"""Validation of events, and their rendering as one line in the format of each type. Pure."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from newton.errors import InputError
from newton.memory.hygiene import remove_prompt_marks
from newton.memory.memory import Outcome
from newton.memory.redaction.redactor import redact_secrets
from newton.memory.representations import ELLIPSIS, one_line

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]
Payload = Mapping[str, Json]

MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH = 65_536, 10
MAX_LINE_CHARACTERS = 400  # of the whole line, including the time
MAX_HEAD_CHARACTERS = 200  # of a path, a command or a message, to leave room for the result
MAX_OUTCOME_CHARACTERS = 80
MAX_OUTPUT_CHARACTERS = 360  # before the time, with the output in whole lines
MAX_DETAIL_CHARACTERS = 4_000  # of the text that is searched and that `expand` shows
STACK_HEAD_LINES, STACK_TAIL_LINES = 2, 2  # the call that failed is in the first or in the last lines
MIN_LINE_CHARACTERS = 20  # of a line that is cut
GAP = "…"
MAX_EXIT_CODE = 2**32

# Fields with output of tools. An event with one of them, and an error with a message, has trust `tool`, not `agent`.
OUTPUT_FIELDS = frozenset({"stdout", "stderr", "content", "output", "stack", "body", "text", "response", "result"})

_TYPE = re.compile(r"[a-z][a-z0-9_.-]{0,59}")
_LINE_RANGE = re.compile(r"\d{1,9}(?: ?[-–:,] ?\d{1,9}){0,9}")
# Words joined by a mark, or by a capital in the middle; and the places where they are joined.
_IDENTIFIER = re.compile(r"[^\W_]+(?:[./\\_:#$-]+[^\W_]+)+|[A-Za-z]*[a-z][A-Z][A-Za-z]*")
_WORD_PART = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")  # terminal escape sequences


@dataclass(frozen=True, slots=True, kw_only=True)
class EventData:
    """A validated event: a file read or written, a command run, an error, or a type that the caller defines."""

    type: str
    occurred_at: datetime
    payload: Payload


def validate_event(type: str, occurred_at: datetime, payload: Payload) -> EventData:
    """Return the event with its payload as plain JSON without secrets.

    Raises InputError for an invalid type or payload.
    """
    if not _TYPE.fullmatch(type):
        hint = "Begin with a lower-case letter; up to 59 lower-case letters, digits, '_', '-' and '.' may follow."
        raise InputError(f"Invalid event type {type[:80]!r}.", hint=hint)
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False, default=_to_plain)
        plain = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        hint = "Send strings, finite numbers, lists and objects, without cycles."
        raise InputError("The payload is not valid JSON.", hint=hint) from None
    if len(text.encode("utf-8", "replace")) > MAX_PAYLOAD_BYTES:
        raise InputError(f"The payload is larger than {MAX_PAYLOAD_BYTES:,} bytes.", hint="Send a smaller payload.")
    if not isinstance(plain, dict):
        raise InputError("The payload is not a JSON object.", hint='Name each value: {"path": "a.py"}.')
    cleaned = _clean(cast("Payload", plain), depth=1)
    return EventData(type=type, occurred_at=occurred_at, payload=cast("Payload", cleaned))


def render_line(event: EventData, *, with_time: bool = True) -> str:
    """Return the event as one line of at most 400 characters. A payload of an unknown form is rendered as JSON."""
    prefix = f"[{event.occurred_at.isoformat(timespec='seconds')}] " if with_time else ""
    return prefix + _truncate(render_text(event), MAX_LINE_CHARACTERS - len(prefix))


def render_text(event: EventData) -> str:
    """Return the text of the event without its time. The length is not limited."""
    render = _RENDERERS.get(event.type)
    return (render(event.payload) if render else None) or f"{event.type} {_to_json(event.payload)}"


def render_details(event: EventData) -> str:
    """Return what the event did, and below it its output or stack with line breaks, at most 4,000 characters.

    Of a longer output, the first and the last lines are kept.
    """
    outputs = [event.payload.get(name) for name in ("stdout", "stderr", "stack", "content")]
    texts = [text.strip() for text in outputs if isinstance(text, str) and text.strip()]
    known = event.type in _RENDERERS
    head = one_line(_CONTROLS.sub("", render_text(event)))
    if not (known and texts):
        return cut_lines(head, MAX_DETAIL_CHARACTERS)
    body = cut_lines(_CONTROLS.sub("", "\n".join(texts)), MAX_DETAIL_CHARACTERS - MAX_LINE_CHARACTERS - 1)
    return f"{_truncate(head, MAX_LINE_CHARACTERS)}\n{body}"


def cut_lines(text: str, max_chars: int) -> str:
    """Return the text, or its first and last lines if it is longer than `max_chars`. A long line is cut.

    >>> cut_lines("one\\ntwo\\nthree\\nfour\\nfive", 16).splitlines()
    ['one', '…', 'five']
    """
    if len(text) <= max_chars:
        return text
    half = (max_chars - len(GAP) - 2) // 2
    head, tail = text[:half], text[-half:]
    head = head[: head.rfind("\n")] if "\n" in head else head
    tail = tail[tail.find("\n") + 1 :] if "\n" in tail else tail
    return f"{head}\n{GAP}\n{tail}"


def split_identifiers(text: str) -> str:
    """Return the words within the paths and identifiers of a text, so that a part of a name finds the whole.

    >>> split_identifiers("src/orders/views.py: NoneType, fine")
    'src orders views py None Type'
    """
    found = dict.fromkeys(match[0] for match in _IDENTIFIER.finditer(text[:MAX_DETAIL_CHARACTERS]))
    return " ".join(_WORD_PART.sub(" ", name).strip() for name in found)


def find_outcome(event: EventData) -> Outcome | None:
    """Return whether the action of the event failed or succeeded; None if the event does not say it."""
    if event.type == "error":
        return "failure"
    match event.payload.get("exit_code"), event.payload.get("outcome"):
        case bool(), _:
            return None
        case int(code), _:
            return "failure" if code else "success"
        case _, "failed" | "interrupted" | "error":
            return "failure"
        case _, "succeeded" | "ok":
            return "success"
        case _:
            return None


def has_output(event: EventData) -> bool:
    """Return whether the payload contains text of a tool: one in OUTPUT_FIELDS at any depth, or an error's message."""
    if event.type == "error" and isinstance(message := event.payload.get("message"), str) and message.strip():
        return True
    return _has_output(event.payload, is_output=False)


def _has_output(value: Json, *, is_output: bool) -> bool:
    match value:
        case str():
            return is_output and bool(value.strip())
        case Mapping():
            fields = ((item, is_output or name.casefold() in OUTPUT_FIELDS) for name, item in value.items())
            named = is_output and any(map(str.strip, value))
            return named or any(_has_output(item, is_output=output) for item, output in fields)
        case Sequence():
            return any(_has_output(item, is_output=is_output) for item in value)
        case _:
            return False


def render_entity_line(name: str, type: str, properties: Payload) -> str:
    """Return an entity with its type and properties as one line.

    >>> render_entity_line("Ana Berg", "person", {"role": "nurse"})
    'Ana Berg (person): role nurse'
    """
    texts = {key: value if isinstance(value, str) else _to_json(value) for key, value in properties.items()}
    details = ", ".join(f"{key} {text}" for key, text in sorted(texts.items()))
    return _truncate(f"{name} ({type})" + (f": {details}" if details else ""), MAX_LINE_CHARACTERS)


def render_relation_line(source: str, type: str, target: str) -> str:
    """Return a relation between two entities as one line.

    >>> render_relation_line("Ana", "lives_in", "Oslo")
    'Ana lives in Oslo'
    """
    return _truncate(f"{source} {type.replace('_', ' ')} {target}", MAX_LINE_CHARACTERS)


def _render_file_read(payload: Payload) -> str | None:
    span = _format_line_range(payload.get("lines"))
    match _read_texts(payload, "path"):
        case [path] if path and span is not None:
            return _join_parts(f"read {path}", f"lines {span}" if span else "")
        case _:
            return None


def _render_file_write(payload: Payload) -> str | None:
    match _read_texts(payload, "path", "outcome"):
        case [path, outcome] if path:
            return _join_parts(f"wrote {path}", _truncate(outcome, MAX_OUTCOME_CHARACTERS))
        case _:
            return None


def _render_shell_exec(payload: Payload) -> str | None:
    code = payload.get("exit_code")
    if code is not None and (not isinstance(code, int) or isinstance(code, bool) or abs(code) > MAX_EXIT_CODE):
        return None
    match _read_texts(payload, "command", "outcome", "stdout", "stderr"):
        case [command, outcome, stdout, stderr] if command:
            result = _truncate(outcome, MAX_OUTCOME_CHARACTERS) if code is None else f"exit {code:d}"
            head = _join_parts(f"ran {command}", result)
            return _join_parts(head, _fit_lines(stdout or stderr, MAX_OUTPUT_CHARACTERS - len(head)))
        case _:
            return None


def _render_error(payload: Payload) -> str | None:
    match _read_texts(payload, "message", "stack"):
        case [message, stack] if message:
            return _join_parts(f"error: {message}", " | ".join(_select_stack_lines(stack)))
        case _:
            return None


_RENDERERS: Mapping[str, Callable[[Payload], str | None]] = {
    "file_read": _render_file_read,
    "file_write": _render_file_write,
    "shell_exec": _render_shell_exec,
    "error": _render_error,
}


def _read_texts(payload: Payload, head: str, *others: str) -> list[str] | None:
    """Return the named fields, "" for a missing one; None if a field is not a text. A long first field is cut."""
    values = ["" if (value := payload.get(name)) is None else value for name in (head, *others)]
    texts = [value.strip() for value in values if isinstance(value, str)]
    return [_truncate(texts[0], MAX_HEAD_CHARACTERS), *texts[1:]] if len(texts) == len(values) else None


def _format_line_range(lines: Json) -> str | None:
    """Return the line range as text; "" without a range, which means all lines; None if the range is invalid."""
    match lines:
        case None:
            return ""
        case str() if _LINE_RANGE.fullmatch(lines):
            return lines
        case bool():
            return None
        case int() if 0 <= lines < 10**9:
            return str(lines)
        case [int(first), int(last)] if 0 <= first <= last < 10**9:
            return f"{first:d}-{last:d}"
        case _:
            return None


def _select_stack_lines(stack: str) -> list[str]:
    """Return the first and the last lines of a stack that are not empty, with an ellipsis for those between."""
    lines = [line.strip() for line in stack.splitlines() if line.strip()]
    if len(lines) <= STACK_HEAD_LINES + STACK_TAIL_LINES:
        return lines
    return [*lines[:STACK_HEAD_LINES], GAP, *lines[-STACK_TAIL_LINES:]]


def _fit_lines(text: str, max_chars: int) -> str:
    """Return the lines of an output joined by spaces: of a long one the first line and as many of the last as fit.

    The last lines of an output say how it ended. A single line that does not fit is cut at a word.
    """
    lines = [line for line in map(one_line, _CONTROLS.sub("", text).splitlines()) if line]
    if len(whole := " ".join(lines)) <= max_chars:
        return whole
    head = _truncate(lines[0], max_chars if len(lines) == 1 else max_chars // 3)
    free, tail = max_chars - len(head) - len(GAP) - 2, list[str]()
    for line in reversed(lines[1:]):
        if len(line) + 1 > free and tail:
            break
        tail.insert(0, _truncate(line, max(free, MIN_LINE_CHARACTERS)))
        free -= len(tail[0]) + 1
    gap = [GAP] if len(tail) < len(lines) - 1 else []
    return " ".join([head, *gap, *tail])[:max_chars]


def _join_parts(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _to_json(value: Json) -> str:
    """Return compact JSON with sorted keys.

    If a value cannot be encoded, return the sorted keys of a mapping, or "?".
    """
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=_to_plain)
    except (TypeError, ValueError, RecursionError):
        return ", ".join(sorted(map(str, value))) if isinstance(value, Mapping) else "?"


def _to_plain(value: object) -> object:
    """Convert a mapping or sequence that `json` cannot encode to a dict or list. Raises TypeError for another value."""
    match value:
        case Mapping():
            return dict(cast("Payload", value))
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return list(cast("Sequence[Json]", value))
        case _:
            raise TypeError(value)


def _truncate(text: str, max_chars: int) -> str:
    """Return the text as one line of at most `max_chars`, cut at a space if there is one in its second half."""
    line = one_line(remove_prompt_marks(_CONTROLS.sub("", text)))
    if len(line) <= max_chars:
        return line
    head = line[: max_chars - len(ELLIPSIS)]
    space = head.rfind(" ")
    return (head[:space] if space >= max_chars // 2 else head).rstrip(" ,;:·|-") + ELLIPSIS


def _clean(value: Json, *, depth: int) -> Json:
    if isinstance(value, str):
        return _clean_text(value)
    if not isinstance(value, Mapping | Sequence):
        return value
    if depth > MAX_PAYLOAD_DEPTH:
        raise InputError(
            f"The payload is nested deeper than {MAX_PAYLOAD_DEPTH} levels.",
            hint="Use fewer levels of lists and objects.",
        )
    if isinstance(value, Mapping):
        return {_clean_text(key): _clean(item, depth=depth + 1) for key, item in value.items()}
    return [_clean(item, depth=depth + 1) for item in value]


def _clean_text(text: str) -> str:
    if "\0" in text:
        raise InputError("The payload contains a NUL byte.", hint="Remove the NUL byte: PostgreSQL cannot store it.")
    return redact_secrets(text.encode("utf-8", "replace").decode())
