"""What a model is shown of a conversation: its log, with compactions in the place of what they cover. Pure."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeVar
from uuid import UUID

from newton.dialogue.messages import Role, StoredMessage, shorten_calls
from newton.providers.chat import ToolCall

EntryKind = Literal["mask", "tools", "turn", "goals", "merged", "task"]
ViewKind = Literal["line", "injected", "left_out", "mask", "tools", "turn", "goals", "merged", "task"]

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
WHOLE_TURN_KINDS: frozenset[ViewKind] = frozenset({"turn", "goals", "merged", "task"})
_SPOKEN_KINDS: frozenset[ViewKind] = frozenset({"line", "mask", "tools"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEntry:
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


class EntryRange(Protocol):
    """What an entry is by its place alone."""

    @property
    def entry_id(self) -> UUID: ...
    @property
    def first(self) -> int: ...
    @property
    def last(self) -> int: ...
    @property
    def made_at(self) -> datetime: ...


E = TypeVar("E", bound=EntryRange)


class InjectedText(NamedTuple):
    """Lines of another branch that are shown behind a place of this one, with what the branch is called."""

    position: int
    text: str
    tokens: int


class ViewMessage(NamedTuple):
    """One message of a view, its tokens with the marks around it, and the lines of the log that it stands for."""

    role: Role
    text: str
    tokens: int
    first: int
    last: int
    kind: ViewKind = "line"
    name: str | None = None
    calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    entry_id: UUID | None = None

    @property
    def is_tool_work(self) -> bool:
        """Whether it is a step of work with tools: a call, or what came of one."""
        return bool(self.calls) or self.role == "tool"

    @property
    def is_history(self) -> bool:
        """Whether it tells of what was: nobody says it to the model at this place of the conversation."""
        return self.kind not in _SPOKEN_KINDS

    @property
    def is_input(self) -> bool:
        """Whether a turn begins with it: something that a person said."""
        return self.role == "user" and self.kind in ("line", "mask")


class DialogueTurn(NamedTuple):
    """What belongs to one input: the input and all that came of it, or a block that tells of it. `torn` are the places
    of the calls and answers in it whose counterparts are outside."""

    items: tuple[ViewMessage, ...]
    unpaired_positions: Set[int] = frozenset()

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
    def has_input(self) -> bool:
        """Whether it holds the input, so that it may be told of as a whole."""
        return self.items[0].is_input or self.items[0].kind in WHOLE_TURN_KINDS

    @property
    def is_complete(self) -> bool:
        """Whether no call is in it without its answer, or the other way round. A call that nobody has answered has
        ended: nothing waits for it, and an answer that comes late is told as a report."""
        return self.has_input and not self.unpaired_positions


def build_view(
    messages: Sequence[StoredMessage], entries: Sequence[CompactionEntry], injections: Sequence[InjectedText] = ()
) -> list[ViewMessage]:
    """The view: every line once, by itself or by the block that covers it. The log is in its order, without gaps.

    Asides are not shown: what stands before them stands for their places too, so that the view has no gap.
    """
    blocks = {block.first: block for block in outermost_entries(entries)}
    aside: dict[int, list[InjectedText]] = {}
    for one in injections:
        aside.setdefault(one.position, []).append(one)
    view: list[ViewMessage] = []
    covered = -1
    for placed in messages:
        if placed.position <= covered:
            continue
        block = blocks.get(placed.position)
        if block or not placed.message.is_notice:
            view.append(_from_entry(block, placed) if block else _from_message(placed))
        elif view and view[-1].kind != "injected":
            view[-1] = view[-1]._replace(last=placed.position)
        covered = block.last if block else placed.position
        view += [_from_injection(one) for place in range(placed.position, covered + 1) for one in aside.get(place, ())]
    return view


def apply_entries(view: Sequence[ViewMessage], entries: Sequence[CompactionEntry]) -> list[ViewMessage]:
    """The view with these entries in the place of what they cover, as it will be shown when they are kept."""
    made = {entry.first: entry for entry in outermost_entries(entries)}
    told: list[ViewMessage] = []
    last = -1
    for item in view:
        if item.last <= last and item.kind != "injected":
            continue
        entry = made.get(item.first) if item.kind != "injected" else None
        told.append(_replace_with_entry(entry, item) if entry else item)
        last = entry.last if entry else last
    return told


def outermost_entries(entries: Sequence[E]) -> list[E]:
    """The entries that count: what a later one covers is told by that one, until it is dropped."""
    taken: list[E] = []
    for entry in sorted(entries, key=lambda e: (e.first, -e.last, -e.made_at.timestamp(), -e.entry_id.int)):
        if not taken or entry.first > taken[-1].last:
            taken.append(entry)
    return taken


def split_turns(view: Sequence[ViewMessage]) -> list[DialogueTurn]:
    """The view without its system messages, cut before each input and around each block that tells of whole turns.

    Lines of another branch are of no turn: nothing here tells of them, and what is forgotten there is gone here.
    """
    cut: list[list[ViewMessage]] = []
    open_ = False
    for item in view:
        if item.kind == "injected":
            continue
        if item.role == "system":
            open_ = False
            continue
        if item.is_input or item.kind in WHOLE_TURN_KINDS or not open_:
            cut.append([])
        cut[-1].append(item)
        open_ = item.kind not in WHOLE_TURN_KINDS
    bonds = _match_calls([item for items in cut for item in items])
    return [DialogueTurn(tuple(items), _find_unpaired(items, bonds)) for items in cut]


def _match_calls(items: Sequence[ViewMessage]) -> Mapping[int, Set[int]]:
    """Of each call and each answer the places of its counterparts. An id may come again later; an answer that names no
    call, as transcripts have them, belongs to what stands before it, and so does one whose call is not to be found."""
    waiting: dict[str, int] = {}
    bonds: dict[int, set[int]] = {}
    for item in items:
        if item.tool_call_id and (place := waiting.pop(item.tool_call_id, None)) is not None:
            bonds.setdefault(place, set()).add(item.first)
            bonds.setdefault(item.first, set()).add(place)
        waiting |= {call.id: item.first for call in item.calls}
    return bonds


def _find_unpaired(items: Sequence[ViewMessage], matches: Mapping[int, Set[int]]) -> Set[int]:
    inside = {item.first for item in items}
    return frozenset(place for place in inside if not matches.get(place, frozenset()) <= inside)


def iter_tool_groups(turn: DialogueTurn) -> Iterator[tuple[ViewMessage, ...]]:
    """The runs of work with tools in a turn, each with whole pairs of calls and answers."""
    bonds = _match_calls(turn.items)
    run: list[ViewMessage] = []
    for item in (*turn.items, None):
        if item is not None and item.is_tool_work:
            run.append(item)
            continue
        if run and not _find_unpaired(run, bonds) and not any(one.first in turn.unpaired_positions for one in run):
            yield tuple(run)
        run = []


def count_view_tokens(view: Sequence[ViewMessage]) -> int:
    """Tokens of the view, with the marks around its messages."""
    return sum(item.tokens for item in view)


def _from_message(stored: StoredMessage) -> ViewMessage:
    line = stored.message
    return ViewMessage(
        role=line.role,
        text=line.content,
        tokens=stored.tokens + MESSAGE_TOKENS,
        first=stored.position,
        last=stored.position,
        name=line.name,
        calls=line.calls,
        tool_call_id=line.tool_call_id,
    )


def _from_entry(entry: CompactionEntry, stored: StoredMessage) -> ViewMessage:
    return _replace_with_entry(entry, _from_message(stored))


def _replace_with_entry(entry: CompactionEntry, item: ViewMessage) -> ViewMessage:
    """The entry as it is shown in the place of what begins with this; a mask is of this alone and keeps its role."""
    masked = entry.kind == "mask"
    return ViewMessage(
        role=item.role if masked else _ROLES[entry.kind],
        text=entry.text,
        tokens=entry.tokens + MESSAGE_TOKENS,
        first=entry.first,
        last=entry.last,
        kind=entry.kind,
        name=item.name if masked else None,
        calls=shorten_calls(item.calls) if masked else (),
        tool_call_id=item.tool_call_id if masked else None,
        entry_id=entry.entry_id,
    )


def _from_injection(injection: InjectedText) -> ViewMessage:
    return ViewMessage(
        role="user",
        text=injection.text,
        tokens=injection.tokens + MESSAGE_TOKENS,
        first=injection.position,
        last=injection.position,
        kind="injected",
    )
