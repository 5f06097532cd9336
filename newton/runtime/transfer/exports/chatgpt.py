"""Reader of the data export of ChatGPT: the conversations, each along the branch that was open last.

Format: `conversations.json`, or several files `conversations-NNN.json`, in the archive. A conversation is a tree of
messages in `mapping`, and `current_node` is the last message of the branch that the user saw.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from newton.errors import InputError
from newton.runtime.transfer.exports.export_files import read_entries
from newton.runtime.transfer.exports.export_lines import (
    ExportLine,
    JsonObject,
    build_message_line,
    find_time,
    is_object,
    read_change_time,
)

FILES = ("conversations*.json",)
_SHOWN_CONTENT = ("text", "multimodal_text", "code")
_ASSET_NAMES = {"image_asset_pointer": "image", "audio_asset_pointer": "audio", "audio_transcription": "audio"}


def matches(entry: JsonObject) -> bool:
    """Return whether an entry is a conversation of ChatGPT."""
    return "mapping" in entry


def read_lines(path: Path, passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield the messages of all conversations in a ChatGPT export (a file, folder or archive) as items to import.

    Count in `passed_over` the messages that are left out, by reason.
    """
    changed = read_change_time(path)
    for place, entry in read_entries(path, *FILES):
        if isinstance(entry, InputError):
            yield place, entry
        elif entry.get("is_do_not_remember") is True:
            passed_over["conversations that are not to be remembered"] += 1
        else:
            yield from _read_conversation(place, entry, changed, passed_over)


def _read_conversation(
    place: str, conversation: JsonObject, changed: str | None, passed_over: Counter[str]
) -> Iterator[ExportLine]:
    mapping, title = conversation.get("mapping"), conversation.get("title")
    place = f"{place} ({title})" if title else place
    if not is_object(mapping):
        yield place, InputError("it has no messages under 'mapping'.", hint="Export the conversation again.")
        return
    session = f"chatgpt:{conversation.get('conversation_id') or conversation.get('id') or next(iter(mapping), '')}"
    at = find_time(conversation.get("create_time"), conversation.get("update_time"))
    for node, message in _list_open_branch(mapping, conversation.get("current_node")):
        author, content = message.get("author"), message.get("content")
        if not is_object(author) or not is_object(content):
            yield f"{place}, message {node}", InputError("it has no author or content.", hint="Leave it out.")
            continue
        at = find_time(message.get("create_time")) or at
        role, text = str(author.get("role")), _read_content(content)
        if reason := _find_reason(message, role, content, text):
            passed_over[reason] += 1
            continue
        ref = str(message.get("id") or node)
        line = build_message_line(session=session, ref=ref, role=role, content=text, at=at or changed)
        yield f"{place}, message {node}", line


def _list_open_branch(mapping: JsonObject, current: JsonValue) -> list[tuple[str, JsonObject]]:
    """Return the messages from the first to the current one with their nodes, without the other branches."""
    branch, seen = list[tuple[str, JsonObject]](), set[str]()
    node = current if isinstance(current, str) and current in mapping else next(iter([*mapping][::-1]), None)
    while isinstance(node, str) and node not in seen and is_object(value := mapping.get(node)):
        seen.add(node)
        if is_object(message := value.get("message")):
            branch.append((node, message))
        node = value.get("parent")
    return branch[::-1]


def _find_reason(message: JsonObject, role: str, content: JsonObject, text: str) -> str | None:
    """Return why a message is left out, or None."""
    metadata = message.get("metadata")
    if role not in ("user", "assistant"):
        return f"messages of the {role}"
    if is_object(metadata) and metadata.get("is_visually_hidden_from_conversation"):
        return "hidden messages"
    if message.get("recipient") not in (None, "all"):
        return "calls of tools"
    if content.get("content_type") not in _SHOWN_CONTENT:
        return "reasoning and notes of the program"
    return None if text else "empty messages"


def _read_content(content: JsonObject) -> str:
    parts = content.get("parts")
    if not isinstance(parts, list):
        parts = [content.get("text")]
    return "\n".join(filter(None, map(_read_part, parts))).strip()


def _read_part(part: JsonValue) -> str:
    """Return the text of a part; of an image or a recording, its name in brackets and what was said in it."""
    if isinstance(part, str):
        return part
    if not is_object(part):
        return ""
    if isinstance(text := part.get("text"), str) and text:
        return text
    kind = _ASSET_NAMES.get(str(part.get("content_type")))
    return f"[{kind}]" if kind else ""
