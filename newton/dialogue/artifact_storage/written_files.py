"""Files that a conversation writes: by calls of tools that write a file, and as named code blocks of a reply. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from newton.providers.chat import ToolCall

PATH_FIELDS = ("path", "file_path", "filePath", "filename", "file", "target_file")
CONTENT_FIELDS = ("content", "contents", "file_text", "code", "new_content", "text")
OLD_FIELDS, NEW_FIELDS = ("old_string", "old_str", "oldText", "search"), ("new_string", "new_str", "newText", "replace")
MAX_PATH_CHARS = 150

_WRITES = re.compile(r"write|create|save|edit|replace|update|put|patch", re.IGNORECASE)
_FAILED = re.compile(r"\s*(?:error|failed|failure|traceback|permission denied|no such file|\{\"error\")", re.IGNORECASE)
_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})(?P<info>[^\n`]*)$", re.MULTILINE)
_FILE = r"[\w@+-][\w./@+-]*\.[A-Za-z]\w{0,9}"
_INFO_NAME = re.compile(rf"(?:(?:title|file|filename|name|path)=)?[\"']?(?:\w+:)?(?P<name>{_FILE})[\"']?\s*$")
_LABEL_LINE = re.compile(
    rf"\s*(?:#+\s*|[-*]\s+)?(?:file:?\s*)?[`*\"']*(?P<name>{_FILE})[`*\"']*\s*:?\s*", re.IGNORECASE
)
_COMMENT_NAME = re.compile(
    rf"\s*(?:#|//|--|;|/\*|<!--)\s*(?:file:?\s*)?(?P<name>{_FILE})\s*(?:\*/|-->)?\s*", re.IGNORECASE
)


class WrittenFile(NamedTuple):
    """A file with its new text, or with the edit of its last version: `new` in place of the only `old`."""

    name: str
    text: str | None = None
    old: str = ""
    new: str = ""


def find_written_file(call: ToolCall, result: str) -> WrittenFile | None:
    """Return the file that a tool call wrote; None if it wrote none, or if the result reports a failure.

    >>> find_written_file(ToolCall("1", "write_file", '{"path": "a.py", "content": "x = 1"}'), "ok")
    WrittenFile(name='a.py', text='x = 1', old='', new='')
    """
    fields = _parse_arguments(call.arguments)
    path = _first_text(fields, PATH_FIELDS)
    command = fields.get("command")
    names_write = _WRITES.search(call.name) or (isinstance(command, str) and _WRITES.search(command[:40]))
    if not path or len(path) > MAX_PATH_CHARS or "\n" in path or not names_write or _FAILED.match(result):
        return None
    old, new = _first_text(fields, OLD_FIELDS), _first_text(fields, NEW_FIELDS)
    if old and new is not None:
        return WrittenFile(path, None, old, new)
    text = _first_text(fields, CONTENT_FIELDS)
    return WrittenFile(path, text) if text else None


def apply_edit(text: str, edit: WrittenFile) -> str | None:
    """Return the text after an edit; None if the replaced text does not occur exactly once."""
    return text.replace(edit.old, edit.new) if text.count(edit.old) == 1 else None


def find_code_blocks(reply: str) -> Iterator[WrittenFile]:
    """Yield the code blocks of a reply that have a file name: in the fence, on the line before, or in a first comment.

    >>> list(find_code_blocks("Here:\\n```python title=app.py\\nx = 1\\n```"))
    [WrittenFile(name='app.py', text='x = 1\\n', old='', new='')]
    """
    position = 0
    while opening := _FENCE.search(reply, position):
        closing = re.compile(rf"^ {{0,3}}{re.escape(opening['fence'])}[`~]*\s*$", re.MULTILINE).search(
            reply, opening.end()
        )
        if closing is None:
            return
        text = reply[opening.end() + 1 : closing.start()]
        before = reply[position : opening.start()].rstrip().rpartition("\n")[2]
        if text.strip() and (name := _find_name(opening["info"], before, text)):
            yield WrittenFile(name, text)
        position = closing.end()


def _find_name(info: str, before: str, text: str) -> str | None:
    matches = (
        _INFO_NAME.search(info.strip()),
        _LABEL_LINE.fullmatch(before),
        _COMMENT_NAME.fullmatch(text.partition("\n")[0]),
    )
    return next((match["name"] for match in matches if match and len(match["name"]) <= MAX_PATH_CHARS), None)


def _parse_arguments(arguments: str) -> Mapping[str, object]:
    try:
        value: object = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _first_text(fields: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := fields.get(name), str)), None)
