"""Reader of Claude Code's transcript: a file with one JSON object per line."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from newton.file_access import open_regular
from newton.runtime.hooks.hook_input import JsonObject, as_list, as_object, as_text, clean, find_user_words, make_ref

MAX_TAIL_BYTES = 4 * 1024 * 1024  # of a transcript that are read
MAX_MESSAGES = 200  # handed over at once


class TranscriptEntry(NamedTuple):
    """A prompt of the user, or a part of a reply. Parts of one reply share `message_id`; a tool call has "" as text."""

    role: str
    uuid: str
    message_id: str
    text: str
    at: str | None


class TranscriptMessage(NamedTuple):
    """A prompt, or the last reply to a prompt. `ref` is an id that depends on its text and its place in the session."""

    role: str
    text: str
    ref: str
    at: str | None


def prompt_ref(prompt: str, path: str | None, session_id: str) -> str:
    """Return the id of a prompt that is being submitted, whether or not the transcript contains it already."""
    newest_reply = next((one for one in _read_backwards(path, session_id) if one.role == "assistant"), None)
    return make_ref("user", prompt, newest_reply.uuid if newest_reply else "")


def last_reply(text: str, path: str | None, session_id: str) -> TranscriptMessage | None:
    """Return the last reply of the turn that ends; None if there is no reply.

    `text` is the reply as the program reports it; if "", the text is read from the transcript.
    """
    entries: list[TranscriptEntry] = []
    prompt: TranscriptEntry | None = None
    for entry in _read_backwards(path, session_id):
        if entry.role == "user":
            prompt = entry
            break
        entries.append(entry)
    entries.reverse()
    return _to_reply(entries, prompt.uuid if prompt else "", text)


def read_messages(path: str | None, session_id: str) -> list[TranscriptMessage]:
    """Return the newest prompts of the session and the last reply to each, oldest first, at most `MAX_MESSAGES`."""
    entries = list(_read_backwards(path, session_id))[::-1]
    messages: list[TranscriptMessage] = []
    newest_reply, prompt_uuid = "", ""
    replies: list[TranscriptEntry] = []
    is_whole = path is not None and _is_read_whole(path)
    for entry in entries:
        if entry.role == "assistant":
            replies.append(entry)
            newest_reply = entry.uuid
            continue
        messages += _list_reply(replies, prompt_uuid)
        replies, prompt_uuid = [], entry.uuid
        if newest_reply or is_whole:  # else the entry before is not known, and neither is the ref
            messages.append(TranscriptMessage("user", entry.text, make_ref("user", entry.text, newest_reply), entry.at))
    return [*messages, *_list_reply(replies, prompt_uuid)][-MAX_MESSAGES:]


def _list_reply(replies: Sequence[TranscriptEntry], prompt_uuid: str) -> list[TranscriptMessage]:
    reply = _to_reply(replies, prompt_uuid) if prompt_uuid else None
    return [reply] if reply else []


def _to_reply(entries: Sequence[TranscriptEntry], prompt_uuid: str, text: str = "") -> TranscriptMessage | None:
    spoken = [entry for entry in entries if entry.text]
    last = spoken[-1] if spoken else None
    if not text and last:
        text = "\n".join(entry.text for entry in spoken if entry.message_id == last.message_id)
    text = text.strip()
    return TranscriptMessage("assistant", text, make_ref("assistant", text, prompt_uuid), None) if text else None


def _is_read_whole(path: str) -> bool:
    try:
        return Path(path).expanduser().stat().st_size <= MAX_TAIL_BYTES
    except OSError:
        return False


def _read_backwards(path: str | None, session_id: str) -> Iterator[TranscriptEntry]:
    """Yield the entries of the session, newest first; none if the transcript cannot be read."""
    for line in reversed(_read_tail(path)) if path else ():
        try:
            fields = as_object(json.loads(line))
        except (ValueError, RecursionError):
            continue
        entry = _to_entry(fields) if fields.get("sessionId", session_id) == session_id else None
        if entry is not None:
            yield entry


def _read_tail(path: str) -> list[bytes]:
    try:
        with open_regular(Path(path).expanduser()) as file:
            size = file.seek(0, 2)
            file.seek(max(size - MAX_TAIL_BYTES, 0))
            lines = file.read(MAX_TAIL_BYTES).splitlines()
    except OSError:
        return []
    return lines[1:] if size > MAX_TAIL_BYTES else lines


def _to_entry(fields: JsonObject) -> TranscriptEntry | None:
    """Return a parsed line as an entry; None for a tool result and for a line of a subagent or the program itself."""
    role, message = fields.get("type"), as_object(fields.get("message"))
    is_own = not any(fields.get(flag) for flag in ("isSidechain", "isMeta", "isCompactSummary"))
    if role not in ("user", "assistant") or not is_own or not message:
        return None
    text = clean("\n".join(_iter_texts(message.get("content")))).strip()
    if role == "user":
        text = find_user_words(text)
        if not text:
            return None
    at, uuid = as_text(fields.get("timestamp")) or None, as_text(fields.get("uuid"))
    return TranscriptEntry(role, uuid, as_text(message.get("id")) or uuid, text, at)


def _iter_texts(content: object) -> Iterable[str]:
    if isinstance(content, str):
        return [content]
    blocks = [as_object(block) for block in as_list(content)]
    return [as_text(block.get("text")) for block in blocks if block.get("type") == "text"]
