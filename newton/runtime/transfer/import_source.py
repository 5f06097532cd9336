"""The sources of an import: where its items come from, and what they are worth."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from newton.brain.codec import NewDecision
from newton.errors import InputError, NewtonError
from newton.heart.facts.fact_store import NewFact
from newton.memory.memory import Trust
from newton.memory.redaction.tally import Redactions
from newton.runtime.transfer.import_lines import DocumentItem, ImportItem, MessageItem


class SourceEntry(NamedTuple):
    """An entry of a source: its place, its size in bytes, and its item or the error because of which it is left out.

    `place` names the entry for people, as in "line 17" or "conversations.json, entry 3".
    """

    place: str
    size: int
    item: ImportItem | NewtonError


class RejectedEntry(NamedTuple):
    """The place of an entry that cannot be imported, and the reason."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSource:
    """A source of items to import.

    `format` names it for people, as in "an export of ChatGPT". `trust` is that of its facts and documents; a message
    has the trust of its role. `read` yields the entries from the beginning each time it is called;
    `passed_over` counts what the last complete reading left out on purpose, by reason. With `is_counted`, its contents
    are shown before they are imported.
    """

    format: str
    read: Callable[[], Iterator[SourceEntry]]
    is_counted: bool = True
    trust: Trust = "user"
    passed_over: Counter[str] = field(default_factory=Counter[str])


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """The counts of an import. `redacted` counts the secrets that were removed from the entries, by kind.

    `embedder_error` is the reason if the embedder failed, else None.
    """

    new: int = 0
    unchanged: int = 0
    episodes: int = 0
    embedded: int = 0
    redacted: Redactions = field(default_factory=dict[str, int])
    rejections: list[RejectedEntry] = field(default_factory=list[RejectedEntry])
    embedder_error: str | None = None


@dataclass(slots=True)
class SourceSummary:
    """The counts of a source: its items by kind, the rejected entries, and the first and last time."""

    sessions: int = 0
    messages: int = 0
    facts: int = 0
    documents: int = 0
    decisions: int = 0
    others: int = 0
    rejections: list[RejectedEntry] = field(default_factory=list[RejectedEntry])
    first: datetime | None = None
    last: datetime | None = None

    @property
    def rejected(self) -> int:
        """Return the number of rejected entries."""
        return len(self.rejections)

    @property
    def total(self) -> int:
        """Return the number of entries, those that are rejected included."""
        return self.messages + self.facts + self.documents + self.decisions + self.others + self.rejected


def summarize_source(source: ImportSource) -> SourceSummary:
    """Read a source to its end and count its items. Raises InputError if it has none."""
    summary, sessions = SourceSummary(), set[str]()
    for place, _, item in source.read():
        match item:
            case NewtonError():
                summary.rejections.append(RejectedEntry(place, str(item)))
            case MessageItem():
                sessions.add(item.session)
                summary.messages += 1
                _widen(summary, item.message.said_at)
            case NewFact():
                summary.facts += 1
                _widen(summary, item.valid_from)
            case DocumentItem():
                summary.documents += 1
            case NewDecision():
                summary.decisions += 1
                _widen(summary, item.draft.at)
            case _:
                summary.others += 1
    summary.sessions = len(sessions)
    if not summary.total and not source.passed_over:
        raise InputError(
            f"The file looks like {source.format}, but has nothing to import.",
            hint="Export it again, or check that the export has conversations.",
        )
    return summary


def _widen(summary: SourceSummary, time: datetime | None) -> None:
    if time is not None:
        summary.first = min(summary.first or time, time)
        summary.last = max(summary.last or time, time)
