"""The view of a session that a model is sent: its messages, some replaced by compaction entries. Pure."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeVar
from uuid import UUID

from newton.dialogue.messages import Message, Role, StoredMessage, shorten_calls
from newton.memory.memory import Trust
from newton.providers.chat import ToolCall

EntryKind = Literal["mask", "tools", "turn", "goals", "merged", "task"]
ViewKind = Literal["line", "injected", "left_out", "mask", "tools", "turn", "goals", "merged", "task"]

MESSAGE_TOKENS = 4  # overhead of a message: its role and delimiters

BATCH_KINDS: frozenset[ViewKind] = frozenset({"goals", "merged", "task"})
WHOLE_TURN_KINDS: frozenset[ViewKind] = frozenset({"turn", *BATCH_KINDS})
_SPOKEN_KINDS: frozenset[ViewKind] = frozenset({"line", "mask", "tools"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEntry:
    """A text (such as a summary) that a model is sent in place of the messages `first` to `last`.

    `before` are the tokens of what it replaced. `model` is the model that wrote the text, None if none did.
    """

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
    """Interface of the positions of a compaction entry, without its text."""

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
    """Messages of another session as one text, and the position after which it is shown."""

    position: int
    text: str
    tokens: int


class MemoryBlock(NamedTuple):
    """The text from memory that was sent in front of the words of an input, and its tokens.

    `min_trust` is the lowest trust of the quarantined memories in it; None without any.
    """

    text: str
    tokens: int
    min_trust: Trust | None = None


class ViewMessage(NamedTuple):
    """A message as a model is sent it, and the positions `first` to `last` of the stored messages that it shows.

    `tokens` include the overhead of a message. `ref` is the caller's id, if the message is shown unchanged.
    `is_own_work` marks a call of a tool that Newton ran, or its result. `memory` is the text from memory before an
    input that is shown unchanged; `tokens` include it.
    """

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
    ref: str | None = None
    memory: MemoryBlock | None = None
    is_own_work: bool = False

    @property
    def is_tool_work(self) -> bool:
        """Return True for a message with tool calls and for a tool result."""
        return _is_work(self)

    @property
    def is_history(self) -> bool:
        """Return True for a summary or a quotation of earlier messages."""
        return self.kind not in _SPOKEN_KINDS

    @property
    def is_input(self) -> bool:
        """Return True for a message of a user, with which a turn begins."""
        return self.role == "user" and self.kind in ("line", "mask")


class DialogueTurn(NamedTuple):
    """A user message with all messages up to the next one, or a summary of whole turns.

    `unpaired_positions` are positions of tool calls and results in this turn whose counterpart is elsewhere.
    """

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
        """Return True if the turn begins with a user message, or is a summary of whole turns."""
        return self.items[0].is_input or self.items[0].kind in WHOLE_TURN_KINDS

    @property
    def is_complete(self) -> bool:
        """Return True if the turn has its user message, and each tool call is in the turn together with its result.

        A call that has no result at all is no obstacle, because a late result is sent as a notice.
        """
        return self.has_input and not self.unpaired_positions


def build_view(
    messages: Sequence[StoredMessage], entries: Sequence[CompactionEntry], injections: Sequence[InjectedText] = ()
) -> list[ViewMessage]:
    """Build the view of a session (what a model is sent): each message as it is, or the entry that replaces it, once.

    `messages` must be in order and without gaps. Of the notices, only the calls and results of tools are shown; the
    message before another notice also covers its position.
    """
    blocks = {block.first: block for block in outermost_entries(entries)}
    waiting = deque(sorted(injections, key=lambda one: one.position))
    view: list[ViewMessage] = []
    covered = -1
    for stored in messages:
        if stored.position <= covered:
            continue
        block = blocks.get(stored.position)
        if block or not stored.message.is_notice or _is_work(stored.message):
            message = to_view_message(stored.message, stored.position, stored.tokens)
            view.append(_replace_with_entry(block, message) if block else message)
        elif view and view[-1].kind != "injected":
            view[-1] = view[-1]._replace(last=stored.position)
        covered = block.last if block else stored.position
        # not position by position: an entry may cover most of a long session
        while waiting and waiting[0].position <= covered:
            one = waiting.popleft()
            if one.position >= stored.position:
                view.append(_from_injection(one))
    return view


def add_memory_blocks(view: Sequence[ViewMessage], blocks: Mapping[int, MemoryBlock]) -> list[ViewMessage]:
    """Return the messages for a model with the texts from memory that were sent before unchanged inputs.

    `blocks` are these texts by the positions of the inputs.
    """
    return [
        item._replace(memory=block, tokens=item.tokens + block.tokens)
        if item.is_input and item.kind == "line" and (block := blocks.get(item.first))
        else item
        for item in view
    ]


def apply_entries(view: Sequence[ViewMessage], entries: Sequence[CompactionEntry]) -> list[ViewMessage]:
    """Return the messages for a model after further compaction entries have replaced some of them."""
    by_first = {entry.first: entry for entry in outermost_entries(entries)}
    applied: list[ViewMessage] = []
    last = -1
    for item in view:
        if item.last <= last and item.kind != "injected":
            continue
        entry = by_first.get(item.first) if item.kind != "injected" else None
        applied.append(_replace_with_entry(entry, item) if entry else item)
        last = entry.last if entry else last
    return applied


def outermost_entries(entries: Sequence[E]) -> list[E]:
    """Return the compaction entries that no larger or later one covers."""
    outermost: list[E] = []
    for entry in sorted(entries, key=lambda e: (e.first, -e.last, -e.made_at.timestamp(), -e.entry_id.int)):
        if not outermost or entry.first > outermost[-1].last:
            outermost.append(entry)
    return outermost


def split_turns(view: Sequence[ViewMessage]) -> list[DialogueTurn]:
    """Split the messages for a model into turns: before each user message, and around each summary of whole turns.

    System messages and messages injected from other sessions belong to no turn.
    """
    turns: list[list[ViewMessage]] = []
    open_ = False
    for item in view:
        if item.kind == "injected":
            continue
        if item.role == "system":
            open_ = False
            continue
        if item.is_input or item.kind in WHOLE_TURN_KINDS or not open_:
            turns.append([])
        turns[-1].append(item)
        open_ = item.kind not in WHOLE_TURN_KINDS
    matches = _match_calls([item for items in turns for item in items])
    return [DialogueTurn(tuple(items), _find_unpaired(items, matches)) for items in turns]


def _match_calls(items: Sequence[ViewMessage]) -> Mapping[int, Set[int]]:
    """Map the position of each tool call to those of its results, and the position of each result to that of its call.

    Call ids may be reused. A result without a known call is not mapped.
    """
    waiting: dict[str, int] = {}
    matches: dict[int, set[int]] = {}
    for item in items:
        if item.tool_call_id and (place := waiting.pop(item.tool_call_id, None)) is not None:
            matches.setdefault(place, set()).add(item.first)
            matches.setdefault(item.first, set()).add(place)
        waiting |= {call.id: item.first for call in item.calls}
    return matches


def _find_unpaired(items: Sequence[ViewMessage], matches: Mapping[int, Set[int]]) -> Set[int]:
    inside = {item.first for item in items}
    return frozenset(place for place in inside if not matches.get(place, frozenset()) <= inside)


def iter_tool_groups(turn: DialogueTurn) -> Iterator[tuple[ViewMessage, ...]]:
    """Yield each group of consecutive tool calls and results of a turn in which every call has its result."""
    matches = _match_calls(turn.items)
    run: list[ViewMessage] = []
    for item in (*turn.items, None):
        if item is not None and item.is_tool_work:
            run.append(item)
            continue
        if run and not _find_unpaired(run, matches) and not any(one.first in turn.unpaired_positions for one in run):
            yield tuple(run)
        run = []


def count_view_tokens(view: Sequence[ViewMessage]) -> int:
    """Return the tokens of the messages, their overhead included."""
    return sum(item.tokens for item in view)


def to_view_message(line: Message, position: int, tokens: int) -> ViewMessage:
    """Convert a stored message to a message for a model. `tokens` counts its text and calls, without overhead."""
    return ViewMessage(
        role=line.role,
        text=line.content,
        tokens=tokens + MESSAGE_TOKENS,
        first=position,
        last=position,
        name=line.name,
        calls=line.calls,
        tool_call_id=line.tool_call_id,
        ref=line.ref,
        is_own_work=line.is_notice and _is_work(line),
    )


def _is_work(line: "Message | ViewMessage") -> bool:
    return bool(line.calls) or line.role == "tool"


def _replace_with_entry(entry: CompactionEntry, item: ViewMessage) -> ViewMessage:
    """Return the message that shows `entry` in place of `item`.

    A shortened message (mask) keeps its role and calls. A summary of tool work has the role assistant, other entries
    have the role user.
    """
    is_mask = entry.kind == "mask"
    return ViewMessage(
        role=item.role if is_mask else "assistant" if entry.kind == "tools" else "user",
        text=entry.text,
        tokens=entry.tokens + MESSAGE_TOKENS,
        first=entry.first,
        last=entry.last,
        kind=entry.kind,
        name=item.name if is_mask else None,
        calls=shorten_calls(item.calls) if is_mask else (),
        tool_call_id=item.tool_call_id if is_mask else None,
        entry_id=entry.entry_id,
        is_own_work=is_mask and item.is_own_work,
    )


def _from_injection(injection: InjectedText) -> ViewMessage:
    position, tokens = injection.position, injection.tokens + MESSAGE_TOKENS
    return ViewMessage("user", injection.text, tokens, position, position, kind="injected")
