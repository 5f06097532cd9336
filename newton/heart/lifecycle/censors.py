"""Rules on when a censor is escalated (made blocking), relaxed (made a warning again) and retired. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.heart.lifecycle.thresholds import LifecycleThresholds
from newton.memory.store import PlannedTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class CensorRecord:
    """A censor with its statistics since it was last made a warning. `retired` is True if a person retired it.

    `escalated_by_matches` is False if a person made it blocking.
    """

    memory_id: UUID
    state: str
    retired: bool
    threshold: int
    activations: int
    false_positives: int
    escalated_by_matches: bool = False


def plan(records: Sequence[CensorRecord], thresholds: LifecycleThresholds) -> list[PlannedTransition]:
    """Return the state transitions that are due, at most one for each censor."""
    active = (record for record in records if record.state != "RETIRED")
    return [step for record in active if (step := _plan_transition(record, thresholds))]


def _plan_transition(record: CensorRecord, thresholds: LifecycleThresholds) -> PlannedTransition | None:
    if record.retired:
        return PlannedTransition(record.memory_id, "retired", record.state, "RETIRED", "a person retired it")
    wrong, total = record.false_positives, record.activations
    if total >= thresholds.censor_min_uses and wrong / total > thresholds.censor_max_false_positive_rate:
        reason = f"{wrong} of {total} matches were false positives"
        return PlannedTransition(record.memory_id, "retired", record.state, "RETIRED", reason)
    correct, is_escalated = total - wrong, record.state == "ESCALATED"
    if is_escalated and record.escalated_by_matches and correct < record.threshold:
        reason = f"after a false positive only {correct} of its matches are correct; it warns again"
        return PlannedTransition(record.memory_id, "relaxed", record.state, "ACTIVE", reason)
    if not is_escalated and correct >= record.threshold:
        reason = f"it matched correctly {correct} times; from now on it blocks"
        return PlannedTransition(record.memory_id, "escalated", record.state, "ESCALATED", reason)
    if record.state == "CREATED" and total:
        return PlannedTransition(record.memory_id, "triggered", record.state, "ACTIVE", "it matched for the first time")
    return None
