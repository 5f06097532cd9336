"""Lines of dialogue as values, and each line as a memory of kind `exchange`. Pure."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast
from uuid import UUID

from newton.memory.memory import Draft, Teller, Trust, digest, least
from newton.memory.representations import ELLIPSIS, forms, one_line
from newton.memory.spans import spoken_of
from newton.providers.chat import Call

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

MOST_CALL = 120  # characters of a call as it is named
MOST_GIVEN = 6_000  # characters of what tools are given in one message, where it is shown in short
SHORTEST = 20  # characters that are kept of a text that a tool is given

# Whoever speaks in a role is believed so much. A transcript's system lines were not said by this agent's operator.
TRUST_OF_ROLE: dict[Role, Trust] = {"user": "user", "assistant": "agent", "system": "agent", "tool": "tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
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
    aside: bool = False
    calls: tuple[Call, ...] = ()
    answers: str | None = None
    nth: int = 0
    heard: Trust | None = None

    @property
    def trust(self) -> Trust:
        """Its speaker is believed so much, but no more than what the words may come from."""
        own = TRUST_OF_ROLE[self.role]
        return least([own, self.heard]) if self.heard else own

    @property
    def speaker(self) -> str:
        return self.name or self.role.capitalize()

    @property
    def words(self) -> tuple[str, str | None, str, str | None, str | None]:
        """What may not change under a ref."""
        return self.role, self.name, self.content, written(self.calls), self.answers

    @property
    def own_ref(self) -> str:
        """The caller's id, or one that the same line gets again when it is sent again."""
        if self.ref:
            return self.ref
        calling = [text for text in (written(self.calls), self.answers) if text]
        said_at = self.said_at.isoformat()
        return digest(self.role, self.name or "", self.content, said_at, str(self.nth), *calling).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A line at its place in a session, with the tokens of its content and its calls."""

    session_id: UUID
    position: int
    tokens: int
    line: Line


def written(calls: Sequence[Call]) -> str | None:
    """Calls as JSON text, the same text for the same calls; None when there are none."""
    return json.dumps([call._asdict() for call in calls], ensure_ascii=False) if calls else None


def in_short(calls: Sequence[Call]) -> tuple[Call, ...]:
    """Calls as they are shown when what they give to tools is too long."""
    return tuple(call._replace(arguments=abridged(call.arguments, most=MOST_GIVEN // len(calls))) for call in calls)


def abridged(arguments: str, *, most: int) -> str:
    """What a tool is given as JSON of at most so many characters, long texts and lists without their middle; where
    even that is too long, only how long it was. Never longer than it was.

    >>> abridged('{"path": "a.py", "text": "' + "x" * 900 + '"}', most=90)
    '{"path": "a.py", "text": "xxxxxxxxxxxx [… 876 characters are left out …] xxxxxxxxxxxx"}'
    """
    nothing = json.dumps({"left_out": f"{len(arguments):,} characters"})
    if len(arguments) <= max(most, len(nothing)):
        return arguments
    given: object = {"arguments": arguments}
    with contextlib.suppress(ValueError, RecursionError):
        given = json.loads(arguments)
    longest = most
    while longest >= SHORTEST:
        told = json.dumps(_without_middle(given, longest), ensure_ascii=False)
        if len(told) <= most:
            return told.encode("utf-8", "replace").decode()
        longest = longest * 3 // 4
    return nothing


def _without_middle(given: object, longest: int) -> object:
    if isinstance(given, dict):
        fields = cast("dict[str, object]", given)
        return {name: _without_middle(one, longest) for name, one in fields.items()}
    if isinstance(given, list):
        items, most = cast("list[object]", given), max(longest // SHORTEST, 2)
        if len(items) > most:
            middle = f"[… {len(items) - most:,} items are left out …]"
            items = [*items[: most - most // 2], middle, *items[-(most // 2) :]]
        return [_without_middle(one, longest) for one in items]
    if isinstance(given, str) and len(given) > longest:
        note = f" [… {len(given) - 2 * (longest // 3):,} characters are left out …] "
        return min(given, given[: longest // 3] + note + given[-(longest // 3) :], key=len)
    return given


def named(call: Call, *, most: int = MOST_CALL) -> str:
    """A call in a few words: the tool and what it was given, without the marks of JSON.

    No colon in it is followed by a space, so that it can stand where a speaker's name does.

    >>> named(Call("1", "grep", '{"words": "retry: later", "in": ["src/a.py"], "deep": true}'))
    'grep retry:later src/a.py true'
    """
    try:
        given = json.loads(call.arguments)
    except ValueError:
        given = call.arguments
    words = one_line(" ".join([call.name, *_values(given)])).replace(": ", ":")
    return words if len(words) <= most else words[:most].rstrip() + ELLIPSIS


def _values(given: object) -> Iterator[str]:
    """What stands in JSON, in its order, without the names of its fields."""
    if isinstance(given, dict | list):
        inner = cast("dict[str, object]", given).values() if isinstance(given, dict) else cast("list[object]", given)
        for one in inner:
            yield from _values(one)
    else:
        yield given if isinstance(given, str) else json.dumps(given)


def exchange(placed: Placed, *, memory_id: UUID, ctx: Teller, call: Call | None = None) -> Draft:
    """The line as a memory: evidence, shown word for word with its date and speaker, and found by them too.

    What a tool put out is found by the `call` that it answers as well: a file's words seldom say which file it is.
    """
    line = placed.line
    speaker = named(call) if call else line.speaker
    spoken = f"{speaker}: {line.content}"
    return Draft(
        memory_id=memory_id,
        kind="exchange",
        state="ACTIVE",
        forms=forms(line.content, count=ctx.count_tokens, prefix=f"[{line.said_at:%Y-%m-%d}] {speaker}: "),
        full_text=None,
        indexed=f"{spoken}\n{day_in_words(line.said_at)}",
        cue=one_line(spoken),
        occurred_at=line.said_at,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=line.trust,
        content_hash=digest(str(placed.session_id), line.own_ref, line.content),
        ref=line.ref,
        thread=placed.session_id,
        place=placed.position,
        times=spoken_of(line.content, at=line.said_at),
    )


def day_in_words(at: datetime) -> str:
    """The date as people write it, whatever the system's language.

    >>> day_in_words(datetime(2023, 5, 8))
    '8 May 2023'
    """
    return f"{at.day} {MONTHS[at.month - 1]} {at.year}"
