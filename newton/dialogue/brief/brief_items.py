"""Types of the items of a brief: goals, deadlines, rules, constraints and open items of a session."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from newton.memory.memory import Trust
from newton.memory.source_marks import describe_source

BriefKind = Literal["goal", "deadline", "rule", "constraint", "open_item"]
BriefStatus = Literal["open", "done", "replaced", "dropped"]
ClosedStatus = Literal["done", "dropped"]  # what a caller can make of an open item
BriefSource = Literal["rules", "model"]  # a model proposes, and code verifies its quotation

BRIEF_KINDS: tuple[BriefKind, ...] = get_args(BriefKind)  # by importance
KIND_LABELS: Mapping[BriefKind, str] = {
    "goal": "Goal",
    "deadline": "Deadline",
    "rule": "Rule",
    "constraint": "Constraint",
    "open_item": "Open",
}


class BriefDraft(NamedTuple):
    """A new goal, deadline, rule, constraint or open item in the words of a message.

    It `is_weak` if only the form of the sentence makes it a goal; then it counts only if the session has no open goal.
    """

    kind: BriefKind
    text: str
    is_weak: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BriefItem:
    """A goal, deadline, rule, constraint or open item, word for word as a message of the session says it.

    `position` is that of the message, `memory_id` its memory; None if it has none. `tokens` counts the item's line in a
    context. `trust` is that of the message. `replaced_by` is the newer item that replaces it.
    """

    item_id: UUID
    kind: BriefKind
    text: str
    tokens: int
    position: int
    source: BriefSource
    memory_id: UUID | None
    said_at: datetime
    trust: Trust = "user"
    status: BriefStatus = "open"
    closed_at: datetime | None = None
    closed_position: int | None = None
    replaced_by: UUID | None = None


def render_brief_line(kind: BriefKind, text: str, said_at: datetime, trust: Trust = "user") -> str:
    """Return the line of an item in a context. A deadline has the day on which it was said, for words such as "Friday".

    An item that is not in a message of the person says whose word it is.

    >>> from datetime import UTC
    >>> render_brief_line("deadline", "It is due on Friday.", datetime(2026, 11, 20, tzinfo=UTC))
    'Deadline (said 2026-11-20): It is due on Friday.'
    """
    day = f"said {said_at:%Y-%m-%d}" if kind == "deadline" else ""
    mark = describe_source(trust, reported=kind != "open_item")  # only open items are also the assistant's
    notes = ", ".join(filter(None, (day, mark)))
    return f"{KIND_LABELS[kind]}{f' ({notes})' if notes else ''}: {text}"
