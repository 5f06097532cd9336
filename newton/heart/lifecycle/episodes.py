"""When an episode gives up its details. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.heart.lifecycle.thresholds import Thresholds
from newton.memory.transitions import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    memory_id: UUID
    state: str
    ended_at: datetime


def plan(lives: Sequence[Life], thresholds: Thresholds, *, now: datetime) -> list[Step]:
    """The steps that are due: an episode is as old as its end."""
    return [step for life in lives if (step := _due(life, thresholds, now))]


def _due(life: Life, thresholds: Thresholds, now: datetime) -> Step | None:
    age = now - life.ended_at
    if age >= thresholds.archived_after and life.state != "ARCHIVED":
        return _step(life, "archived", "ARCHIVED", f"it ended {age.days} days ago; its summary stays")
    if age >= thresholds.summarized_after and life.state == "ACTIVE":
        return _step(life, "summarized", "SUMMARIZED", f"it ended {age.days} days ago; its beginning stays")
    return None


def _step(life: Life, event: str, after: str, because: str) -> Step:
    return Step(memory_id=life.memory_id, event=event, before=life.state, after=after, because=because)
