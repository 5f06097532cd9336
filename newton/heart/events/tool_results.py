"""Conversion of a finished tool call of an agent to an event: a file read or written, a command, an error. Pure.

Programs name their tools and fields as they like, so the event follows from the fields that most of them have.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple, cast

from newton.heart.events.event_types import (
    MAX_EXIT_CODE,
    EventData,
    Json,
    Payload,
    cut_lines,
    validate_event,
)
from newton.memory.redaction.redactor import redact_secrets

MAX_ARGUMENT_CHARACTERS = 300  # of one argument of a tool of another type
MAX_COMMAND_CHARACTERS = 2_000
MAX_ARGUMENTS = 20
MAX_OUTPUT_CHARACTERS = 4_000  # kept of one output, as its first and its last lines
MAX_PARSED_CHARACTERS = 1_000_000  # of an output that may be JSON

COMMAND_FIELDS = ("command", "cmd", "script", "commands")
PATH_FIELDS = ("path", "file_path", "filePath", "filename", "file", "target_file", "notebook_path", "absolute_path")
WRITTEN_FIELDS = frozenset(
    [
        *("content", "contents", "new_string", "new_str", "new_text", "text"),
        *("diff", "patch", "edits", "code_edit", "insert"),
    ]
)
OUTPUT_KEYS = ("stdout", "output", "content", "result", "text")

_SHELL = re.compile(
    r"(?:^|[_.-])(?:bash|sh|shell|terminal|exec|execute|command|cmd|powershell|console)(?:$|[_.-])", re.IGNORECASE
)
_READ = re.compile(r"read|view|open|cat|show|get_file|load", re.IGNORECASE)
_WRITE = re.compile(r"write|edit|create|patch|replace|insert|update|append|save", re.IGNORECASE)
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")
_EXIT_CODE = re.compile(
    r"(?:exit(?:ed)?|return(?:ed)?|status)(?: with)?(?: (?:code|status|value))?[ :=]+\(?(-?\d{1,9})\b"
    r"|\[exit (-?\d{1,9})\]",
    re.IGNORECASE,
)
_ERROR_LINE = re.compile(
    r"^\W{0,3}(?:(?:[\w.]{0,60}(?:Error|Exception|Failure)|error|fatal|panic|failed)\b(?:\[\w+\])?\W"
    r"|Traceback \(most recent call last\))",
    re.IGNORECASE,
)
_EDGE_LINES, MAX_EDGE_CHARACTERS = 3, 80  # lines of an output in which its exit code is looked for


class ToolOutcome(NamedTuple):
    """A finished tool call: the tool, its arguments as JSON, and its output. The caller reports `is_error`."""

    tool: str
    arguments: str
    output: str
    is_error: bool = False


def to_event(call: ToolOutcome, *, occurred_at: datetime) -> EventData:
    """Return the event for a finished tool call. Secrets are redacted before anything is cut."""
    type, payload = _to_payload(call)
    return validate_event(type, occurred_at, payload)


def _to_payload(call: ToolOutcome) -> tuple[str, Payload]:
    """Return the type and the payload of the event; the first type whose signs the call has."""
    arguments, output, fields = _parse_arguments(call.arguments), call.output, _parse_object(call.output)
    command, path = _find_command(call.tool, arguments), _find_path(arguments)
    text = _find_output(fields) if fields else output
    if command:
        return "shell_exec", _to_shell_payload(command, text, fields, is_error=call.is_error)
    if call.is_error or _says_error(fields, output):
        lines = (_find_error(fields) or text).strip().splitlines() or ["no error message"]
        message = f"{call.tool} {path or ''}".strip() + f": {lines[0]}"
        return "error", {"message": cut_output(message), "stack": cut_output("\n".join(lines[1:]))}
    if path and (WRITTEN_FIELDS & arguments.keys() or _WRITE.search(call.tool)):
        return "file_write", {"path": path, "outcome": cut_output(text)}
    if path and _READ.search(call.tool):
        return "file_read", {"path": path, **_find_lines(arguments), "content": cut_output(text)}
    shortened = {name: _shorten(value) for name, value in list(arguments.items())[:MAX_ARGUMENTS]}
    return "tool_call", {"tool": call.tool, "input": shortened, "output": cut_output(text)}


def _to_shell_payload(command: str, text: str, fields: Payload, *, is_error: bool) -> Payload:
    codes = (fields.get(name) for name in ("exit_code", "exitCode", "returncode", "return_code", "code", "status"))
    code = next((one for one in codes if isinstance(one, int) and not isinstance(one, bool)), None)
    if code is None and (stated := _find_exit_code(text)):
        code, text = int(stated[1] or stated[2]), text.replace(stated.string, "", 1).strip()
    stderr = fields.get("stderr")
    errors = {"stderr": cut_output(stderr)} if isinstance(stderr, str) and stderr.strip() else {}
    result: Payload = {} if code is None or abs(code) > MAX_EXIT_CODE else {"exit_code": code}
    if code is None and (is_error or any(_ERROR_LINE.match(line) for line in text.splitlines())):
        result = {"outcome": "failed"}
    return {"command": cut_output(command, MAX_COMMAND_CHARACTERS), **result, "stdout": cut_output(text), **errors}


def _find_exit_code(text: str) -> re.Match[str] | None:
    """Return the exit code that the first or the last lines of an output state, as many programs add it there."""
    lines = text.strip().splitlines()
    edges = (
        line for line in (*lines[: -_EDGE_LINES - 1 : -1], *lines[:_EDGE_LINES]) if len(line) < MAX_EDGE_CHARACTERS
    )
    return next((found for line in edges if (found := _EXIT_CODE.search(line))), None)


def _find_command(tool: str, arguments: Payload) -> str:
    """Return the command line of a call; "" if it ran no command."""
    for name in COMMAND_FIELDS:
        match arguments.get(name):
            case str() as command if command.strip() and (name != "script" or _is_shell(tool)):
                return command
            case [*parts] if parts and all(isinstance(part, str) for part in parts):
                return " ".join(map(str, parts))
            case _:
                pass
    inputs = [value for value in arguments.values() if isinstance(value, str) and value.strip()]
    return inputs[0] if _is_shell(tool) and len(inputs) == 1 else ""


def _is_shell(tool: str) -> bool:
    return _SHELL.search(_WORD_START.sub("_", tool)) is not None


def _find_path(arguments: Payload) -> str:
    found = (arguments.get(name) for name in PATH_FIELDS)
    return next((path.strip() for path in found if isinstance(path, str) and path.strip()), "")


def _find_lines(arguments: Payload) -> Payload:
    """Return the range of lines that a call read, as `lines`; nothing for the whole file."""
    for first, last in (("start_line", "end_line"), ("offset", "limit")):
        match arguments.get(first), arguments.get(last):
            case int(begin), int(end):
                return {"lines": [begin, begin + end if last == "limit" else end]}
            case _:
                pass
    return {}


def _says_error(fields: Payload, output: str) -> bool:
    """Return whether a result says that the call failed: in a field of its own, or in its first line."""
    if fields:
        flags = [fields.get(name) for name in ("isError", "is_error")]
        return True in flags or bool(_find_error(fields)) or fields.get("success") is False
    first = next((line for line in output.splitlines() if line.strip()), "")
    return _ERROR_LINE.match(first) is not None


def _find_error(fields: Payload) -> str:
    match fields.get("error"):
        case str() as error:
            return error
        case {"message": str() as error}:
            return error
        case _:
            return ""


def _find_output(fields: Payload) -> str:
    found = (fields.get(name) for name in OUTPUT_KEYS)
    text = next((value for value in found if isinstance(value, str) and value.strip()), "")
    if text or any(name in fields for name in ("stdout", "stderr")):
        return text
    return json.dumps(fields, ensure_ascii=False)


def _parse_arguments(arguments: str) -> Payload:
    parsed = _parse_object(arguments)
    return parsed or ({"input": arguments} if arguments.strip() not in ("", "{}") else {})


def _parse_object(text: str) -> Payload:
    """Return a JSON object; an empty one for another text."""
    if not text.lstrip().startswith("{") or len(text) > MAX_PARSED_CHARACTERS:
        return {}
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        return cast("Payload", value) if isinstance(value, dict) else {}
    return {}


def _shorten(value: Json) -> Json:
    match value:
        case str():
            return cut_output(value, MAX_ARGUMENT_CHARACTERS)
        case Mapping() | Sequence():
            return cut_output(json.dumps(value, ensure_ascii=False), MAX_ARGUMENT_CHARACTERS)
        case _:
            return value


def cut_output(text: str, max_chars: int = MAX_OUTPUT_CHARACTERS) -> str:
    """Return the text without secrets and NUL bytes, cut to its first and last lines."""
    plain = text.replace("\0", "")
    return cut_lines(redact_secrets(plain.encode("utf-8", "replace").decode()), max_chars)
