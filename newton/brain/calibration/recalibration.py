"""A map from stated to corrected confidence, learnt from earlier decisions and tried on later ones. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Literal

import numpy as np

from newton.brain.calibration.series import Floats, Series

NEEDED = 30
# The share of the record that counts as earlier: a map is chosen there, the rest only judges it.
EARLIER = 2 / 3
# Where the earlier part is cut to choose: fitted up to one, tried up to the next.
CUTS = (0.5, 0.625, 0.75, 0.875, 1.0)
# Beyond these, confidences are corrected alike: there is never enough evidence to tell 0.99 from 0.999.
LEAST, MOST = 0.01, 0.99

Method = Literal["none", "platt", "isotonic"]


@dataclass(frozen=True, slots=True)
class Stated:
    """No correction: the confidence stands as it was stated."""

    method: Method = "none"

    def over(self, stated: Floats) -> Floats:
        return stated


@dataclass(frozen=True, slots=True, kw_only=True)
class Platt:
    """A logistic curve over the log odds. A slope under 1 draws to the middle, a shift below 0 draws down."""

    slope: float
    shift: float
    method: Method = "platt"

    def over(self, stated: Floats) -> Floats:
        return 1 / (1 + np.exp(-(self.shift + self.slope * _odds(stated))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Isotonic:
    """Corners of a line that never falls; level before the first and after the last."""

    stated: tuple[float, ...]
    came: tuple[float, ...]
    method: Method = "isotonic"

    def over(self, stated: Floats) -> Floats:
        return np.interp(stated, self.stated, self.came)


Map = Stated | Platt | Isotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalibration:
    """The map, fitted on every review, and what its like did on later decisions when fitted on the earlier ones.

    Show a corrected confidence beside the stated one, never instead of it.
    """

    map: Map
    earlier: int
    later: int
    brier_stated: float
    brier_corrected: float

    @property
    def method(self) -> Method:
        return self.map.method

    @property
    def helped(self) -> bool:
        return self.brier_corrected < self.brier_stated

    def corrected(self, confidence: float) -> float:
        """What came of such a confidence, in [0, 1]; never lower for a higher one."""
        return float(self.map.over(np.array([confidence]))[0])


def recalibration(pairs: Series) -> Recalibration | None:
    """The map for this record, which must be in order of time; None below NEEDED reviews."""
    if len(pairs) < NEEDED:
        return None
    cut = round(len(pairs) * EARLIER)
    earlier, later = pairs.at(slice(cut)), pairs.at(slice(cut, None))
    fit = _chosen(earlier)
    return Recalibration(
        map=fit(pairs),
        earlier=len(earlier),
        later=len(later),
        brier_stated=float(later.squared.mean()),
        brier_corrected=float(_squared(fit(earlier), later).mean()),
    )


def platt(pairs: Series) -> Platt:
    """Fitted by likelihood, drawn a little towards changing nothing, so that a few alike outcomes do not run away."""
    odds = _odds(pairs.stated)

    def loss(at: Floats) -> tuple[float, Floats]:
        place = at[0] + at[1] * odds
        miss = 1 / (1 + np.exp(-place)) - pairs.outcome
        away = at - (0.0, 1.0)
        total = float((np.logaddexp(0, place) - pairs.outcome * place).sum() + away @ away / 2)
        return total, np.array([miss.sum(), (miss * odds).sum()]) + away

    # Loading it takes longer than most commands, and most commands need no map.
    found = import_module("scipy.optimize").minimize(
        loss, (0.0, 1.0), jac=True, method="TNC", bounds=[(None, None), (0.0, None)]
    )
    return Platt(shift=float(found.x[0]), slope=float(found.x[1]))


def isotonic(pairs: Series) -> Isotonic:
    """The line closest to the outcomes that never falls. Decisions of one confidence are one corner."""
    stated, which, counts = np.unique(pairs.stated, return_inverse=True, return_counts=True)
    means = np.bincount(which, weights=pairs.outcome) / counts
    came: Floats = import_module("scipy.optimize").isotonic_regression(means, weights=counts).x
    corner = np.ones(len(came), dtype=bool)
    corner[1:-1] = (came[1:-1] != came[:-2]) | (came[1:-1] != came[2:])
    return Isotonic(stated=tuple(stated[corner].tolist()), came=tuple(np.clip(came[corner], 0, 1).tolist()))


def _unchanged(_: Series) -> Stated:
    return Stated()


def _chosen(earlier: Series) -> Callable[[Series], Map]:
    """The way to fit that saves most error on what came after it, if it saves more than chance explains."""
    cuts = [round(len(earlier) * share) for share in CUTS]
    folds = [(earlier.at(slice(a)), earlier.at(slice(a, b))) for a, b in pairwise(cuts)]
    best: Callable[[Series], Map] = _unchanged
    most = 0.0
    for fit in (platt, isotonic):
        saved = np.concatenate([after.squared - _squared(fit(before), after) for before, after in folds])
        if saved.mean() > max(most, saved.std() / len(saved) ** 0.5):
            best, most = fit, float(saved.mean())
    return best


def _squared(made: Map, pairs: Series) -> Floats:
    return (made.over(pairs.stated) - pairs.outcome) ** 2


def _odds(stated: Floats) -> Floats:
    held = np.clip(stated, LEAST, MOST)
    return np.log(held / (1 - held))
