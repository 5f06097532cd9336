"""What is told of a compaction while it runs. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted:
    """A strategy begins: the tokens of the view, and the most that it may cost."""

    strategy: str
    current: int
    max: int
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionProgressed:
    """So many of its blocks are told shorter, which saved so many tokens until now."""

    strategy: str
    processed: int
    total: int
    saved: int
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCompleted:
    """It has ended. `exhausted`: the view is still as full as what made it run, and nothing in it can be shortened."""

    strategy: str
    saved: int
    new_count: int
    duration_ms: float
    time: datetime
    exhausted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFailed:
    """It did not come to its end, and why; or its model failed, so that it goes on without, which is told once."""

    strategy: str
    error: str
    time: datetime


CompactionEvent = CompactionStarted | CompactionProgressed | CompactionCompleted | CompactionFailed

EVENT_NAMES: Mapping[type[CompactionEvent], str] = {
    CompactionStarted: "context_summarization_start",
    CompactionProgressed: "context_summarization_progress",
    CompactionCompleted: "context_summarization_complete",
    CompactionFailed: "context_summarization_error",
}
EVENT_TYPES: Mapping[str, type[CompactionEvent]] = {name: kind for kind, name in EVENT_NAMES.items()}


def to_payload(event: CompactionEvent) -> dict[str, object]:
    """The event with its name, as programs read it."""
    return {"event": EVENT_NAMES[type(event)], **asdict(event), "time": event.time.isoformat()}
