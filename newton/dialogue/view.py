"""The view of a session that a model gets: its log, with compaction entries in place of what they cover. Pure."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeVar
from uuid import UUID

from newton.dialogue.messages import Message, Role, StoredMessage, shorten_calls
from newton.providers.chat import ToolCall

EntryKind = Literal["mask", "tools", "turn", "goals", "merged", "task"]
ViewKind = Literal["line", "injected", "left_out", "mask", "tools", "turn", "goals", "merged", "task"]

MESSAGE_TOKENS = 4  # overhead of a message: its role and delimiters

BATCH_KINDS: frozenset[ViewKind] = frozenset({"goals", "merged", "task"})
WHOLE_TURN_KINDS: frozenset[ViewKind] = frozenset({"turn", *BATCH_KINDS})
_SPOKEN_KINDS: frozenset[ViewKind] = frozenset({"line", "mask", "tools"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEntry:
    """A text shown in place of the messages `first` to `last`.

    `before` is the tokens shown there before; `model` is None if no model wrote the text."""

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
    """The positions of an entry, without its text."""

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
    """Messages of another session, rendered, and the position after which they are shown."""

    position: int
    text: str
    tokens: int


class ViewMessage(NamedTuple):
    """One message of a view, its tokens with overhead, and the log positions that it covers.

    `ref` is the caller's id of a message that is shown as it is."""

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

    @property
    def is_tool_work(self) -> bool:
        """Return whether it has tool calls or is a tool result."""
        return bool(self.calls) or self.role == "tool"

    @property
    def is_history(self) -> bool:
        """Return whether it summarizes or quotes earlier messages."""
        return self.kind not in _SPOKEN_KINDS

    @property
    def is_input(self) -> bool:
        """Return whether it is a user message, which begins a turn."""
        return self.role == "user" and self.kind in ("line", "mask")


class DialogueTurn(NamedTuple):
    """A user input with all that follows it, or a block that summarizes whole turns.

    `unpaired_positions` are tool calls and results whose counterparts are outside."""

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
        """Return whether it begins with an input or summarizes whole turns."""
        return self.items[0].is_input or self.items[0].kind in WHOLE_TURN_KINDS

    @property
    def is_complete(self) -> bool:
        """Return whether it has its input and every tool call has its result.

        An unanswered call counts as ended: a late result is sent as a notice."""
        return self.has_input and not self.unpaired_positions


def build_view(
    messages: Sequence[StoredMessage], entries: Sequence[CompactionEntry], injections: Sequence[InjectedText] = ()
) -> list[ViewMessage]:
    """Return the view: every message once, as itself or within the entry that covers it.

    `messages` are in order, without gaps. Notices are not shown: the message before them covers their positions."""
    blocks = {block.first: block for block in outermost_entries(entries)}
    waiting = deque(sorted(injections, key=lambda one: one.position))
    view: list[ViewMessage] = []
    covered = -1
    for stored in messages:
        if stored.position <= covered:
            continue
        block = blocks.get(stored.position)
        if block or not stored.message.is_notice:
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


def apply_entries(view: Sequence[ViewMessage], entries: Sequence[CompactionEntry]) -> list[ViewMessage]:
    """Return the view with these entries applied."""
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
    """Return the entries whose messages no later entry covers."""
    outermost: list[E] = []
    for entry in sorted(entries, key=lambda e: (e.first, -e.last, -e.made_at.timestamp(), -e.entry_id.int)):
        if not outermost or entry.first > outermost[-1].last:
            outermost.append(entry)
    return outermost


def split_turns(view: Sequence[ViewMessage]) -> list[DialogueTurn]:
    """Split the view before each input and around each block of whole turns.

    System messages and messages injected from other sessions belong to no turn."""
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
    """Map the position of each call and result to those of its counterparts.

    Call ids may be reused. A result without a known call is matched with nothing."""
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
    """Yield each group of consecutive tool calls and results in a turn in which every call has its result."""
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
    """Return the tokens of the view, with overhead."""
    return sum(item.tokens for item in view)


def to_view_message(line: Message, position: int, tokens: int) -> ViewMessage:
    """Return a message as it is shown. `tokens` counts its content and calls."""
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
    )


def _replace_with_entry(entry: CompactionEntry, item: ViewMessage) -> ViewMessage:
    """Return the entry as a message that replaces `item`.

    A mask keeps the role and the calls. A summary of tool work is the assistant's message, others are the user's."""
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
    )


def _from_injection(injection: InjectedText) -> ViewMessage:
    position, tokens = injection.position, injection.tokens + MESSAGE_TOKENS
    return ViewMessage("user", injection.text, tokens, position, position, kind="injected")
