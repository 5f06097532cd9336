"""Fit of the probability that a memory answers a question, for scripts/fit-relevance."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast, get_args
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from newton.cognition.relevance_model import (
    AnswerCoefficients,
    AnswerFeature,
    AnswerRegression,
    BoostedTrees,
    TreeSplit,
    to_log_odds,
)
from newton.cognition.scoring.relevance import MEMORY_FEATURES, extract_answer_evidence
from newton.memory.search_types import RecallResult

ensemble, linear_model = (  # scikit-learn has no type stubs
    import_module(f"sklearn.{name}") for name in ("ensemble", "linear_model")
)

Floats = NDArray[np.float64]

FITTED_FEATURES: tuple[AnswerFeature, ...] = (
    *MEMORY_FEATURES,
    *("best_cosine", "best_plain", "best_lexical", "known_share", "margin", "best_name_share", "close_count"),
)
# The features of the question, with the direction in which each may change the probability (0: any).
QUESTION_FEATURES: Mapping[AnswerFeature, int] = {
    "best_cosine": 1,
    "best_plain": 1,
    "best_lexical": 1,
    "known_share": 1,
    "size": -1,
    "margin": 1,
    "best_name_share": 1,
    "best_word_share": 1,
    "close_count": 0,
    "has_names": 0,
    "best_logit": 1,
}
# Weight of each group in the fit of memories, and, where it differs from 1, of questions.
MEMORY_WEIGHTS = {
    "locomo": 4.0,
    "beam": 0.5,
    "merged": 1.0,
    "small": 1.5,
    "answers": 1.5,
    "generated": 1.0,
    "long": 0.2,
}
QUESTION_WEIGHTS = {
    **{"shared words": 0.3, "other attribute": 0.3, "answers, nothing known": 0.3},
    **{"small": 1.5, "answers": 1.5, "foreign": 1.5, "long": 0.5, "beam": 0.5},
    **{"locomo foreign": 2.0, "beam foreign": 2.0, "unknown": 2.0},
}
TREES, LEAVES, RATE = 120, 8, 0.08


@dataclass(frozen=True, slots=True)
class AnswerCase:
    """A question of a group, what was found for it, and the found memories that answer.

    `count` is the number of all answers, 0 for a question that memory cannot answer.
    """

    group: str
    text: str
    result: RecallResult
    right: frozenset[UUID]
    count: int


@dataclass(frozen=True, slots=True)
class _Rows:
    """The features of a case: one row per memory, those of the question, and which memories answer."""

    case: AnswerCase
    memories: Floats
    question: Floats
    is_right: NDArray[np.bool_]


def fit_answers(cases: Sequence[AnswerCase]) -> AnswerCoefficients:
    """Fit all coefficients to the cases. The groups weigh the same, but for the weights above."""
    rows = [_extract(case) for case in cases if case.result.memories]
    memory = _fit_memories([one for one in rows if one.case.count])
    log_odds = [_apply(memory, one.memories) for one in rows]
    judged = [n for n, one in enumerate(rows) if one.is_right.any() or not one.case.count]
    table = np.array([[*rows[n].question, log_odds[n].max()] for n in judged])
    answered = np.array([bool(rows[n].case.count) for n in judged])
    weights = _weigh([rows[n].case.group for n in judged], QUESTION_WEIGHTS)
    trees = ensemble.HistGradientBoostingClassifier(
        max_iter=TREES,
        max_leaf_nodes=LEAVES,
        learning_rate=RATE,
        min_samples_leaf=30,
        l2_regularization=2,
        monotonic_cst=list(QUESTION_FEATURES.values()),
    ).fit(table, answered, sample_weight=weights)
    every = np.array([[*one.question, odds.max()] for one, odds in zip(rows, log_odds, strict=True)])
    questions = trees.predict_proba(every)[:, 1]
    return AnswerCoefficients(question=_export(trees), memory=memory, sufficiency=_fit_sufficiency(rows, questions))


def _extract(case: AnswerCase) -> _Rows:
    evidence = extract_answer_evidence(case.result)
    found = [one for one in case.result.memories if one.memory_id in evidence.memories]  # without earlier questions
    shared = [evidence.shared[name] for name in FITTED_FEATURES if name in evidence.shared]
    table = [[*map(float, evidence.memories[one.memory_id]), *shared] for one in found]
    question = [evidence.shared[name] for name in QUESTION_FEATURES if name != "best_logit"]
    return _Rows(case, np.array(table), np.array(question), np.array([one.memory_id in case.right for one in found]))


def _weigh(groups: Sequence[str], weights: Mapping[str, float]) -> Floats:
    counts = Counter(groups)
    values = np.array([weights.get(group, 1.0) / counts[group] for group in groups])
    return values / values.mean()


def _fit_memories(rows: Sequence[_Rows]) -> AnswerRegression:
    counts = Counter(one.case.group for one in rows)
    table, right = np.vstack([one.memories for one in rows]), np.concatenate([one.is_right for one in rows])
    own = [MEMORY_WEIGHTS.get(one.case.group, 1.0) / counts[one.case.group] for one in rows]
    weights = np.repeat(own, [len(one.memories) for one in rows])
    mean, spread = table.mean(0), np.maximum(table.std(0), 1e-9)
    fitted = linear_model.LogisticRegression(max_iter=400, tol=1e-5).fit(
        (table - mean) / spread, right, sample_weight=weights / weights.mean()
    )
    slopes = np.round(cast("Floats", fitted.coef_[0]) / cast("Floats", spread), 4)
    return AnswerRegression(
        intercept=round(float(fitted.intercept_[0] - slopes @ mean), 4),
        coefficients=dict(zip(FITTED_FEATURES, slopes.tolist(), strict=True)),
    )


def _apply(regression: AnswerRegression, table: Floats) -> Floats:
    return table @ np.array([regression.coefficients[name] for name in FITTED_FEATURES]) + regression.intercept


def _export(trees: Any) -> BoostedTrees:
    known, names = get_args(AnswerFeature), tuple(QUESTION_FEATURES)
    assert set(names) <= set(known)

    def to_node(node: Any) -> TreeSplit | float:
        if node["is_leaf"]:
            return round(float(node["value"]), 5)
        threshold = round(float(node["num_threshold"]), 5)
        name = names[int(node["feature_idx"])]
        return TreeSplit(feature=name, threshold=threshold, low=int(node["left"]), high=int(node["right"]))

    return BoostedTrees(
        base=round(float(trees._baseline_prediction.ravel()[0]), 5),
        trees=tuple(tuple(to_node(node) for node in predictor.nodes) for (predictor,) in trees._predictors),
    )


def _fit_sufficiency(rows: Sequence[_Rows], questions: Floats) -> tuple[float, float]:
    """Fit the probability that all answers were found, for every case."""
    table = [[to_log_odds(float(question))] for question in questions]
    complete = [bool(one.case.count) and int(one.is_right.sum()) >= one.case.count for one in rows]
    weights = _weigh([one.case.group for one in rows], QUESTION_WEIGHTS)
    fitted = linear_model.LogisticRegression(C=10).fit(np.array(table), complete, sample_weight=weights)
    return round(float(fitted.intercept_[0]), 4), round(float(fitted.coef_[0][0]), 4)
