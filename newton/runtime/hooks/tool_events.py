"""Functions that convert a tool call of a coding agent to events, and to the text that censors check."""

import re
from collections.abc import Iterator
from typing import NamedTuple, cast

from newton.runtime.hooks.hook_input import JsonObject, as_list, as_object, as_text, clean

MAX_COMMAND_CHARS = 2_000
MAX_OUTPUT_CHARS = 4_000  # of a command or of a failed call, its beginning and its end
MAX_VALUE_CHARS = 300  # of one value in the input of another tool
MAX_VALUES = 20
MAX_CHECKED_CHARS = 100_000  # of a tool call, checked by the censors

FILE_TOOLS = {"Read": "read", "Write": "written", "Edit": "edited", "MultiEdit": "edited", "NotebookEdit": "edited"}
SHELL_TOOLS = frozenset({"Bash", "shell", "local_shell", "exec_command"})
# Searches and lists of the agent itself, and Newton's own tools, whose text comes from memory already.
UNRECORDED_TOOLS = frozenset({"Glob", "Grep", "LS", "TodoWrite", "TodoRead", "update_plan", "ToolSearch", "BashOutput"})
OWN_TOOLS = re.compile(r"mcp__newton\w*__")
REPLACED_FIELDS = frozenset({"old_string", "old_str"})  # text that is removed, not written

NEWLINE = "\n"

_EXIT_CODE = re.compile(r"[Ee]xit(?:ed with)? code:? (-?\d{1,9})")
_PATCHED_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PATCH_OUTCOMES = {"Add": "added", "Update": "edited", "Delete": "deleted"}


class ToolEvent(NamedTuple):
    """The event type of a tool call, such as `file_write`, and its payload."""

    type: str
    payload: JsonObject


def to_tool_events(tool: str, tool_input: object, response: object, error: str) -> list[ToolEvent]:
    """Return the events for a finished tool call; none for a search or a tool of Newton itself.

    The event of a command has the beginning and the end of its output; the event of a failed call has the beginning and
    the end of its error. The event of a read file does not have the text of the file.
    """
    if tool in UNRECORDED_TOOLS or OWN_TOOLS.match(tool):
        return []
    fields = as_object(tool_input) or {"input": tool_input}
    events = [one for one in _to_own_events(tool, fields, response, error) if one]
    if error and not any(event.type == "shell_exec" for event in events):  # the event of a command has its error
        events.append(ToolEvent("error", {"message": f"{tool} failed", "stack": _cut_middle(error)}))
    return events


def find_checked_text(tool: str, tool_input: object) -> str:
    """Return the text of a tool call that is checked for forbidden actions: its name and input values, one per line.

    Text that the call would only remove is left out.
    """
    return clean("\n".join([tool, *_iter_values(tool_input)])[:MAX_CHECKED_CHARS])


def _to_own_events(tool: str, fields: JsonObject, response: object, error: str) -> list[ToolEvent | None]:
    path, command = fields.get("file_path") or fields.get("notebook_path"), fields.get("command")
    if tool in FILE_TOOLS and isinstance(path, str):
        return [_to_file_event(tool, path, fields, error)]
    command = as_text(command) or " ".join(map(str, as_list(command)))
    if tool == "apply_patch" and command:
        return _to_patch_events(command, error)
    if tool in SHELL_TOOLS and command:
        return [_to_shell_event(command, response, error)]
    values = {name: _shorten(value) for name, value in list(fields.items())[:MAX_VALUES]}
    return [ToolEvent("tool_call", {"tool": tool, "input": values, "outcome": "failed" if error else "succeeded"})]


def _to_file_event(tool: str, path: str, fields: JsonObject, error: str) -> ToolEvent | None:
    if error:
        return None  # the event of the error says it
    if tool == "Read":
        first, count = fields.get("offset"), fields.get("limit")
        span = {"lines": [first, first + count]} if isinstance(first, int) and isinstance(count, int) else {}
        return ToolEvent("file_read", {"path": clean(path), **span})
    return ToolEvent("file_write", {"path": clean(path), "outcome": FILE_TOOLS[tool]})


def _to_patch_events(patch: str, error: str) -> list[ToolEvent | None]:
    if error:
        return []
    files = dict.fromkeys((match[2].strip(), _PATCH_OUTCOMES[match[1]]) for match in _PATCHED_FILE.finditer(patch))
    return [ToolEvent("file_write", {"path": clean(path), "outcome": outcome}) for path, outcome in files]


def _to_shell_event(command: str, response: object, error: str) -> ToolEvent:
    fields = as_object(response)
    code = fields.get("exit_code", fields.get("exitCode"))
    if not isinstance(code, int):
        found = _EXIT_CODE.match(error or as_text(response))
        code = int(found[1]) if found else None
    outcome = "interrupted" if fields.get("interrupted") else "failed" if error else "succeeded"
    result = {"outcome": outcome} if code is None else {"exit_code": code}
    output = as_text(response) or as_text(fields.get("stdout")) or as_text(fields.get("output"))
    outputs = {"stdout": output, "stderr": error or as_text(fields.get("stderr"))}
    kept = {name: _cut_middle(text) for name, text in outputs.items() if text.strip()}
    return ToolEvent("shell_exec", {"command": clean(command[:MAX_COMMAND_CHARS]), **result, **kept})


def _cut_middle(text: str) -> str:
    """Return the text, or its first and last characters, in whole lines where it has any, if it is too long."""
    if len(text) > MAX_OUTPUT_CHARS:
        half = MAX_OUTPUT_CHARS // 2
        head, tail = text[:half], text[-half:]
        text = f"{head[: head.rfind(NEWLINE)] if NEWLINE in head else head}\n…\n{tail[tail.find(NEWLINE) + 1 :]}"
    return clean(text)


def _shorten(value: object) -> object:
    text = value if isinstance(value, str) else " ".join(_iter_values(value))
    return clean(text[:MAX_VALUE_CHARS])


def _iter_values(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        fields = as_object(cast("object", value))
        inner = [item for name, item in fields.items() if name not in REPLACED_FIELDS] or as_list(cast("object", value))
        for item in inner:
            yield from _iter_values(item)
    elif value is not None:
        yield str(value)
