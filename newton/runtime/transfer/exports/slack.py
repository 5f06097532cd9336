"""Reader of the export of a Slack workspace: the messages of each channel, a session for each day of a channel.

Format: `channels.json` (and `groups.json`, `dms.json`, `mpims.json`), `users.json`, and `CHANNEL/DATE.json`, a list of
messages.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from newton.errors import InputError
from newton.runtime.transfer.exports.export_files import list_names, read_entries
from newton.runtime.transfer.exports.export_lines import (
    ExportLine,
    JsonObject,
    build_message_line,
    extract_text,
    find_time,
    is_object,
    list_objects,
)

CHANNELS_FILE, USERS_FILE = "channels.json", "users.json"
_CONVERSATION_FILES = (CHANNELS_FILE, "groups.json", "dms.json", "mpims.json")
_DAY_FILES = "*/[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9].json"
# Subtypes of messages that a person wrote; the others are notices of Slack, such as channel_join.
_WRITTEN = frozenset(("", "thread_broadcast", "me_message", "file_share", "file_comment", "reply_broadcast"))
_EDITS = frozenset(("message_changed", "message_deleted", "message_replied", "tombstone"))
_MARK = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")


def is_slack_export(path: Path) -> bool:
    """Return whether an archive or a folder holds channels, and messages by channel and day."""
    names = [PurePosixPath(name) for name in list_names(path)]
    roots = {name.parent for name in names if name.name == CHANNELS_FILE}
    return any(name.match(_DAY_FILES) and name.parent.parent in roots for name in names)


def read_lines(path: Path, passed_over: Counter[str]) -> Iterator[ExportLine]:
    """Yield all messages of people in a Slack export (folder or archive) as items to import.

    Count in `passed_over` the other messages, by reason.
    """
    people, channels = dict[str, str](), dict[str, str]()
    for place, entry in read_entries(path, USERS_FILE, *_CONVERSATION_FILES):
        if isinstance(entry, InputError):
            yield place, entry
        elif place.startswith(USERS_FILE) or f"/{USERS_FILE}" in place:
            people[str(entry.get("id"))] = _find_person_name(entry)
        elif entry.get("name"):
            channels[str(entry.get("id"))] = str(entry["name"])
    names = people | channels
    for place, entry in read_entries(path, _DAY_FILES):
        if isinstance(entry, InputError):
            yield place, entry
        elif reason := _find_reason(entry):
            passed_over[reason] += 1
        else:
            yield from _read_message(place, entry, names)


def _find_person_name(user: JsonObject) -> str:
    profile = user.get("profile")
    fields = {**user, **(profile if is_object(profile) else {})}
    return next((str(fields[key]) for key in ("real_name", "display_name", "name", "id") if fields.get(key)), "")


def _find_reason(message: JsonObject) -> str | None:
    """Return why a message is left out, or None."""
    subtype = str(message.get("subtype") or "")
    if subtype in _EDITS:
        return "edits and deletions"
    if subtype == "bot_message" or message.get("bot_id") or message.get("user") == "USLACKBOT":
        return "messages of bots"
    if subtype not in _WRITTEN:
        return "joins and other notices"
    return None


def _read_message(place: str, message: JsonObject, names: Mapping[str, str]) -> Iterator[ExportLine]:
    file = PurePosixPath(place.rpartition(", entry ")[0] or place)
    channel = names.get(file.parent.name, file.parent.name)
    profile, user = message.get("user_profile"), str(message.get("user") or "")
    speaker = names.get(user) or (_find_person_name(profile) if is_object(profile) else "") or user
    files = [f"[file: {one.get('title') or one.get('name')}]" for one in list_objects(message.get("files"))]
    text = "\n".join(filter(None, (_expand_marks(extract_text(message.get("text")), names), *files)))
    at = find_time(message.get("ts"))
    if not text or at is None:
        yield place, InputError("it has no text." if at else "it has no time under 'ts'.", hint="Leave it out.")
        return
    session, ref = f"slack:{channel}:{file.stem}", f"slack:{channel}:{message.get('ts')}:{user}"
    yield place, build_message_line(session=session, ref=ref, role="user", content=text, at=at, name=speaker or None)


def _expand_marks(text: str, names: Mapping[str, str]) -> str:
    """Return a text with names in place of ids, and links as people see them.

    >>> _expand_marks("<@U1> see <https://x.org|this> in <#C1|general> &amp; <!here>", {"U1": "Ana"})
    '@Ana see this (https://x.org) in #general & @here'
    """

    def expand(match: re.Match[str]) -> str:
        sign, target, label = match.groups()
        if sign == "!":
            return f"@{label or target}".replace("@@", "@")
        if sign:
            return sign + (names.get(target) or label or target)
        return f"{label} ({target})" if label and label not in target else target

    return html.unescape(_MARK.sub(expand, text))
