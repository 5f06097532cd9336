"""Rules for escalating and retiring censors. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.heart.lifecycle.thresholds import LifecycleThresholds
from newton.memory.transitions import PlannedTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class CensorRecord:
    """A censor with its statistics. `retired` is True when a person retired it."""

    memory_id: UUID
    state: str
    retired: bool
    threshold: int
    activations: int
    false_positives: int


def plan(records: Sequence[CensorRecord], thresholds: LifecycleThresholds) -> list[PlannedTransition]:
    """Return the due transitions, at most one per censor."""
    return [step for record in records if (step := _plan_transition(record, thresholds))]


def _plan_transition(record: CensorRecord, thresholds: LifecycleThresholds) -> PlannedTransition | None:
    if record.state == "RETIRED":
        return None
    if record.retired:
        return PlannedTransition(record.memory_id, "retired", record.state, "RETIRED", "a person retired it")
    wrong, total = record.false_positives, record.activations
    if total >= thresholds.censor_min_uses and wrong / total > thresholds.censor_max_false_positive_rate:
        reason = f"{wrong} of {total} matches were false positives"
        return PlannedTransition(record.memory_id, "retired", record.state, "RETIRED", reason)
    if record.state != "ESCALATED" and total - wrong >= record.threshold:
        reason = f"it matched correctly {total - wrong} times; from now on it blocks"
        return PlannedTransition(record.memory_id, "escalated", record.state, "ESCALATED", reason)
    if record.state == "CREATED" and total:
        return PlannedTransition(record.memory_id, "triggered", record.state, "ACTIVE", "it matched for the first time")
    return None
