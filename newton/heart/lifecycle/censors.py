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
    return [step for life in records if (step := _plan_transition(life, thresholds))]


def _plan_transition(record: CensorRecord, thresholds: LifecycleThresholds) -> PlannedTransition | None:
    if record.state == "RETIRED":
        return None
    if record.retired:
        return _make_transition(record, "retired", "RETIRED", "a person took it out of force")
    wrong, met = record.false_positives, record.activations
    if met >= thresholds.censor_min_uses and wrong / met > thresholds.censor_max_false_positive_rate:
        return _make_transition(record, "retired", "RETIRED", f"{wrong} of {met} activations were false")
    if record.state != "ESCALATED" and met - wrong >= record.threshold:
        return _make_transition(
            record, "escalated", "ESCALATED", f"met {met - wrong} times in earnest; it blocks from now on"
        )
    if record.state == "CREATED" and met:
        return _make_transition(record, "triggered", "ACTIVE", "it was met")
    return None


def _make_transition(record: CensorRecord, event: str, to_state: str, reason: str) -> PlannedTransition:
    return PlannedTransition(
        memory_id=record.memory_id, event=event, from_state=record.state, to_state=to_state, reason=reason
    )
