"""Fit of the probability that a memory is relevant to the topic of an input, for scripts/fit-relevance."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from newton.cognition.relevance_model import LogisticCoefficients, RelevanceCoefficients, RelevanceModel
from newton.cognition.scoring.relevance import SearchEvidence, extract_best_evidence, extract_evidence
from newton.memory.search_types import RecallResult
from tests.fitting.answers import AnswerCase, Floats, fit_answers
from tests.fitting.relevance_data import SMALL_UNKNOWN, UNKNOWN, TopicCase

WITHOUT_ANSWER = (UNKNOWN, SMALL_UNKNOWN)
PENALTY = 1e-3  # of the squared weights of the standardized features

# The evidence, whether it is relevant, and the weight of a memory or a question.
Row = tuple[SearchEvidence, bool, float]


def fit_model(topics: Sequence[TopicCase], answers: Sequence[AnswerCase], *, embedding_model: str) -> RelevanceModel:
    """Fit all coefficients of the relevance model."""
    by_words = [replace(case, result=_without_vectors(case.result)) for case in topics]
    return RelevanceModel(
        embedding_model=embedding_model,
        fitted=RelevanceCoefficients(
            query=_fit_queries(topics, ["cosine", "lexical", "known_share", "size"]),
            memory=_fit_memories(topics, ["cosine", "lexical"]),
        ),
        other=RelevanceCoefficients(query=None, memory=_fit_memories(topics, ["lexical", "relative"])),
        words_only=RelevanceCoefficients(
            query=_fit_queries(by_words, ["lexical", "known_share", "size"]),
            memory=_fit_memories(by_words, ["lexical"]),
        ),
        answers=fit_answers(answers),
    )


def _fit(rows: Sequence[Row], names: Sequence[str]) -> LogisticCoefficients:
    """Fit a logistic regression to (evidence, label, weight); both labels weigh the same in total."""
    x: Floats = np.array([[getattr(evidence, name) for name in names] for evidence, _, _ in rows])
    y: Floats = np.array([row[1] for row in rows], float)
    weight: Floats = np.array([row[2] for row in rows])
    for side in (0, 1):
        weight[y == side] /= weight[y == side].sum()
    mean, scale = x.mean(0), np.maximum(x.std(0), 1e-9)
    z: Floats = np.c_[np.ones(len(x)), (x - mean) / scale]
    beta: Floats = np.zeros(len(names) + 1)
    ridge: Floats = PENALTY * np.array([0.0, *[1.0] * len(names)])
    for _ in range(100):  # Newton's method
        p: Floats = 1 / (1 + np.exp(-z @ beta))
        gradient: Floats = z.T @ (weight * (p - y)) + ridge * beta
        hessian: Floats = (z * (weight * p * (1 - p))[:, None]).T @ z + np.diag(ridge)
        beta = beta - np.linalg.solve(hessian, gradient)
    slopes: Floats = beta[1:] / scale
    fitted: dict[str, float] = dict(zip(("intercept", *names), (beta[0] - slopes @ mean, *slopes), strict=True))
    return LogisticCoefficients(**{name: round(float(value), 4) for name, value in fitted.items()})


def _fit_queries(cases: Sequence[TopicCase], names: Sequence[str]) -> LogisticCoefficients:
    """Fit the probability that memory has anything about an input. Each group of questions has the same weight."""
    sizes = Counter(case.group for case in cases)
    rows = [(_find_best(case.result), case.group not in WITHOUT_ANSWER, 1 / sizes[case.group]) for case in cases]
    return _fit(rows, names)


def _find_best(result: RecallResult) -> SearchEvidence:
    return extract_best_evidence(result.memories, known_share=result.known_share, text_count=result.text_count)


def _fit_memories(cases: Sequence[TopicCase], names: Sequence[str]) -> LogisticCoefficients:
    """Fit the probability that a memory is relevant, to questions with an answer of equal weight in each group."""
    sizes, rows = Counter(case.group for case in cases), list[Row]()
    for case in cases:
        found = [one for one in case.result.memories if one.memory_id in case.labels]
        counts = Counter(case.labels[one.memory_id] for one in found)
        for one in found if case.group not in WITHOUT_ANSWER else ():
            label = case.labels[one.memory_id]
            evidence = extract_evidence(one, known_share=case.result.known_share)
            rows.append((evidence, label, 1 / sizes[case.group] / counts[label]))
    return _fit(rows, names)


def _without_vectors(result: RecallResult) -> RecallResult:
    return replace(result, memories=[found._replace(similarity=0.0) for found in result.memories if found.lexical])
