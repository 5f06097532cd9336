"""The model of relevance: coefficients that turn search scores into a probability, and their correction by use.

The shipped model is fitted to public data. An agent whose texts are of another kind can have other odds at the same
evidence: a slope and an intercept over the log-odds correct that, and never change the order of the memories.
"""

import functools
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError, computed_field

from newton.content.package_data import data_folder
from newton.content.yaml_files import StrictModel
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConfigError
from newton.ids import new_id
from newton.numerics import Floats, compute_t_quantile, minimize_convex

SQL = load("newton.cognition", "relevance_model.sql")

RELEVANCE_FILE = "relevance.json"  # beside the profiles

# The features of the probability that a memory answers a question. Those that begin with `best_`, `close_count`,
# `has_names`, `known_share`, `margin` and `size` are the same for all memories of a question.
AnswerFeature = Literal[
    "cosine",
    "lexical",
    "relative",
    "log_rank",
    "cosine_gap",
    "lexical_gap",
    "cosine_z",
    "plain_cosine",
    "name_share",
    "word_share",
    "only_question",
    "is_fact",
    "is_message",
    "best_cosine",
    "best_plain",
    "best_lexical",
    "known_share",
    "size",
    "margin",
    "best_name_share",
    "best_word_share",
    "close_count",
    "has_names",
    "best_logit",
]


class LogisticCoefficients(StrictModel):
    """The coefficients of a logistic regression over the scores of a search."""

    intercept: float
    cosine: float = Field(default=0.0, description="Coefficient of the cosine similarity.")
    lexical: float = Field(
        default=0.0, description="Coefficient of the BM25 score relative to the maximum of all words."
    )
    relative: float = Field(default=0.0, description="Coefficient of the relevance relative to the best memory.")
    known_share: float = Field(
        default=0.0, description="Coefficient of the share of the input's words that occur in the memory."
    )
    size: float = Field(
        default=0.0, description="Coefficient of the number of memories: among many, chance finds more similar texts."
    )


class RelevanceCoefficients(StrictModel):
    """Two regressions: `query` for whether any memory is relevant to an input, `memory` for whether a given memory is.

    If `query` is None, every input is taken to have relevant memories.
    """

    query: LogisticCoefficients | None
    memory: LogisticCoefficients


class AnswerRegression(StrictModel):
    """A logistic regression over the features of an answer."""

    intercept: float
    coefficients: Mapping[AnswerFeature, float]


class TreeSplit(StrictModel):
    """A node of a tree: values up to `threshold` continue at the node `low`, others at `high`."""

    feature: AnswerFeature
    threshold: float
    low: int
    high: int


class BoostedTrees(StrictModel):
    """Gradient-boosted trees: the log-odds are the sum of `base` and of one leaf of each tree. The root is node 0."""

    base: float
    trees: tuple[tuple[TreeSplit | float, ...], ...]


class AnswerCoefficients(StrictModel):
    """Two models: `question` for whether any memory answers a question, `memory` for whether a given memory does.

    `sufficiency` maps the result of `question` to the probability that memory has all that the question needs.
    """

    question: BoostedTrees
    memory: AnswerRegression
    sufficiency: tuple[float, float] = Field(description="Intercept, and coefficient of the log-odds of the question.")


class RelevanceModel(StrictModel):
    """Coefficients for the embedding model they were fitted to, for other ones, and for a search by words only.

    `answers` belongs to the same embedding model as `fitted`; with another one, or none, it is not used.
    """

    embedding_model: str = Field(
        description="The identity of the embedding model to which `fitted` and `answers` belong."
    )
    fitted: RelevanceCoefficients
    other: RelevanceCoefficients
    words_only: RelevanceCoefficients
    answers: AnswerCoefficients

    @functools.cached_property
    def answer_fingerprint(self) -> str:
        """A hash of the coefficients of answers. A stored correction is used only with those to which it was fitted."""
        return hashlib.sha256(self.answers.model_dump_json().encode()).hexdigest()[:16]


@functools.cache
def load_relevance_model() -> RelevanceModel:
    """Load the coefficients that ship with Newton. Raises ConfigError if the file is missing or damaged."""
    path = data_folder("profiles") / RELEVANCE_FILE
    try:
        return RelevanceModel.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise ConfigError(f"{path} is damaged: {error}", hint="Reinstall Newton.") from None


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
    there is no correction and no loss. `is_stored` says whether the correction is in use from now on.
    """

    contexts: int
    items: int
    used: int
    correction: AnswerCorrection = NO_CORRECTION
    validation_items: int = 0
    loss_before: float = 0.0
    loss_after: float = 0.0
    is_stored: bool = False
    gain_low: Annotated[float, Field(exclude=True)] = -math.inf

    @computed_field
    @property
    def verdict(self) -> Verdict:
        """Say whether the held-out contexts show a significantly lower log loss."""
        if not self.validation_items:
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
        validation_items=count,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCorrection(AnswerCorrection):
    """A correction in use, when it was fitted, to how many items, and the log losses of its validation."""

    fitted_at: datetime
    items: int
    loss_before: float
    loss_after: float


async def find_stored_correction(
    tx: Tx, *, agent_id: UUID, model: str, moment: datetime | None = None
) -> StoredCorrection | None:
    """Return the correction of an agent's probabilities that is in use, or was at `moment`; None without one.

    A correction of another version of the shipped model is not used: `model` is its fingerprint.
    """
    row = await SQL["find_correction"].fetch_one(tx, agent_id=agent_id, model=model, moment=moment)
    return StoredCorrection(**row) if row else None


async def find_correction(tx: Tx, *, agent_id: UUID, model: str, moment: datetime | None = None) -> AnswerCorrection:
    """Return the agent's correction that is in use, or was at `moment`; one that changes nothing if there is none."""
    stored = await find_stored_correction(tx, agent_id=agent_id, model=model, moment=moment)
    return AnswerCorrection(stored.slope, stored.intercept) if stored else NO_CORRECTION


async def add_correction(tx: Tx, fit: CorrectionFit, *, agent_id: UUID, model: str, now: datetime) -> None:
    """Store a fitted correction, which is in use from now on."""
    await SQL["insert_correction"].execute(
        tx,
        agent_id=agent_id,
        correction_id=new_id(),
        created_at=now,
        model=model,
        slope=fit.correction.slope,
        intercept=fit.correction.intercept,
        contexts=fit.contexts,
        items=fit.items,
        used=fit.used,
        loss_before=fit.loss_before,
        loss_after=fit.loss_after,
    )


async def remove_corrections(tx: Tx, *, agent_id: UUID, now: datetime) -> bool:
    """End the use of all corrections of the agent; return True if one was in use."""
    return bool(await SQL["remove_corrections"].fetch_all(tx, agent_id=agent_id, removed_at=now))
