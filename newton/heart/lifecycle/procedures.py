"""Rules that derive the state of a procedure from the results of its uses. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.heart.lifecycle.thresholds import LifecycleThresholds
from newton.memory.memory import ARCHIVED, ShortForms, TokenCounter
from newton.memory.representations import to_bullet
from newton.memory.store import PlannedTransition

INEFFECTIVE_MARK = "(It failed in most of its uses: prefer another way, or change it.) "
Z_95 = 1.959963984540054  # two-sided 95 % quantile of the normal distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureRecord:
    """A procedure with the counts of its uses. `retired` is True if it was replaced or retired."""

    memory_id: UUID
    state: str
    retired: bool
    activations: int
    successes: int
    failures: int


def effectiveness(successes: int, failures: int) -> float:
    """Return the share of successes among the uses that succeeded or failed; 0 if there are none.

    >>> effectiveness(3, 1), effectiveness(0, 0)
    (0.75, 0.0)
    """
    rated = successes + failures
    return successes / rated if rated else 0.0


def lower_bound(successes: int, failures: int) -> float:
    """Return the lower bound of the 95 % Wilson score interval of the success rate.

    >>> round(lower_bound(5, 0), 3), round(lower_bound(50, 0), 3), lower_bound(0, 0)
    (0.566, 0.929, 0.0)
    """
    trials = successes + failures
    if not trials:
        return 0.0
    share = successes / trials
    middle = share + Z_95 * Z_95 / (2 * trials)
    spread = Z_95 * math.sqrt(share * (1 - share) / trials + Z_95 * Z_95 / (4 * trials * trials))
    return max((middle - spread) / (1 + Z_95 * Z_95 / trials), 0.0)


def mark_forms(forms: ShortForms, state: str, *, count_tokens: TokenCounter) -> ShortForms:
    """Return the short forms for this state. The summary of an ineffective procedure begins with INEFFECTIVE_MARK."""
    plain = forms.summary.removeprefix(INEFFECTIVE_MARK)
    summary = INEFFECTIVE_MARK + plain if state == "INEFFECTIVE" else plain
    header_tokens = forms.summary_tokens - count_tokens(to_bullet(forms.summary))
    return ShortForms(forms.micro, summary, forms.micro_tokens, header_tokens + count_tokens(to_bullet(summary)))


def plan(records: Sequence[ProcedureRecord], thresholds: LifecycleThresholds) -> list[PlannedTransition]:
    """Return the state transitions that are due, at most one for each procedure."""
    return [step for record in records if (step := _plan_transition(record, thresholds))]


def _plan_transition(record: ProcedureRecord, thresholds: LifecycleThresholds) -> PlannedTransition | None:
    state, event, reason = _target_state(record, thresholds)
    if state == record.state or (record.state == ARCHIVED and state != "RETIRED"):
        return None
    event = "restored" if record.state == "RETIRED" else event
    return PlannedTransition(record.memory_id, event, record.state, state, reason)


def _target_state(record: ProcedureRecord, thresholds: LifecycleThresholds) -> tuple[str, str, str]:
    """Return the state that the results of a procedure require, with the event and the reason of the transition."""
    if record.retired:
        return "RETIRED", "retired", "a newer version replaced it, or it was removed"
    rate, rated = effectiveness(record.successes, record.failures), record.successes + record.failures
    reason = f"{record.successes} of {rated} rated uses succeeded"
    if rated and record.activations >= thresholds.procedure_min_uses:
        if rate > thresholds.procedure_effective_min_rate:
            return "EFFECTIVE", "proved", reason
        if rate < thresholds.procedure_ineffective_max_rate:
            return "INEFFECTIVE", "failed", reason
    return "ACTIVE", "reopened", reason
