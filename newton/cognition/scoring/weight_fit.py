"""Weights learnt from which items of a context were used, and whether they are better where they were not learnt. Pure.

Only what was in a context could be used, so this learns to order what is shown, not to find what is not.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

TRAINING_SHARE = 0.7  # the older part is learnt from
MIN_CASES = 60  # contexts with something used and something not; of fewer, what is held out says nothing
MAX_PAIRS_PER_CASE = 200  # of a context
PRIOR_STRENGTH = 1.0  # towards the profile that there is: as much as one context weighs
BLOCK_SIZE = 5  # contexts of one session in a row are about the same things, and vary together
CONFIDENCE_LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCase:
    """One context that was answered: for each item its features, and whether the reply used it.

    `weight` is how much it counts: more when what was decided upon it went well.
    """

    created_at: datetime
    session_id: UUID
    features: Floats
    is_used: NDArray[np.bool_]
    weight: float = 1.0

    @property
    def is_informative(self) -> bool:
        return bool(self.is_used.any() and not self.is_used.all())


@dataclass(frozen=True, slots=True, kw_only=True)
class FitQuality:
    """How well weights order items that they were not learnt from.

    `precision` is the mean over contexts of the average precision: 1 when every used item stands before every unused
    one. `log_loss` is that of saying which of two items was used.
    """

    precision: float
    log_loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFit:
    """Learnt weights, which add up to 1, beside those that there are, on contexts that neither was made from.

    `low` and `high` hold the true gain in precision in 95 of 100 cases.
    """

    weights: Floats
    training_count: int
    validation_count: int
    before: FitQuality
    after: FitQuality
    gain_low: float
    gain_high: float

    @property
    def gain(self) -> float:
        return self.after.precision - self.before.precision

    @property
    def is_better(self) -> bool:
        """Whether it is more than chance: the whole interval lies above 0."""
        return self.gain_low > 0


def fit_weights(cases: Sequence[TrainingCase], start: Floats) -> WeightFit:
    """Learns from the older contexts and measures on the younger ones. `start` are the weights that there are.

    The cases must be telling, at least FEWEST of them.
    """
    ordered = sorted(cases, key=lambda case: (case.created_at, case.session_id))
    cut = int(len(ordered) * TRAINING_SHARE)
    older, younger = ordered[:cut], ordered[cut:]
    weights = optimize_weights(older, start)
    scale = _fit_scale(older, start)
    before, after = (np.array([_compute_average_precision(case, w) for case in younger]) for w in (start, weights))
    low, high = _compute_gain_interval(after - before, _group_by_session(younger))
    return WeightFit(
        weights=weights / max(weights.sum(), 1e-12),
        training_count=len(older),
        validation_count=len(younger),
        before=FitQuality(precision=float(before.mean()), log_loss=_compute_log_loss(younger, start * scale)),
        after=FitQuality(precision=float(after.mean()), log_loss=_compute_log_loss(younger, weights)),
        gain_low=low,
        gain_high=high,
    )


def optimize_weights(cases: Sequence[TrainingCase], start: Floats) -> Floats:
    """Weights, none below 0, under which used items score above unused ones of the same context, as far as the cases
    say; where they say nothing, in the proportions of `start`."""
    differences, counts = _build_pairs(cases)
    features = len(start)

    def objective(x: Floats) -> tuple[float, Floats]:
        weights, scale = x[:features], x[features]
        margin = differences @ weights
        away = weights - scale * start
        loss = float(counts @ np.logaddexp(0, -margin)) + PRIOR_STRENGTH / 2 * float(away @ away)
        slope = differences.T @ (-counts / (1 + np.exp(np.clip(margin, -500, 500)))) + PRIOR_STRENGTH * away
        return loss, np.append(slope, -PRIOR_STRENGTH * float(away @ start))

    found = import_module("scipy.optimize").minimize(
        objective, np.append(start, 1.0), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (features + 1)
    )
    return np.asarray(found.x[:features], dtype=np.float64)


def _fit_scale(cases: Sequence[TrainingCase], weights: Floats) -> float:
    """By how much the weights must grow to say as surely as they may which item is used."""
    differences, counts = _build_pairs(cases)
    margin = differences @ weights

    def loss(scale: float) -> float:
        return float(counts @ np.logaddexp(0, -scale * margin))

    found = import_module("scipy.optimize").minimize_scalar(loss, bounds=(0, 100), method="bounded")
    return float(found.x)


def _build_pairs(cases: Sequence[TrainingCase]) -> tuple[Floats, Floats]:
    """Used less unused, at most so many of each context, and what each pair counts: of a context all as one."""
    kept = [
        (pairs, np.full(len(pairs), case.weight / len(pairs))) for case in cases for pairs in [_subtract_unused(case)]
    ]
    return np.concatenate([pairs for pairs, _ in kept]), np.concatenate([counts for _, counts in kept])


def _subtract_unused(case: TrainingCase) -> Floats:
    pairs = (case.features[case.is_used][:, None, :] - case.features[~case.is_used][None, :, :]).reshape(
        -1, case.features.shape[1]
    )
    if len(pairs) <= MAX_PAIRS_PER_CASE:
        return pairs
    return pairs[np.random.default_rng(0).choice(len(pairs), MAX_PAIRS_PER_CASE, replace=False)]


def _compute_log_loss(cases: Sequence[TrainingCase], weights: Floats) -> float:
    differences, counts = _build_pairs(cases)
    return float(counts @ np.logaddexp(0, -(differences @ weights)) / counts.sum())


def _compute_average_precision(case: TrainingCase, weights: Floats) -> float:
    """Average precision: the mean, over the used items, of the share of used ones down to each."""
    hits = case.is_used[np.argsort(-(case.features @ weights), kind="stable")]
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())


def _group_by_session(cases: Sequence[TrainingCase]) -> list[list[int]]:
    """Places of the cases, those of a session in runs of a few."""
    sessions: dict[UUID, list[int]] = {}
    for place, case in enumerate(cases):
        sessions.setdefault(case.session_id, []).append(place)
    return [run for places in sessions.values() for run in _split_blocks(places)]


def _split_blocks(positions: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(positions), BLOCK_SIZE):
        yield positions[start : start + BLOCK_SIZE]


def _compute_gain_interval(gains: Floats, blocks: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Student's, over blocks: of few blocks it is as wide as it must be, which drawing them again is not."""
    mean = float(gains.mean())
    left_over = np.array([gains[list(block)].sum() - mean * len(block) for block in blocks])
    freedom = len(blocks) - 1
    if freedom < 1:
        return -math.inf, math.inf
    error = math.sqrt(len(blocks) / freedom * float(left_over @ left_over)) / len(gains)
    reach = float(import_module("scipy.special").stdtrit(freedom, (1 + CONFIDENCE_LEVEL) / 2)) * error
    return mean - reach, mean + reach
