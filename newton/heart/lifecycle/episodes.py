"""Rules for summarizing and archiving episodes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.heart.lifecycle.thresholds import LifecycleThresholds
from newton.memory.store import PlannedTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeAge:
    """An episode with its state and the time of its end."""

    memory_id: UUID
    state: str
    ended_at: datetime


def plan(episodes: Sequence[EpisodeAge], thresholds: LifecycleThresholds, *, now: datetime) -> list[PlannedTransition]:
    """Return the state transitions that are due. The age of an episode is counted from its end."""
    return [step for episode in episodes if (step := _plan_transition(episode, thresholds, now))]


def _plan_transition(episode: EpisodeAge, thresholds: LifecycleThresholds, now: datetime) -> PlannedTransition | None:
    age = now - episode.ended_at
    if age >= thresholds.episode_archive_after and episode.state != "ARCHIVED":
        reason = f"it ended {age.days} days ago; its full text is archived"
        return PlannedTransition(episode.memory_id, "archived", episode.state, "ARCHIVED", reason)
    if age >= thresholds.episode_summarize_after and episode.state == "ACTIVE":
        reason = f"it ended {age.days} days ago; only the beginning of its text is kept"
        return PlannedTransition(episode.memory_id, "summarized", episode.state, "SUMMARIZED", reason)
    return None
