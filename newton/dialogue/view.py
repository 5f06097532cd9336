"""What a model is shown of a conversation: its log, with compactions in the place of what they cover. Pure."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeVar
from uuid import UUID

from newton.dialogue.lines import Placed, Role, in_short
from newton.providers.chat import Call

EntryKind = Literal["mask", "tools", "turn", "goals", "merged", "task"]
ShownKind = Literal["line", "injected", "left_out", "mask", "tools", "turn", "goals", "merged", "task"]

MESSAGE_TOKENS = 4  # what a message costs beside its words: its role and the marks around it

# A block that tells of whole turns is shown as a record to the model, one that tells of its own work as its own words.
_ROLES: dict[EntryKind, Role] = {
    "mask": "tool",
    "tools": "assistant",
    "turn": "user",
    "goals": "user",
    "merged": "user",
    "task": "user",
}
WHOLE: frozenset[ShownKind] = frozenset({"turn", "goals", "merged", "task"})
_SAID: frozenset[ShownKind] = frozenset({"line", "mask", "tools"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A compaction: words that are shown in the place of the lines from `first` to `last`. `before` is what was shown
    there until then, in tokens; `model` is None where no model wrote them."""

    entry_id: UUID
    kind: EntryKind
    first: int
    last: int
    text: str
    tokens: int
    before: int
    strategy: str
    prompt: str
    model: str | None
    made_at: datetime


class Placing(Protocol):
    """What an entry is by its place alone."""

    @property
    def entry_id(self) -> UUID: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def made_at(self) -> datetime: ...


E = TypeVar("E", bound=Placing)


class Injected(NamedTuple):
    """Lines of another branch that are shown behind a place of this one, with what the branch is called."""

    place: int
    text: str
    tokens: int


class Shown(NamedTuple):
    """One message of a view, its tokens with the marks around it, and the lines of the log that it stands for."""

    role: Role
    text: str
    tokens: int
    first: int
    last: int
    kind: ShownKind = "line"
    name: str | None = None
    calls: tuple[Call, ...] = ()
    answers: str | None = None
    entry_id: UUID | None = None

    @property
    def works(self) -> bool:
        """Whether it is a step of work with tools: a call, or what came of one."""
        return bool(self.calls) or self.role == "tool"

    @property
    def past(self) -> bool:
        """Whether it tells of what was: nobody says it to the model at this place of the conversation."""
        return self.kind not in _SAID

    @property
    def asks(self) -> bool:
        """Whether a turn begins with it: something that a person said."""
        return self.role == "user" and self.kind in ("line", "mask")


class Turn(NamedTuple):
    """What belongs to one input: the input and all that came of it, or a block that tells of it. `torn` are the places
    of the calls and answers in it whose counterparts are outside."""

    items: tuple[Shown, ...]
    torn: Set[int] = frozenset()

    @property
    def first(self) -> int:
        return self.items[0].first

    @property
    def last(self) -> int:
        return self.items[-1].last

    @property
    def tokens(self) -> int:
        return sum(item.tokens for item in self.items)

    @property
    def begun(self) -> bool:
        """Whether it holds the input, so that it may be told of as a whole."""
        return self.items[0].asks or self.items[0].kind in WHOLE

    @property
    def complete(self) -> bool:
        """Whether no call is in it without its answer, or the other way round. A call that nobody has answered has
        ended: nothing waits for it, and an answer that comes late is told as a report."""
        return self.begun and not self.torn


def shown(log: Sequence[Placed], entries: Sequence[Entry], injected: Sequence[Injected] = ()) -> list[Shown]:
    """The view: every line once, by itself or by the block that covers it. The log is in its order, without gaps.

    Asides are not shown: what stands before them stands for their places too, so that the view has no gap.
    """
    blocks = {block.first: block for block in outermost(entries)}
    aside: dict[int, list[Injected]] = {}
    for one in injected:
        aside.setdefault(one.place, []).append(one)
    view: list[Shown] = []
    covered = -1
    for placed in log:
        if placed.position <= covered:
            continue
        block = blocks.get(placed.position)
        if block or not placed.line.aside:
            view.append(_block(block, placed) if block else _line(placed))
        elif view and view[-1].kind != "injected":
            view[-1] = view[-1]._replace(last=placed.position)
        covered = block.last if block else placed.position
        view += [_aside(one) for place in range(placed.position, covered + 1) for one in aside.get(place, ())]
    return view


