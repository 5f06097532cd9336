"""The whole calibration of a record, and the short note of it that a context shows. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from newton.brain.calibration.bias import ENOUGH, Bias, bias
from newton.brain.calibration.recalibration import Recalibration, recalibration
from newton.brain.calibration.scores import Scores, scores
from newton.brain.calibration.series import Series, ordered, series
from newton.brain.calibration.trend import Trend, trend
from newton.brain.choice import Judged

NOTE_TOKENS = 100
# The note speaks of the latest decisions: what was true of an agent a year ago need not be.
NOTED = 100
UNNAMED = "(none)"

Dimension = Literal["category", "stakes", "frame", "reason"]

_NAMES: Mapping[Dimension, Callable[[Judged], Iterable[str]]] = {
    "category": lambda one: (one.category,),
    "stakes": lambda one: (one.stakes,),
    "frame": lambda one: (one.frame or UNNAMED,),
    "reason": lambda one: set(one.reason_kinds) or (UNNAMED,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The decisions that share a name. Its bias has no interval, and no verdict, when the group is too small."""

    name: str
    n: int
    base_rate: float
    brier: float
    bias: Bias


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Everything that a record of judged decisions says about the confidence in it.

    Where nothing was judged, `scores` and `bias` are None. `decided` are the scores without the partial outcomes,
    None where there are none of those. A decision stands in the group of each of its kinds of reason.
    """

    scores: Scores | None
    decided: Scores | None
    bias: Bias | None
    trend: Trend | None
    groups: Mapping[Dimension, tuple[Group, ...]]
    recalibration: Recalibration | None

    @property
    def n(self) -> int:
        return self.scores.n if self.scores else 0


def calibration(judged: Iterable[Judged]) -> Calibration:
    """The calibration of these decisions, given in any order. Raises InputError for a confidence outside [0, 1]."""
    known = ordered(judged)
    pairs = series(known)
    whole = np.flatnonzero(pairs.outcome != 0.5)
    return Calibration(
        scores=scores(pairs),
        decided=scores(pairs.at(whole)) if len(whole) < len(pairs) else None,
        bias=bias(pairs),
        trend=trend(known, pairs),
        groups={dimension: _groups(known, pairs, names) for dimension, names in _NAMES.items()},
        recalibration=recalibration(pairs),
    )


def note(judged: Iterable[Judged], *, count: Callable[[str], int], most: int = NOTE_TOKENS) -> str | None:
    """What the latest decisions teach, in at most `most` tokens as `count` counts them.

    None when there are too few reviews to say anything.
    """
    pairs = series(ordered(judged)[-NOTED:])
    own = bias(pairs)
    if own is None or len(pairs) < ENOUGH:
        return None
    said = ""
    for part in _sentences(pairs, own):
        longer = f"{said} {part}".strip()
        if count(longer) > most:
            break
        said = longer
    return said or None


def _sentences(pairs: Series, own: Bias) -> Sequence[str]:
    figures = [f"Recent accuracy {_percent(own.mean_outcome)}.", f"Brier {float(pairs.squared.mean()):.3f}."]
    if own.verdict == "no sign of either":
        return [*figures, "No sign of over- or underconfidence."]
    advice = "state less" if own.verdict == "overconfident" else "trust your analysis more"
    promise = f"stated {_percent(own.mean_stated)} on average, {_percent(own.mean_outcome)} came true"
    return [*figures, f"{_degree(own)} {own.verdict}: {promise}; {advice}."]


def _degree(own: Bias) -> str:
    return "Slightly" if abs(own.size) < 0.1 else "Clearly" if abs(own.size) < 0.2 else "Strongly"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _groups(judged: Sequence[Judged], pairs: Series, names: Callable[[Judged], Iterable[str]]) -> tuple[Group, ...]:
    places: dict[str, list[int]] = {}
    for place, one in enumerate(judged):
        for name in names(one):
            places.setdefault(name, []).append(place)
    made = [_group(name, pairs.at(np.array(own, dtype=np.intp))) for name, own in places.items()]
    return tuple(sorted(made, key=lambda group: (-group.n, group.name)))


def _group(name: str, pairs: Series) -> Group:
    own = bias(pairs)
    assert own is not None  # a name without a decision is no group
    return Group(name=name, n=len(pairs), base_rate=own.mean_outcome, brier=float(pairs.squared.mean()), bias=own)
