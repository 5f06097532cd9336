"""What a procedure's record makes of it. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.heart.lifecycle.thresholds import Thresholds
from newton.memory.memory import ARCHIVED
from newton.memory.transitions import Step

Z = 1.959963984540054  # the two-sided 95 % of a normal distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A procedure with its record. `retired` is whether it was replaced or taken out of use."""

    memory_id: UUID
    state: str
    retired: bool
    activations: int
    successes: int
    failures: int


def effectiveness(successes: int, failures: int) -> float:
    """The share of successes among the judged uses; 0 without any, so that it sorts.

    >>> effectiveness(3, 1), effectiveness(0, 0)
    (0.75, 0.0)
    """
    judged = successes + failures
    return successes / judged if judged else 0.0


def assured(successes: int, failures: int) -> float:
    """The lower bound of Wilson's 95 % interval for that share: what few trials leave certain.

    >>> round(assured(5, 0), 3), round(assured(50, 0), 3), assured(0, 0)
    (0.566, 0.929, 0.0)
    """
    trials = successes + failures
    if not trials:
        return 0.0
    share = successes / trials
    middle = share + Z * Z / (2 * trials)
    spread = Z * math.sqrt(share * (1 - share) / trials + Z * Z / (4 * trials * trials))
    return max((middle - spread) / (1 + Z * Z / trials), 0.0)


def plan(lives: Sequence[Life], thresholds: Thresholds) -> list[Step]:
    """The steps that are due, at most one for each procedure."""
    return [step for life in lives if (step := _due(life, thresholds))]


def _due(life: Life, thresholds: Thresholds) -> Step | None:
    after, event, because = _fate(life, thresholds)
    if after == life.state or (life.state == ARCHIVED and after != "RETIRED"):
        return None
    if life.state == "RETIRED":
        event = "restored"
    return Step(memory_id=life.memory_id, event=event, before=life.state, after=after, because=because)


def _fate(life: Life, thresholds: Thresholds) -> tuple[str, str, str]:
    if life.retired:
        return "RETIRED", "retired", "another version or nobody uses it any more"
    share, judged = effectiveness(life.successes, life.failures), life.successes + life.failures
    record = f"{life.successes} of {judged} judged uses succeeded"
    if judged and life.activations >= thresholds.procedure_trials:
        if share > thresholds.effective_above:
            return "EFFECTIVE", "proved", record
        if share < thresholds.ineffective_below:
            return "INEFFECTIVE", "failed", record
    return "ACTIVE", "reopened", record
