"""Stated confidences and outcomes of decisions, as numeric arrays. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newton.brain.draft import ReviewedDecision
from newton.brain.outcomes import OUTCOME_SCORES
from newton.errors import InputError

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class ForecastSeries:
    """Two arrays with one element for each decision: the stated confidence, and the outcome as a number.

    A partial outcome is 0.5.
    """

    stated: FloatArray
    outcome: FloatArray

    def __len__(self) -> int:
        return len(self.stated)

    def select(self, indices: IndexArray | slice) -> "ForecastSeries":
        """Return the decisions at these indices, in the order of the indices."""
        return ForecastSeries(self.stated[indices], self.outcome[indices])

    @property
    def gap(self) -> FloatArray:
        """The confidence of each decision minus the value of its outcome; positive is overconfident."""
        return self.stated - self.outcome

    @property
    def squared_errors(self) -> FloatArray:
        """The squared difference of confidence and outcome of each decision; the mean is the Brier score."""
        return self.gap**2


def sort_by_time(decisions: Iterable[ReviewedDecision]) -> tuple[ReviewedDecision, ...]:
    """Return the decisions sorted by decision time, then by review time and id."""
    return tuple(sorted(decisions, key=lambda one: (one.decided_at, one.reviewed_at, one.decision_id.int)))


def to_series(decisions: Sequence[ReviewedDecision]) -> ForecastSeries:
    """Return the confidences and outcomes of decisions, in order. Raises InputError for a confidence outside [0, 1]."""
    stated = np.array([one.confidence for one in decisions], dtype=np.float64)
    if not np.all((stated >= 0) & (stated <= 1)):
        raise InputError("A confidence is outside 0 to 1.", hint="Give a confidence from 0 to 1, such as 0.8.")
    return ForecastSeries(stated, np.array([OUTCOME_SCORES[one.outcome] for one in decisions], dtype=np.float64))
