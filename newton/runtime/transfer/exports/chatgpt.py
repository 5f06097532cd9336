"""Reader of the data export of ChatGPT: the conversations, each along the branch that was open last.

Format: `conversations.json`, or several files `conversations-NNN.json`, in the archive. A conversation is a tree of
messages in `mapping`, and `current_node` is the last message of the branch that the user saw.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from newton.runtime.transfer.exports.conversation_files import read_conversations
from newton.runtime.transfer.exports.export_lines import (
    JsonObject,
    build_message_line,
    find_time,
    is_object,
    list_objects,
)

_SHOWN_CONTENT = ("text", "multimodal_text", "code")
_ASSET_NAMES = {"image_asset_pointer": "image", "audio_asset_pointer": "audio", "audio_transcription": "audio"}


def matches(value: JsonValue) -> bool:
    """Return whether a JSON value is a list of conversations of ChatGPT."""
    conversations = list_objects(value)
    return bool(conversations) and all("mapping" in one for one in conversations[:5])


def read_lines(path: Path, passed_over: Counter[str]) -> Iterator[JsonObject]:
    """Yield the import lines of all conversations. Count in `passed_over` the messages that are left out, by reason."""
    passed_over.clear()
    for conversation in read_conversations(path):
        yield from _read_conversation(conversation, passed_over)


def _read_conversation(conversation: JsonObject, passed_over: Counter[str]) -> Iterator[JsonObject]:
    session = f"chatgpt:{conversation.get('conversation_id') or conversation.get('id')}"
    at = find_time(conversation.get("create_time"), conversation.get("update_time"))
    for message in _list_open_branch(conversation):
        author, content = message.get("author"), message.get("content")
        if not is_object(author) or not is_object(content):
            continue
        at = find_time(message.get("create_time")) or at
        text = _read_content(content)
        if reason := _find_reason(message, str(author.get("role")), content, text):
            passed_over[reason] += 1
            continue
        yield build_message_line(
            session=session, ref=str(message.get("id")), role=str(author.get("role")), content=text, at=at
        )


def _list_open_branch(conversation: JsonObject) -> list[JsonObject]:
    """Return the messages from the first to the current one, without the other branches."""
    mapping, branch, seen = conversation.get("mapping"), list[JsonObject](), set[str]()
    if not is_object(mapping):
        return branch
    current = conversation.get("current_node") or next(reversed(mapping), None)
    while isinstance(current, str) and current not in seen and is_object(node := mapping.get(current)):
        seen.add(current)
        if is_object(message := node.get("message")):
            branch.append(message)
        current = node.get("parent")
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
