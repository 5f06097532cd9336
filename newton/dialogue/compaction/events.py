"""What is told of a compaction while it runs. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A strategy begins: the tokens of the view, and the most that it may cost."""

    strategy: str
    current: int
    max: int
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed:
    """So many of its blocks are told shorter, which saved so many tokens until now."""

    strategy: str
    processed: int
    total: int
    saved: int
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """It has ended. `exhausted`: the view is still as full as what made it run, and nothing in it can be shortened."""

    strategy: str
    saved: int
    new_count: int
    duration_ms: float
    time: datetime
    exhausted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """It did not come to its end, and why; or its model failed, so that it goes on without, which is told once."""

    strategy: str
    error: str
    time: datetime


Event = Started | Progressed | Completed | Failed

NAMES: Mapping[type[Event], str] = {
    Started: "context_summarization_start",
    Progressed: "context_summarization_progress",
    Completed: "context_summarization_complete",
    Failed: "context_summarization_error",
}
KINDS: Mapping[str, type[Event]] = {name: kind for kind, name in NAMES.items()}


def payload(event: Event) -> dict[str, object]:
    """The event with its name, as programs read it."""
    return {"event": NAMES[type(event)], **asdict(event), "time": event.time.isoformat()}
