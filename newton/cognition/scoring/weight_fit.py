"""Fitting of score weights to the memories that replies used, validated on other contexts. Pure.

Replies can use only memories that the context showed, so the fit improves the order of shown memories, not the search.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from newton.numerics import Floats, compute_t_quantile, minimize_convex

TRAINING_SHARE = 0.7  # of the contexts, the older ones; the others are the validation set
MIN_CASES = 60  # informative contexts; with fewer the validation set is too small
MAX_PAIRS_PER_CASE = 200  # larger contexts are sampled
PRIOR_STRENGTH = 1.0  # of the regularization towards the present weights; 1 is the weight of one context
BLOCK_SIZE = 5  # consecutive contexts of a session are correlated
CONFIDENCE_LEVEL = 0.95
MAX_SCALE = 100.0  # of the weights, where any scale separates the pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCase:
    """A context that a model answered: the features of each item, and whether the reply used it.

    `weight` depends on the outcome of a decision made soon after it.
    """

    created_at: datetime
    session_id: UUID
    features: Floats
    is_used: NDArray[np.bool_]
    weight: float = 1.0

    @property
    def is_informative(self) -> bool:
        """Return True if the reply used some of the items, but not all."""
        return bool(self.is_used.any() and not self.is_used.all())


@dataclass(frozen=True, slots=True, kw_only=True)
class FitQuality:
    """Ranking quality of weights on the validation contexts.

    `precision` is the mean average precision, `log_loss` the loss of predicting which of two items was used.
    """

    precision: float
    log_loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFit:
    """Fitted weights, which sum to 1, and their quality compared with the present weights.

    `gain_low` and `gain_high` are the bounds of the 95 % confidence interval of the gain in precision.
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
        """Return True if the gain is significant: the whole confidence interval is above 0."""
        return self.gain_low > 0


def fit_weights(cases: Sequence[TrainingCase], start: Floats) -> WeightFit:
    """Fit weights to the older contexts, and validate them on the newer ones. `start` are the present weights.

    At least `MIN_CASES` informative cases are needed.
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
    """Fit non-negative weights by pairwise logistic loss, so that used items rank above unused ones.

    The weights are regularized towards the proportions of `start`.
    """
    differences, counts = _build_pairs(cases)
    features = len(start)

    # the prior is PRIOR_STRENGTH / 2 times the squared length of `offsets @ x`
    offsets = np.hstack([np.eye(features), -start[:, None]])
    inputs = np.hstack([differences, np.zeros((len(differences), 1))])

    def objective(x: Floats) -> tuple[float, Floats, Floats]:
        loss, gradient, hessian = _compute_pair_loss(inputs, counts, x)
        offset = offsets @ x
        return (
            loss + PRIOR_STRENGTH / 2 * float(offset @ offset),
            gradient + PRIOR_STRENGTH * (offsets.T @ offset),
            hessian + PRIOR_STRENGTH * (offsets.T @ offsets),
        )

    found = minimize_convex(objective, np.append(start, 1.0), lower=np.zeros(features + 1))
    return found[:features]


def _compute_pair_loss(inputs: Floats, counts: Floats, x: Floats) -> tuple[float, Floats, Floats]:
    """Return the logistic loss of ranking each pair by `inputs @ x`, its gradient and its Hessian."""
    margin = inputs @ x
    missed = 1 / (1 + np.exp(np.clip(margin, -500, 500)))
    hessian = inputs.T @ (inputs * (counts * missed * (1 - missed))[:, None])
    return float(counts @ np.logaddexp(0, -margin)), inputs.T @ (-counts * missed), hessian


def _fit_scale(cases: Sequence[TrainingCase], weights: Floats) -> float:
    """Return the factor for the weights, up to MAX_SCALE, that gives the lowest log loss."""
    differences, counts = _build_pairs(cases)
    inputs = (differences @ weights)[:, None]
    found = minimize_convex(
        lambda x: _compute_pair_loss(inputs, counts, x), np.ones(1), lower=np.zeros(1), upper=np.array([MAX_SCALE])
    )
    return float(found[0])


def _build_pairs(cases: Sequence[TrainingCase]) -> tuple[Floats, Floats]:
    """Return the feature differences of all pairs of a used and an unused item, and the weight of each pair.

    The weights of the pairs of a case sum to the weight of the case.
    """
    pairs = [_subtract_unused(case) for case in cases]
    weights = [np.full(len(rows), case.weight / len(rows)) for case, rows in zip(cases, pairs, strict=True)]
    return np.concatenate(pairs), np.concatenate(weights)


def _subtract_unused(case: TrainingCase) -> Floats:
    differences = case.features[case.is_used][:, None, :] - case.features[~case.is_used][None, :, :]
    pairs = differences.reshape(-1, case.features.shape[1])
    if len(pairs) <= MAX_PAIRS_PER_CASE:
        return pairs
    return pairs[np.random.default_rng(0).choice(len(pairs), MAX_PAIRS_PER_CASE, replace=False)]


def _compute_log_loss(cases: Sequence[TrainingCase], weights: Floats) -> float:
    differences, counts = _build_pairs(cases)
    return float(counts @ np.logaddexp(0, -(differences @ weights)) / counts.sum())


def _compute_average_precision(case: TrainingCase, weights: Floats) -> float:
    hits = case.is_used[np.argsort(-(case.features @ weights), kind="stable")]
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())


def _group_by_session(cases: Sequence[TrainingCase]) -> list[list[int]]:
    """Return indexes of cases in blocks of `BLOCK_SIZE` consecutive cases of the same session."""
    sessions: dict[UUID, list[int]] = {}
    for index, case in enumerate(cases):
        sessions.setdefault(case.session_id, []).append(index)
    return [own[n : n + BLOCK_SIZE] for own in sessions.values() for n in range(0, len(own), BLOCK_SIZE)]


def _compute_gain_interval(gains: Floats, blocks: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Return the bounds of Student's t interval of the mean gain, computed over blocks of gains.

    A bootstrap interval would be too narrow for few blocks.
    """
    mean, degrees_of_freedom = float(gains.mean()), len(blocks) - 1
    if degrees_of_freedom < 1:
        return -math.inf, math.inf
    residuals = np.array([gains[list(block)].sum() - mean * len(block) for block in blocks])
    error = math.sqrt(len(blocks) / degrees_of_freedom * float(residuals @ residuals)) / len(gains)
    quantile = compute_t_quantile(degrees_of_freedom, CONFIDENCE_LEVEL)
    return mean - quantile * error, mean + quantile * error
