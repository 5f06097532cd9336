"""Lines of dialogue as values, and each line as a memory of kind `exchange`. Pure."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast
from uuid import UUID

from newton.memory.memory import NewMemory, Trust, WriteContext, digest, lowest_trust
from newton.memory.representations import ELLIPSIS, make_short_forms, one_line
from newton.memory.time_expressions import find_mentioned_times
from newton.providers.chat import ToolCall

Role = Literal["user", "assistant", "system", "tool"]

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)

MAX_CALL_CHARS = 120  # characters of a call as it is named
MAX_ARGUMENT_CHARS = 6_000  # characters of what tools are given in one message, where it is shown in short
MIN_TEXT_CHARS = 20  # characters that are kept of a text that a tool is given

# Whoever speaks in a role is believed so much. A transcript's system lines were not said by this agent's operator.
TRUST_OF_ROLE: dict[Role, Trust] = {"user": "user", "assistant": "agent", "system": "agent", "tool": "tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. `ref` is the caller's id of it; `aside` is true of what Newton itself says where no model spoke: a
    quote of memory, or why there is no answer. It is in the log, is sent to no model and becomes no memory.

    `calls` are the tools that an assistant calls with it, and `answers` is the id of the call that a tool's words
    answer; a message that calls may have no words. `nth` tells apart lines without a ref that are alike in everything,
    as when somebody says "yes" twice in a second. `heard` is the least trust of what its speaker had before them from
    outside, when there was any: the words may be somebody else's.
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

    @property
    def trust(self) -> Trust:
        """Its speaker is believed so much, but no more than what the words may come from."""
        own = TRUST_OF_ROLE[self.role]
        return lowest_trust([own, self.min_trust]) if self.min_trust else own

    @property
    def speaker(self) -> str:
        return self.name or self.role.capitalize()

    @property
    def immutable_fields(self) -> tuple[str, str | None, str, str | None, str | None]:
        """What may not change under a ref."""
        return self.role, self.name, self.content, dump_calls(self.calls), self.tool_call_id

    @property
    def stable_ref(self) -> str:
        """The caller's id, or one that the same line gets again when it is sent again."""
        if self.ref:
            return self.ref
        calling = [text for text in (dump_calls(self.calls), self.tool_call_id) if text]
        said_at = self.said_at.isoformat()
        return digest(self.role, self.name or "", self.content, said_at, str(self.occurrence), *calling).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A line at its place in a session, with the tokens of its content and its calls."""

    session_id: UUID
    position: int
    tokens: int
    message: Message


def dump_calls(calls: Sequence[ToolCall]) -> str | None:
    """Calls as JSON text, the same text for the same calls; None when there are none."""
    return json.dumps([call._asdict() for call in calls], ensure_ascii=False) if calls else None


def shorten_calls(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """Calls as they are shown when what they give to tools is too long."""
    return tuple(
        call._replace(arguments=shorten_arguments(call.arguments, max_chars=MAX_ARGUMENT_CHARS // len(calls)))
        for call in calls
    )


def shorten_arguments(arguments: str, *, max_chars: int) -> str:
    """What a tool is given as JSON of at most so many characters, long texts and lists without their middle; where
    even that is too long, only how long it was. Never longer than it was.

    >>> shorten_arguments('{"path": "a.py", "text": "' + "x" * 900 + '"}', max_chars=90)
    '{"path": "a.py", "text": "xxxxxxxxxxxx [… 876 characters are left out …] xxxxxxxxxxxx"}'
    """
    nothing = json.dumps({"left_out": f"{len(arguments):,} characters"})
    if len(arguments) <= max(max_chars, len(nothing)):
        return arguments
    given: object = {"arguments": arguments}
    with contextlib.suppress(ValueError, RecursionError):
        given = json.loads(arguments)
    longest = max_chars
    while longest >= MIN_TEXT_CHARS:
        told = json.dumps(_truncate_middle(given, longest), ensure_ascii=False)
        if len(told) <= max_chars:
            return told.encode("utf-8", "replace").decode()
        longest = longest * 3 // 4
    return nothing


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
    """A call in a few words: the tool and what it was given, without the marks of JSON.

    No colon in it is followed by a space, so that it can stand where a speaker's name does.

    >>> describe_call(ToolCall("1", "grep", '{"words": "retry: later", "in": ["src/a.py"], "deep": true}'))
    'grep retry:later src/a.py true'
    """
    try:
        given = json.loads(call.arguments)
    except ValueError:
        given = call.arguments
    words = one_line(" ".join([call.name, *_iter_values(given)])).replace(": ", ":")
    return words if len(words) <= max_chars else words[:max_chars].rstrip() + ELLIPSIS


def _iter_values(value: object) -> Iterator[str]:
    """What stands in JSON, in its order, without the names of its fields."""
    if isinstance(value, dict | list):
        inner = cast("dict[str, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
        for one in inner:
            yield from _iter_values(one)
    else:
        yield value if isinstance(value, str) else json.dumps(value)


def to_memory(stored: StoredMessage, *, memory_id: UUID, ctx: WriteContext, call: ToolCall | None = None) -> NewMemory:
    """The line as a memory: evidence, shown word for word with its date and speaker, and found by them too.

    What a tool put out is found by the `call` that it answers as well: a file's words seldom say which file it is.
    """
    line = stored.message
    speaker = describe_call(call) if call else line.speaker
    spoken = f"{speaker}: {line.content}"
    return NewMemory(
        memory_id=memory_id,
        kind="exchange",
        state="ACTIVE",
        forms=make_short_forms(
            line.content, count_tokens=ctx.count_tokens, prefix=f"[{line.said_at:%Y-%m-%d}] {speaker}: "
        ),
        full_text=None,
        indexed_text=f"{spoken}\n{format_day(line.said_at)}",
        embedding_text=one_line(spoken),
        occurred_at=line.said_at,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=line.trust,
        content_hash=digest(str(stored.session_id), line.stable_ref, line.content),
        ref=line.ref,
        thread_id=stored.session_id,
        position=stored.position,
        mentioned_times=find_mentioned_times(line.content, moment=line.said_at),
    )


def format_day(moment: datetime) -> str:
    """The date as people write it, whatever the system's language.

    >>> format_day(datetime(2023, 5, 8))
    '8 May 2023'
    """
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"
