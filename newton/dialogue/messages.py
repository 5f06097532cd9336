"""Messages of a session, and their conversion to memories of the kind `exchange` and to events. Pure."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, cast
from uuid import UUID

from newton.errors import InputError
from newton.heart.events.event_store import NewEvent
from newton.heart.events.tool_results import ToolOutcome, to_event
from newton.heart.identity.standing_wishes import find_standing_type
from newton.heart.wills.will_reader import Will
from newton.memory.memory import PERSON_TIERS, NewMemory, Trust, WriteContext, digest, lowest_trust
from newton.memory.representations import ELLIPSIS, make_short_forms, one_line
from newton.providers.chat import ToolCall
from newton.text.time_expressions import find_mentioned_times

Role = Literal["user", "assistant", "system", "tool"]

_MONTH_NAMES = "January February March April May June July August September October November December"
MONTHS = tuple(_MONTH_NAMES.split())

PROGRAM_SPEAKER = "Program"  # of messages with the role `system`, which a program sends
AUTHORITIES = frozenset({"system", "developer"})  # names that a model takes for the roles that it obeys
MAX_CALL_CHARS = 120  # of a call's description
MAX_ARGUMENT_CHARS = 6_000  # of all arguments in one message, if shortened
MIN_TEXT_CHARS = 20  # kept of one text in arguments
FAILURE_PREFIX = "failure:"  # of the refs of notices that say why a message has no reply

# Trust by role. System messages of a transcript do not come from this agent's operator.
TRUST_OF_ROLE: dict[Role, Trust] = {"user": "user", "assistant": "agent", "system": "agent", "tool": "tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a conversation.

    `ref` is the caller's id of the message. `is_notice` marks text of Newton itself where no model answered: it is
    logged, but neither sent to a model nor stored as a memory. `restates` marks a reply that says only what its prompt
    told of memory and of the person: it is no memory either, so that no copy outlives what it repeats. `calls` are the
    tool calls of an assistant; a tool result has the `tool_call_id` of its call. `occurrence` numbers equal messages
    without a ref. `min_trust` is the lowest trust of the text that the speaker had read, or that the result of a tool
    of Newton shows; None if it is not known. `is_retold` marks a message that is no news: of an import, or sent again
    with a conversation.
    """

    role: Role
    content: str
    said_at: datetime
    name: str | None = None
    ref: str | None = None
    is_notice: bool = False
    calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    occurrence: int = 0
    min_trust: Trust | None = None
    restates: bool = False
    is_retold: bool = False

    @property
    def is_remembered(self) -> bool:
        """Return whether the message becomes a memory."""
        return bool(self.content) and not (self.is_notice or self.restates)

    @property
    def trust(self) -> Trust:
        """Return the trust of the message: the trust of its role, or `min_trust` if that is lower."""
        role_trust = TRUST_OF_ROLE[self.role]
        return lowest_trust([role_trust, self.min_trust]) if self.min_trust else role_trust

    @property
    def speaker(self) -> str:
        """Return the speaker as named in a context: never "System", which a model would obey."""
        if self.name:
            return guard_name(self.name)
        return PROGRAM_SPEAKER if self.role == "system" else self.role.capitalize()

    @property
    def immutable_fields(self) -> tuple[str, str | None, str, str | None, str | None]:
        """Return the fields that must be the same when a message with the same id (`ref`) is sent again."""
        return self.role, self.name, self.content, dump_calls(self.calls), self.tool_call_id

    @property
    def stable_ref(self) -> str:
        """Return the caller's id of the message, or else a hash that is the same whenever the message is sent again.

        What a model reports of the user is apart from what the user says.
        """
        if self.ref:
            return self.ref
        tool_parts = [text for text in (dump_calls(self.calls), self.tool_call_id) if text]
        tool_parts += ["reported"] if self.role == "user" and self.trust not in PERSON_TIERS else []
        said_at = self.said_at.isoformat()
        return digest(self.role, self.name or "", self.content, said_at, str(self.occurrence), *tool_parts).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message with its position in a session. `tokens` counts its text and its tool calls.

    Of a message that was just stored, `will` is what the person wants of memory, and `notice` what was done about it.
    """

    session_id: UUID
    position: int
    tokens: int
    message: Message
    will: Will | None = None
    notice: str = ""


def guard_name(name: str) -> str:
    """Return the name of a speaker, prefixed with "Participant" if it is that of a role that models obey."""
    return f"Participant {name}" if name.strip().casefold() in AUTHORITIES else name


def derive_failure_ref(*parts: str) -> str:
    """Return an id, computed from `parts`, for the notice that says why a message has no reply."""
    return FAILURE_PREFIX + digest(*parts).hex()


def dump_calls(calls: Sequence[ToolCall]) -> str | None:
    """Return tool calls as JSON, always in the same form; None if there are none."""
    return json.dumps([call._asdict() for call in calls], ensure_ascii=False) if calls else None


def shorten_calls(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Shorten the arguments of the tool calls of one message to MAX_ARGUMENT_CHARS in total."""
    return tuple(
        call._replace(arguments=shorten_arguments(call.arguments, max_chars=MAX_ARGUMENT_CHARS // len(calls)))
        for call in calls
    )


def shorten_arguments(arguments: str, *, max_chars: int) -> str:
    """Shorten JSON arguments to `max_chars` by cutting the middle of long texts and lists.

    If that is not enough, return only their length. The result is never longer than the input.

    >>> shorten_arguments('{"path": "a.py", "text": "' + "x" * 900 + '"}', max_chars=90)
    '{"path": "a.py", "text": "xxxxxxxxxxxx [… 876 characters are left out …] xxxxxxxxxxxx"}'
    """
    length_only = json.dumps({"left_out": f"{len(arguments):,} characters"})
    if len(arguments) <= max(max_chars, len(length_only)):
        return arguments
    value: object = {"arguments": arguments}
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(arguments)
    longest = max_chars
    while longest >= MIN_TEXT_CHARS:
        shortened = json.dumps(_truncate_middle(value, longest), ensure_ascii=False)
        if len(shortened) <= max_chars:
            return shortened.encode("utf-8", "replace").decode()
        longest = longest * 3 // 4
    return length_only


def _truncate_middle(value: object, max_chars: int) -> object:
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return {name: _truncate_middle(one, max_chars) for name, one in fields.items()}
    if isinstance(value, list):
        items, most = cast("list[object]", value), max(max_chars // MIN_TEXT_CHARS, 2)
        if len(items) > most:
            middle = f"[… {len(items) - most:,} items are left out …]"
            items = [*items[: most - most // 2], middle, *items[-(most // 2) :]]
        return [_truncate_middle(one, max_chars) for one in items]
    if isinstance(value, str) and len(value) > max_chars:
        note = f" [… {len(value) - 2 * (max_chars // 3):,} characters are left out …] "
        return min(value, value[: max_chars // 3] + note + value[-(max_chars // 3) :], key=len)
    return value


def describe_call(call: ToolCall, *, max_chars: int = MAX_CALL_CHARS) -> str:
    """Describe a tool call in a few words: the name of the tool and the values of its arguments.

    The result contains no colon followed by a space, because it is used as the name in lines of the form `name: text`.

    >>> describe_call(ToolCall("1", "grep", '{"words": "retry: later", "in": ["src/a.py"], "deep": true}'))
    'grep retry:later src/a.py true'
    """
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = call.arguments
    text = one_line(" ".join([call.name, *_iter_values(arguments)])).replace(": ", ":")
    return text if len(text) <= max_chars else text[:max_chars].rstrip() + ELLIPSIS


def _iter_values(value: object) -> Iterator[str]:
    """Yield the values in a JSON value in order, without field names."""
    if isinstance(value, dict | list):
        inner = cast("dict[str, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
        for one in inner:
            yield from _iter_values(one)
    else:
        yield value if isinstance(value, str) else json.dumps(value)


def to_memory(stored: StoredMessage, *, memory_id: UUID, ctx: WriteContext, call: ToolCall | None = None) -> NewMemory:
    """Convert a message to a memory, whose text is the message with date and speaker.

    A tool result can also be found by its `call`, because a file's text seldom contains its name.
    """
    line = stored.message
    speaker = describe_call(call) if call else line.speaker
    spoken = f"{speaker}: {line.content}"
    return NewMemory(
        memory_id=memory_id,
        kind="exchange",
        forms=make_short_forms(  # the mark of whose text it is stands on each line of a tool
            one_line(line.content) if line.role == "tool" else line.content,
            count_tokens=ctx.count_tokens,
            prefix=f"[{line.said_at:%Y-%m-%d}] {speaker}: ",
        ),
        full_text=None,
        indexed_text=f"{spoken}\n{format_day(line.said_at)}",
        embedding_text=one_line(spoken),
        occurred_at=line.said_at,
        ctx=replace(ctx, trust=line.trust),
        content_hash=digest(str(stored.session_id), line.stable_ref, line.content),
        ref=line.ref,
        thread_id=stored.session_id,
        position=stored.position,
        mentioned_times=find_mentioned_times(line.content, moment=line.said_at),
        standing=find_standing_type(line.content) if line.role == "user" and line.trust in PERSON_TIERS else None,
    )


def format_day(moment: datetime) -> str:
    """Format a date in English, independently of the locale.

    >>> format_day(datetime(2023, 5, 8))
    '8 May 2023'
    """
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def to_observations(
    messages: Sequence[StoredMessage], memory_ids: Mapping[int, UUID], calls: Mapping[str, ToolCall]
) -> list[NewEvent]:
    """Return the events for the results of tools among the messages. Pure.

    `memory_ids` maps positions of messages to memories, `calls` maps call ids to calls. A message without a memory,
    such as one that repeats memories, makes no event.
    """
    kept = [item for item in messages if item.position in memory_ids]
    return [one for item in kept if (one := _to_observation(item, memory_ids[item.position], calls))]


def _to_observation(stored: StoredMessage, memory_id: UUID, calls: Mapping[str, ToolCall]) -> NewEvent | None:
    """Return the event for the result of a tool; None for another message, or for arguments nested too deep."""
    line = stored.message
    if line.role != "tool":
        return None
    call = calls.get(line.tool_call_id or "") or ToolCall("", line.name or "tool", "")
    try:
        event = to_event(ToolOutcome(call.name, call.arguments, line.content), occurred_at=line.said_at)
    except InputError:  # arguments nested too deep for an event; the message itself is stored
        return None
    return NewEvent(
        ref=f"{stored.session_id} message {stored.position}",
        event=event,
        session_id=stored.session_id,
        position=stored.position,
        source_id=memory_id,
        is_tool_result=True,
    )
