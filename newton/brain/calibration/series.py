"""What was stated and what came of it, as columns in order of time. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from newton.brain.choice import WORTH, Judged
from newton.errors import InputError

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Two columns of the same length: confidence as stated, and what the outcome counts as (a partial one is 0.5)."""

    stated: Floats
    outcome: Floats

    def __len__(self) -> int:
        return len(self.stated)

    def at(self, places: Places | slice) -> "Series":
        """Only these rows, in this order."""
        return Series(self.stated[places], self.outcome[places])

    @property
    def gap(self) -> Floats:
        """Confidence less outcome: above 0 where more was promised than came."""
        return self.stated - self.outcome

    @property
    def squared(self) -> Floats:
        """The squared error of each; their mean is the Brier score."""
        return self.gap**2


def ordered(judged: Iterable[Judged]) -> tuple[Judged, ...]:
    """By the time of decision: the order in which the judgement was shown, whenever the outcome came in."""
    return tuple(sorted(judged, key=_place))


def series(judged: Sequence[Judged]) -> Series:
    """The columns of these decisions, in the order given. Raises InputError for a confidence outside [0, 1]."""
    stated = np.array([one.confidence for one in judged], dtype=np.float64)
    if not np.all((stated >= 0) & (stated <= 1)):
        raise InputError("A confidence is not within 0 and 1.", hint="Give confidence as a share, such as 0.8.")
    return Series(stated, np.array([WORTH[one.outcome] for one in judged], dtype=np.float64))


def _place(one: Judged) -> tuple[datetime, datetime, int]:
    return one.decided_at, one.reviewed_at, one.decision_id.int
