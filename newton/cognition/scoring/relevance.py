"""The calibrated probability that a memory is relevant to an input. Pure: arithmetic over evidence of the search."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from newton.content.relevance_model import RelevanceCoefficients, RelevanceModel
from newton.ids import derive_model_id
from newton.memory.ranking import evidence_score
from newton.memory.search_types import RecallResult, RetrievedMemory

# Maximum of the best evidence: above it, a memory repeats the words of the input.
MAX_BEST_EVIDENCE = 1.0


class QueryBackground(NamedTuple):
    """The evidence that all candidates of a query have in common.

    `known_share` is the share of the input's words that memory has. `best_evidence` counts words by their share of all
    words of the input, so that it is low when memory lacks the rarest ones.
    """

    known_share: float
    best_evidence: float


def measure_background(memories: Sequence[RetrievedMemory], *, known_share: float) -> QueryBackground:
    """Return the background of a query. Procedures do not count for it: they may be built-in."""
    compared = [found for found in memories if found.kind != "procedure"]
    best = max((_weigh_evidence(found, known_share) for found in compared), default=0.0)
    return QueryBackground(known_share, min(best, MAX_BEST_EVIDENCE))


def compute_evidence(found: RetrievedMemory, background: QueryBackground) -> Mapping[str, float]:
    """Return the features of the logistic regression, by coefficient."""
    return {
        "intercept": 1.0,
        "cosine": found.similarity,
        "words": found.lexical * background.known_share,
        "relative": found.relevance,
        "best": background.best_evidence,
    }


def create_estimator(model: RelevanceModel, result: RecallResult) -> Callable[[RetrievedMemory], float]:
    """Return the function that maps a memory to its probability of being relevant to the query of the search."""
    background = measure_background(result.memories, known_share=result.known_share)
    weights: Mapping[str, float] = dict(_select_coefficients(model, result))

    def estimate(found: RetrievedMemory) -> float:
        evidence = compute_evidence(found, background)
        return 1 / (1 + math.exp(-sum(weights[name] * value for name, value in evidence.items())))

    return estimate


def _select_coefficients(model: RelevanceModel, result: RecallResult) -> RelevanceCoefficients:
    if result.query.model_id is None or not any(found.similarity for found in result.memories):
        return model.words_only
    return model.fitted if result.query.model_id == derive_model_id(model.embedding_model) else model.other


def _weigh_evidence(found: RetrievedMemory, known_share: float) -> float:
    return evidence_score(found.similarity, found.lexical * known_share, found.word_count)
