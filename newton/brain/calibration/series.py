"""What was stated and what came of it, as columns in order of time. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from newton.brain.draft import OUTCOME_SCORES, ReviewedDecision
from newton.errors import InputError

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class ForecastSeries:
    """Two columns of the same length: confidence as stated, and what the outcome counts as (a partial one is 0.5)."""

    stated: FloatArray
    outcome: FloatArray

    def __len__(self) -> int:
        return len(self.stated)

    def select(self, indices: IndexArray | slice) -> "ForecastSeries":
        """Only these rows, in this order."""
        return ForecastSeries(self.stated[indices], self.outcome[indices])

    @property
    def gap(self) -> FloatArray:
        """Confidence less outcome: above 0 where more was promised than came."""
        return self.stated - self.outcome

    @property
    def squared_errors(self) -> FloatArray:
        """The squared error of each; their mean is the Brier score."""
        return self.gap**2


def sort_by_time(decisions: Iterable[ReviewedDecision]) -> tuple[ReviewedDecision, ...]:
    """By the time of decision: the order in which the judgement was shown, whenever the outcome came in."""
    return tuple(sorted(decisions, key=_sort_key))


def to_series(decisions: Sequence[ReviewedDecision]) -> ForecastSeries:
    """The columns of these decisions, in the order given. Raises InputError for a confidence outside [0, 1]."""
    stated = np.array([one.confidence for one in decisions], dtype=np.float64)
    if not np.all((stated >= 0) & (stated <= 1)):
        raise InputError("A confidence is not within 0 and 1.", hint="Give confidence as a share, such as 0.8.")
    return ForecastSeries(stated, np.array([OUTCOME_SCORES[one.outcome] for one in decisions], dtype=np.float64))


def _sort_key(decision: ReviewedDecision) -> tuple[datetime, datetime, int]:
    return decision.decided_at, decision.reviewed_at, decision.decision_id.int