def covered(view: Sequence[Shown], entries: Sequence[Entry]) -> list[Shown]:
    """The view with these entries in the place of what they cover, as it will be shown when they are kept."""
    made = {entry.first: entry for entry in outermost(entries)}
    told: list[Shown] = []
    last = -1
    for item in view:
        if item.last <= last and item.kind != "injected":
            continue
        entry = made.get(item.first) if item.kind != "injected" else None
        told.append(_instead(entry, item) if entry else item)
        last = entry.last if entry else last
    return told


def outermost(entries: Sequence[E]) -> list[E]:
    """The entries that count: what a later one covers is told by that one, until it is dropped."""
    taken: list[E] = []
    for entry in sorted(entries, key=lambda e: (e.first, -e.last, -e.made_at.timestamp(), -e.entry_id.int)):
        if not taken or entry.first > taken[-1].last:
            taken.append(entry)
    return taken


def turns(view: Sequence[Shown]) -> list[Turn]:
    """The view without its system messages, cut before each input and around each block that tells of whole turns.

    Lines of another branch are of no turn: nothing here tells of them, and what is forgotten there is gone here.
    """
    cut: list[list[Shown]] = []
    open_ = False
    for item in view:
        if item.kind == "injected":
            continue
        if item.role == "system":
            open_ = False
            continue
        if item.asks or item.kind in WHOLE or not open_:
            cut.append([])
        cut[-1].append(item)
        open_ = item.kind not in WHOLE
    bonds = _bonds([item for items in cut for item in items])
    return [Turn(tuple(items), _torn(items, bonds)) for items in cut]


def _bonds(items: Sequence[Shown]) -> Mapping[int, Set[int]]:
    """Of each call and each answer the places of its counterparts. An id may come again later; an answer that names no
    call, as transcripts have them, belongs to what stands before it, and so does one whose call is not to be found."""
    waiting: dict[str, int] = {}
    bonds: dict[int, set[int]] = {}
    for item in items:
        if item.answers and (place := waiting.pop(item.answers, None)) is not None:
            bonds.setdefault(place, set()).add(item.first)
            bonds.setdefault(item.first, set()).add(place)
        waiting |= {call.id: item.first for call in item.calls}
    return bonds


def _torn(items: Sequence[Shown], bonds: Mapping[int, Set[int]]) -> Set[int]:
    inside = {item.first for item in items}
    return frozenset(place for place in inside if not bonds.get(place, frozenset()) <= inside)


def groups(turn: Turn) -> Iterator[tuple[Shown, ...]]:
    """The runs of work with tools in a turn, each with whole pairs of calls and answers."""
    bonds = _bonds(turn.items)
    run: list[Shown] = []
    for item in (*turn.items, None):
        if item is not None and item.works:
            run.append(item)
            continue
        if run and not _torn(run, bonds) and not any(one.first in turn.torn for one in run):
            yield tuple(run)
        run = []


def cost(view: Sequence[Shown]) -> int:
    """Tokens of the view, with the marks around its messages."""
    return sum(item.tokens for item in view)


def _line(placed: Placed) -> Shown:
    line = placed.line
    return Shown(
        role=line.role,
        text=line.content,
        tokens=placed.tokens + MESSAGE_TOKENS,
        first=placed.position,
        last=placed.position,
        name=line.name,
        calls=line.calls,
        answers=line.answers,
    )


def _block(entry: Entry, placed: Placed) -> Shown:
    return _instead(entry, _line(placed))


def _instead(entry: Entry, item: Shown) -> Shown:
    """The entry as it is shown in the place of what begins with this; a mask is of this alone and keeps its role."""
    masked = entry.kind == "mask"
    return Shown(
        role=item.role if masked else _ROLES[entry.kind],
        text=entry.text,
        tokens=entry.tokens + MESSAGE_TOKENS,
        first=entry.first,
        last=entry.last,
        kind=entry.kind,
        name=item.name if masked else None,
        calls=in_short(item.calls) if masked else (),
        answers=item.answers if masked else None,
        entry_id=entry.entry_id,
    )


def _aside(one: Injected) -> Shown:
    return Shown(
        role="user",
        text=one.text,
        tokens=one.tokens + MESSAGE_TOKENS,
        first=one.place,
        last=one.place,
        kind="injected",
    )
