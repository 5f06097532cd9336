"""Correction of the probability of an answer for one agent, fitted to what its replies used. Pure.

The shipped model is fitted to public data. An agent whose texts are of another kind can have other odds at the same
evidence: a slope and an intercept over the log-odds correct that, and never change the order of the memories.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from newton.numerics import Floats, compute_t_quantile, minimize_convex

MIN_CONTEXTS = 40  # with judged items; with fewer, the validation set is too small
MIN_ITEMS = 200
MIN_USED = 20
TRAINING_SHARE = 0.7  # of the contexts, the older ones; the others are the validation set
PRIOR_STRENGTH = 4.0  # of the regularization towards no correction, in units of the Fisher information
SLOPES, INTERCEPTS = (0.25, 4.0), (-3.0, 3.0)  # beyond these, the floors of the frames would have another meaning
CONFIDENCE_LEVEL = 0.95
LEAST_PROBABILITY = 1e-6

Verdict = Literal["better", "no better", "too few"]


@dataclass(frozen=True, slots=True)
class AnswerCorrection:
    """A logistic curve over the log-odds of a probability. The default changes nothing.

    >>> round(AnswerCorrection(slope=1.0, intercept=-1.0).apply(0.5), 3)
    0.269
    >>> round(AnswerCorrection(slope=0.5, intercept=-1.0).invert(AnswerCorrection(0.5, -1.0).apply(0.2)), 3)
    0.2
    """

    slope: float = 1.0
    intercept: float = 0.0

    def apply(self, probability: float) -> float:
        return _to_probability(self.intercept + self.slope * to_log_odds(probability))

    def invert(self, corrected: float) -> float:
        """Return the probability before the correction."""
        return _to_probability((to_log_odds(corrected) - self.intercept) / self.slope)


NO_CORRECTION = AnswerCorrection()


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedContext:
    """The items of a context that a model answered: their shipped probabilities, and whether the reply used them."""

    created_at: datetime
    session_id: UUID
    probabilities: Floats
    is_used: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionFit:
    """A correction fitted to all contexts, and the validation of one that was fitted to the older contexts only.

    The log losses are means over the items of the newer contexts: of the probabilities in use, and of those of the new
    correction. `gain_low` is the lower bound of the 95 % confidence interval of the reduction. With too few items,
    there is no correction and no loss.
    """

    contexts: int
    items: int
    used: int
    correction: AnswerCorrection = NO_CORRECTION
    validated: int = 0
    loss_before: float = 0.0
    loss_after: float = 0.0
    gain_low: float = -math.inf

    @property
    def verdict(self) -> Verdict:
        """Say whether the held-out contexts show a significantly lower log loss."""
        if not self.validated:
            return "too few"
        return "better" if self.gain_low > 0 else "no better"


def fit_correction(contexts: Sequence[JudgedContext], current: AnswerCorrection) -> CorrectionFit:
    """Fit a correction to the older contexts, compare it with the `current` one on the newer, then fit it to all."""
    ordered = sorted(contexts, key=lambda one: (one.created_at, one.session_id))
    items, used = sum(len(one.is_used) for one in ordered), sum(int(one.is_used.sum()) for one in ordered)
    if len(ordered) < MIN_CONTEXTS or items < MIN_ITEMS or used < MIN_USED or items - used < MIN_USED:
        return CorrectionFit(contexts=len(ordered), items=items, used=used)
    cut = int(len(ordered) * TRAINING_SHARE)
    newer, fitted = ordered[cut:], _fit(ordered[:cut])
    before, after = (_list_losses(newer, one) for one in (current, fitted))
    count = sum(len(one.is_used) for one in newer)
    return CorrectionFit(
        contexts=len(ordered),
        items=items,
        used=used,
        correction=_fit(ordered),
        validated=count,
        loss_before=float(before.sum() / count),
        loss_after=float(after.sum() / count),
        gain_low=_find_lowest_gain(before - after, [one.session_id for one in newer]) / count,
    )


def compute_probabilities(probabilities: Floats, correction: AnswerCorrection) -> Floats:
    """Return corrected probabilities."""
    return 1 / (1 + np.exp(-(correction.intercept + correction.slope * _log_odds(probabilities))))


def to_log_odds(probability: float) -> float:
    """Return the logarithm of the odds.

    >>> to_log_odds(0.5)
    0.0
    """
    bounded = min(max(probability, LEAST_PROBABILITY), 1 - LEAST_PROBABILITY)
    return math.log(bounded / (1 - bounded))


def _fit(contexts: Sequence[JudgedContext]) -> AnswerCorrection:
    """Fit slope and intercept by maximum likelihood, regularized towards no correction."""
    log_odds = _log_odds(np.concatenate([one.probabilities for one in contexts]))
    inputs = np.stack([log_odds, np.ones(len(log_odds))], axis=1)
    used = np.concatenate([one.is_used for one in contexts]).astype(np.float64)

    def objective(point: Floats) -> tuple[float, Floats, Floats]:
        logits, offset = inputs @ point, point - (1.0, 0.0)
        expected = 1 / (1 + np.exp(-logits))
        loss = float((np.logaddexp(0, logits) - used * logits).sum() + PRIOR_STRENGTH / 2 * offset @ offset)
        hessian = inputs.T @ (inputs * (expected * (1 - expected))[:, None]) + PRIOR_STRENGTH * np.eye(2)
        return loss, inputs.T @ (expected - used) + PRIOR_STRENGTH * offset, hessian

    lower, upper = np.array([SLOPES[0], INTERCEPTS[0]]), np.array([SLOPES[1], INTERCEPTS[1]])
    slope, intercept = minimize_convex(objective, np.array([1.0, 0.0]), lower=lower, upper=upper)
    return AnswerCorrection(slope=round(float(slope), 4), intercept=round(float(intercept), 4))


def _list_losses(contexts: Sequence[JudgedContext], correction: AnswerCorrection) -> Floats:
    """Return the log loss of each context, summed over its items."""
    stated = [np.clip(compute_probabilities(one.probabilities, correction), 1e-9, 1 - 1e-9) for one in contexts]
    return np.array([-np.log(np.where(o.is_used, p, 1 - p)).sum() for o, p in zip(contexts, stated, strict=True)])


def _find_lowest_gain(gains: Floats, sessions: Sequence[UUID]) -> float:
    """Return the lower bound of Student's t interval of the sum of gains. Contexts of a session are correlated."""
    totals = dict[UUID, float]()
    for session_id, gain in zip(sessions, gains, strict=True):
        totals[session_id] = totals.get(session_id, 0.0) + float(gain)
    blocks, freedom = np.array([*totals.values()]), len(totals) - 1
    if freedom < 1:
        return -math.inf
    error = float(blocks.std(ddof=1)) * math.sqrt(len(blocks))
    return float(blocks.sum()) - compute_t_quantile(freedom, CONFIDENCE_LEVEL) * error


def _log_odds(probabilities: Floats) -> Floats:
    bounded = np.clip(probabilities, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    return np.log(bounded / (1 - bounded))


def _to_probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))
