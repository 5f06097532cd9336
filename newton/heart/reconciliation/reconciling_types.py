"""Types of a reconciliation: new lines and known items, the changes that a model proposes, and the checked ones."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from typing import Literal, get_args
from uuid import UUID

from newton.memory.memory import Trust

LineSource = Literal["person", "assistant", "foreign"]
KnownKind = Literal["fact", "procedure", "decision", "rule", "wish", "open"]
Operation = Literal[
    "add",
    "confirm",
    "update",
    "end",
    "retract",
    "hide",
    "same",
    "both",
    "newer",
    "not_asserted",
    "unsure",
    "rule",
    "wish",
    "decision",
    "procedure",
    "episode",
]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
# The names under which a model sees an operation; it sees no others.
SHOWN_OPERATIONS: Mapping[str, Operation] = {
    "add": "add",
    "update": "update",
    "confirm": "confirm",
    "end": "end",
    "retract": "retract",
    "hide": "hide",
    "unsure": "unsure",
    "drop": "not_asserted",
    "rule": "rule",
    "wish": "wish",
    "decision": "decision",
    "procedure": "procedure",
    "episode": "episode",
}
DropReason = Literal[
    "unknown operation",
    "unknown line",
    "line already read",
    "unknown known item",
    "no known item",
    "wrong kind of known item",
    "no text",
    "text too long",
    "not a line of a person",
    "not a line of the user",
    "off the record",
    "older than the known item",
    "not supported by the line",
    "line not about the known item",
    "not the same statement",
    "not a doubtful pair",
    "repeated",
    "too many",
]
Weakening = Literal[
    "words of the line instead of the text",
    "day left out",
    "known item of higher trust",
    "known item needs a person",
    "line does not say the change",
    "too many ended at once",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLine:
    """A line of a conversation. `number_batch` sets its number.

    `is_user` is True if the user, not another person, said it in the user's own session. `is_read` marks a line that
    was read before and only gives context. `is_imported` marks a line of an import, whose rules and wishes a person
    must approve. `foreign_kind` says what a foreign text is, such as "web page". `is_hidden` marks a line that a person
    asked not to keep.
    """

    text: str
    speaker: str
    source: LineSource
    is_user: bool
    said_at: datetime
    trust: Trust
    origin: str
    memory_id: UUID
    is_read: bool = False
    is_imported: bool = False
    foreign_kind: str = ""
    is_hidden: bool = False
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownItem:
    """A known item near the lines. `number_batch` sets its label, such as "F1".

    `day` is the day on which it was last stated, in the user's time zone. `similarities` are the cosine similarities of
    its vector to those of the texts of lines, without their speakers, by the `memory_id` of the line. `is_vouched`
    means that a person confirmed it. `doubtful_with` are the items that it may contradict, according to a classifier.
    `drafted_by` is the `memory_id` of the new line from which it was stored, if no other line states it.
    """

    kind: KnownKind
    item_id: UUID
    text: str
    day: date
    state: str
    trust: Trust
    subject: str = ""
    attribute: str = ""
    is_vouched: bool = False
    similarities: Mapping[UUID, float] = field(default_factory=dict[UUID, float])
    doubtful_with: frozenset[UUID] = frozenset()
    drafted_by: UUID | None = None
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilingInput:
    """New lines in the order of time, with the known items near them.

    `now` is the time of the call, in the user's time zone.
    """

    user_name: str
    aliases: tuple[str, ...]
    known: tuple[KnownItem, ...]
    lines: tuple[NewLine, ...]
    now: datetime

    @property
    def zone(self) -> tzinfo | None:
        """Return the user's time zone; None if `now` has none."""
        return self.now.tzinfo

    @property
    def user_names(self) -> tuple[str, ...]:
        return tuple(name for name in (self.user_name, *self.aliases) if name)

    def list_drafts(self, line: NewLine) -> list[KnownItem]:
        """Return the facts that are sentences of a new line, without those that a known rule repeats."""
        is_new = not line.is_read
        return [item for item in self.known if is_new and item.label and item.drafted_by == line.memory_id]

    def day_of(self, line: NewLine) -> date:
        """Return the day on which a line was said, in the user's time zone."""
        return line.said_at.astimezone(self.zone).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedItem:
    """An item of a model's answer, as the model wrote it."""

    line: int
    op: str
    ids: tuple[str, ...] = ()
    text: str = ""
    subject: str = ""
    when: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedItem:
    """A change to apply with the trust, speaker and time of its line; `line` is None for changes of known items alone.

    `text` is the text to store. For a new rule or wish it has the person's own words, and `title` the model's text.
    `when` is the day on which the change begins or ends, possibly in the future; None if the line does not say it. With
    `contests`, the known items are not changed, only marked as in doubt. With `needs_approval`, a rule or wish waits
    for a person. `weakened` lists what the checks changed.
    """

    op: Operation
    line: NewLine | None
    known: tuple[KnownItem, ...] = ()
    text: str = ""
    title: str = ""
    subject: str = ""
    when: date | None = None
    contests: bool = False
    needs_approval: bool = False
    weakened: tuple[Weakening, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedItem:
    """An item that was dropped, and why."""

    item: ProposedItem
    reason: DropReason


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAnswer:
    """The items of an answer that were kept, in the order of their lines, and those that were dropped.

    `user_names` are the names of the user, including those in the answer.
    """

    kept: tuple[CheckedItem, ...]
    dropped: tuple[DroppedItem, ...]
    user_names: tuple[str, ...] = ()

    def count_drops(self) -> Counter[DropReason]:
        """Return the number of dropped items by reason."""
        return Counter[DropReason](dropped.reason for dropped in self.dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAnswer:
    """The items of an answer. `is_readable` is False if it has none and does not say that nothing changes.

    `malformed` counts the parts of its list that are not items. `is_cut` means that the text ends within it.
    """

    items: Sequence[ProposedItem]
    is_readable: bool
    malformed: int = 0
    is_cut: bool = False
