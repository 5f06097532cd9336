"""Reader of the data export of Claude: the conversations, and the text of the files attached to them.

Format: `conversations.json` in the archive, a list of conversations with `chat_messages`.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import JsonValue

from newton.runtime.transfer.exports.conversation_files import read_conversations
from newton.runtime.transfer.exports.export_lines import (
    JsonObject,
    build_message_line,
    extract_text,
    find_time,
    list_objects,
)

_ROLES = {"human": "user", "assistant": "assistant"}


def matches(value: JsonValue) -> bool:
    """Return whether a JSON value is a list of conversations of Claude."""
    conversations = list_objects(value)
    return bool(conversations) and all("chat_messages" in one for one in conversations[:5])


def read_lines(path: Path, passed_over: Counter[str]) -> Iterator[JsonObject]:
    """Yield the import lines of all conversations. Count in `passed_over` what is left out, by reason."""
    passed_over.clear()
    for conversation in read_conversations(path):
        yield from _read_conversation(conversation, passed_over)


def _read_conversation(conversation: JsonObject, passed_over: Counter[str]) -> Iterator[JsonObject]:
    session = f"claude:{conversation.get('uuid')}"
    at = find_time(conversation.get("created_at"))
    for message in list_objects(conversation.get("chat_messages")):
        at = find_time(message.get("created_at")) or at
        ref, role = str(message.get("uuid")), _ROLES.get(str(message.get("sender")))
        attachments = list_objects(message.get("attachments"))
        content = _read_content(message, [*attachments, *list_objects(message.get("files"))])
        if role is None or not content:
            passed_over["empty messages" if role else "messages of others"] += 1
            continue
        yield build_message_line(session=session, ref=ref, role=role, content=content, at=at)
        for number, attachment in enumerate(attachments, start=1):
            yield from _read_attachment(attachment, ref=f"{session}:{ref}:{number}")


def _read_content(message: JsonObject, files: list[JsonObject]) -> str:
    """Return the text of a message with the names of its files, without reasoning and calls of tools."""
    blocks = [one for one in list_objects(message.get("content")) if one.get("type") == "text"]
    text = extract_text(list(map(dict, blocks))) or extract_text(message.get("text"))
    names = [f"[file: {one['file_name']}]" for one in files if one.get("file_name")]
    return "\n".join(filter(None, (text, *names)))


def _read_attachment(attachment: JsonObject, *, ref: str) -> Iterator[JsonObject]:
    """Yield a document for an attachment whose text the export holds."""
    text, name = attachment.get("extracted_content"), str(attachment.get("file_name") or "attachment")
    if isinstance(text, str) and text.strip():
        kind = "markdown" if name.endswith(".md") else "text"
        yield {"type": "document", "ref": ref, "title": name, "format": kind, "content": text}
