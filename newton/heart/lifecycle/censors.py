"""When a censor grows stricter, and when it is wrong too often. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.heart.lifecycle.thresholds import Thresholds
from newton.memory.transitions import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A censor with its record. `retired` is whether a person took it out of force."""

    memory_id: UUID
    state: str
    retired: bool
    threshold: int
    activations: int
    false_positives: int


def plan(lives: Sequence[Life], thresholds: Thresholds) -> list[Step]:
    """The steps that are due, at most one for each censor."""
    return [step for life in lives if (step := _due(life, thresholds))]


def _due(life: Life, thresholds: Thresholds) -> Step | None:
    if life.state == "RETIRED":
        return None
    if life.retired:
        return _step(life, "retired", "RETIRED", "a person took it out of force")
    wrong, met = life.false_positives, life.activations
    if met >= thresholds.censor_trials and wrong / met > thresholds.false_positives_above:
        return _step(life, "retired", "RETIRED", f"{wrong} of {met} activations were false")
    if life.state != "ESCALATED" and met - wrong >= life.threshold:
        return _step(life, "escalated", "ESCALATED", f"met {met - wrong} times in earnest; it blocks from now on")
    if life.state == "CREATED" and met:
        return _step(life, "triggered", "ACTIVE", "it was met")
    return None


def _step(life: Life, event: str, after: str, because: str) -> Step:
    return Step(memory_id=life.memory_id, event=event, before=life.state, after=after, because=because)
