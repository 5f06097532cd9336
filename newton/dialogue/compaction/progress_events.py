"""Events that report the progress of a compaction. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted:
    """Event: a strategy started. `current` and `max` are the tokens that a model would be sent, and their limit."""

    strategy: str
    current: int
    max: int
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionProgressed:
    """Event: `processed` of `total` blocks of messages have been shortened, which saved `saved` tokens."""

    strategy: str
    processed: int
    total: int
    saved: int
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCompleted:
    """Event: a strategy ended. It saved `saved` tokens, and `new_count` are left.

    `exhausted` means that they are still over the limit and nothing more can be shortened.
    """

    strategy: str
    saved: int
    new_count: int
    duration_ms: float
    time: datetime
    exhausted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFailed:
    """Event: a strategy or its model failed.

    If only the model fails, the strategy continues without it, and this event is sent once.
    """

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


def ignore_progress(event: object) -> None:
    """Ignore a progress event: the default for callers that show no progress."""


def to_payload(event: CompactionEvent) -> dict[str, object]:
    """Return the event as JSON fields, with its name."""
    return {"event": EVENT_NAMES[type(event)], **asdict(event), "time": event.time.isoformat()}
