"""Rules for summarizing and archiving episodes. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.heart.lifecycle.thresholds import LifecycleThresholds
from newton.memory.transitions import PlannedTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeAge:
    memory_id: UUID
    state: str
    ended_at: datetime


def plan(episodes: Sequence[EpisodeAge], thresholds: LifecycleThresholds, *, now: datetime) -> list[PlannedTransition]:
    """Return the due transitions. The age of an episode is counted from its end."""
    return [step for life in episodes if (step := _plan_transition(life, thresholds, now))]


def _plan_transition(episode: EpisodeAge, thresholds: LifecycleThresholds, now: datetime) -> PlannedTransition | None:
    age = now - episode.ended_at
    if age >= thresholds.episode_archive_after and episode.state != "ARCHIVED":
        return _make_transition(episode, "archived", "ARCHIVED", f"it ended {age.days} days ago; its summary stays")
    if age >= thresholds.episode_summarize_after and episode.state == "ACTIVE":
        return _make_transition(
            episode, "summarized", "SUMMARIZED", f"it ended {age.days} days ago; its beginning stays"
        )
    return None


def _make_transition(episode: EpisodeAge, event: str, to_state: str, reason: str) -> PlannedTransition:
    return PlannedTransition(
        memory_id=episode.memory_id, event=event, from_state=episode.state, to_state=to_state, reason=reason
    )
