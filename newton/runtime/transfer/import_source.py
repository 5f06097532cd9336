"""The sources of an import: where its items come from, and what they are worth."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from newton.errors import InputError, NewtonError
from newton.heart.facts.fact_store import NewFact
from newton.memory.memory import Trust
from newton.runtime.transfer.import_lines import DocumentItem, ImportItem, MessageItem

SourceLine = tuple[int, int, ImportItem | NewtonError]  # its number from 1, its size in bytes, and its item


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSource:
    """A source of items to import.

    `format` names it for people, as in "an export of ChatGPT", and `unit` what its numbers count ("line", "item").
    `trust` is that of its facts; a message has the trust of its role. `read` yields the items from the beginning each
    time it is called; `passed_over`, if given, counts what the last complete reading left out, by reason.
    """

    format: str
    read: Callable[[], Iterator[SourceLine]]
    unit: str = "item"
    trust: Trust = "user"
    passed_over: Counter[str] = field(default_factory=Counter[str])


@dataclass(slots=True)
class SourceSummary:
    """The counts of a source: sessions, messages, facts and documents, rejected items, and the first and last time."""

    sessions: int = 0
    messages: int = 0
    facts: int = 0
    documents: int = 0
    others: int = 0
    rejected: int = 0
    first: datetime | None = None
    last: datetime | None = None

    @property
    def total(self) -> int:
        """Return the number of items, those that are rejected included."""
        return self.messages + self.facts + self.documents + self.others + self.rejected


def summarize_source(source: ImportSource) -> SourceSummary:
    """Read a source to its end and count its items. Raises InputError if it has none."""
    summary, sessions = SourceSummary(), set[str]()
    for _, _, item in source.read():
        match item:
            case NewtonError():
                summary.rejected += 1
            case MessageItem():
                sessions.add(item.session)
                summary.messages += 1
                _widen(summary, item.message.said_at)
            case NewFact():
                summary.facts += 1
                _widen(summary, item.valid_from)
            case DocumentItem():
                summary.documents += 1
            case _:
                summary.others += 1
    summary.sessions = len(sessions)
    if not summary.total:
        raise InputError(
            f"The file looks like {source.format}, but has nothing to import.",
            hint="Export it again, or check that the export has conversations.",
        )
    return summary


def _widen(summary: SourceSummary, time: datetime | None) -> None:
    if time is not None:
        summary.first = min(summary.first or time, time)
        summary.last = max(summary.last or time, time)
