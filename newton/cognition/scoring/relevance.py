"""The calibrated probability that a memory is relevant to an input. Pure: arithmetic over evidence of the search."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from newton.content.relevance_model import LogisticCoefficients, RelevanceCoefficients, RelevanceModel
from newton.ids import derive_model_id
from newton.memory.recall import NO_EMBEDDER
from newton.memory.search_types import RecallResult, RetrievedMemory


class SearchEvidence(NamedTuple):
    """The evidence of one memory, or the maximum of all: the fields of `LogisticCoefficients`.

    `lexical` is the BM25 score relative to the maximum of all words of the input, where those that memory does not have
    count as the rarest.
    """

    cosine: float
    lexical: float
    relative: float
    known_share: float


def extract_evidence(found: RetrievedMemory, *, known_share: float) -> SearchEvidence:
    return SearchEvidence(found.similarity, found.lexical * known_share, found.relevance, known_share)


def extract_best_evidence(memories: Sequence[RetrievedMemory], *, known_share: float) -> SearchEvidence:
    """Return the maximum of each evidence. Procedures do not count: they may be built-in."""
    evidence = [extract_evidence(f, known_share=known_share) for f in memories if f.kind != "procedure"]
    return SearchEvidence(*map(max, zip(*evidence, strict=True))) if evidence else SearchEvidence(0, 0, 0, known_share)


def create_estimator(model: RelevanceModel, result: RecallResult) -> Callable[[RetrievedMemory], float]:
    """Return the function that maps a memory to its probability of being relevant to the query of the search.

    It is the probability that memory has anything about the query, times that of the memory to be part of it.
    """
    chosen, known_share = select_coefficients(model, result), result.known_share
    best = extract_best_evidence(result.memories, known_share=known_share)
    query_probability = _compute_probability(chosen.query, best) if chosen.query else 1.0
    return lambda found: (
        query_probability * _compute_probability(chosen.memory, extract_evidence(found, known_share=known_share))
    )


def select_coefficients(model: RelevanceModel, result: RecallResult) -> RelevanceCoefficients:
    """Return the coefficients for the search. After a failure of the embedding model, words alone exclude nothing."""
    match result.missing.get("embeddings"):
        case None if result.query.model_id == derive_model_id(model.embedding_model):
            return model.fitted
        case reason:
            return model.words_only if reason == NO_EMBEDDER else model.other


def _compute_probability(weights: LogisticCoefficients, evidence: SearchEvidence) -> float:
    exponent = (
        weights.intercept
        + weights.cosine * evidence.cosine
        + weights.lexical * evidence.lexical
        + weights.relative * evidence.relative
        + weights.known_share * evidence.known_share
    )
    return 1 / (1 + math.exp(-exponent))
