"""Probability that a memory is relevant to an input, computed from the evidence of the search. Pure."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from newton.cognition.relevance_model import LogisticCoefficients, RelevanceCoefficients, RelevanceModel
from newton.ids import derive_model_id
from newton.memory.query_vectors import NO_EMBEDDER
from newton.memory.recall import K1
from newton.memory.search_types import RecallResult, RetrievedMemory

FULL_TEXT_COUNT = 2_000  # texts of a memory that has nearly every common word


class SearchEvidence(NamedTuple):
    """Evidence of the search for one memory, or the maximum over all found memories: input of a logistic regression.

    `lexical` is the BM25 score as a share of the score of all words of the input, where unknown words count as the
    rarest. `known_share` is the share of the input's words that the agent's memories contain; it is raised for few
    memories, which lack even common words. `size` grows with the number of memories, to 1 at FULL_TEXT_COUNT texts.
    """

    cosine: float
    lexical: float
    relative: float
    known_share: float
    size: float = 0.0


def extract_evidence(found: RetrievedMemory, *, known_share: float) -> SearchEvidence:
    return SearchEvidence(found.similarity, found.lexical * known_share, found.relevance, known_share)


def extract_best_evidence(
    memories: Sequence[RetrievedMemory], *, known_share: float, text_count: int
) -> SearchEvidence:
    """Return the highest value of each kind of evidence among the memories.

    Procedures are left out, because they may ship with Newton and then say nothing about what the agent knows.
    """
    evidence = [extract_evidence(f, known_share=known_share) for f in memories if f.kind != "procedure"]
    best = SearchEvidence(*map(max, zip(*evidence, strict=True))) if evidence else SearchEvidence(0, 0, 0, 0)
    size = min(math.log1p(text_count) / math.log1p(FULL_TEXT_COUNT), 1)
    return best._replace(known_share=1 - (1 - known_share) * size, size=size)


def create_estimator(
    model: RelevanceModel, result: RecallResult, *, telling: Sequence[RetrievedMemory] | None = None
) -> Callable[[RetrievedMemory], float]:
    """Return a function from a memory to the probability that it is relevant to the query of the search.

    Two probabilities are multiplied: that the agent's memories contain anything on the query, and that the given memory
    is part of it. `telling` are the memories that can answer, if they are known.
    """
    chosen, telling = select_coefficients(model, result), list_telling(result) if telling is None else telling
    known_share = find_known_share(result, telling)
    best = extract_best_evidence(telling, known_share=known_share, text_count=result.text_count)
    query_probability = _compute_probability(chosen.query, best) if chosen.query else 1.0
    return lambda found: (
        query_probability * _compute_probability(chosen.memory, extract_evidence(found, known_share=known_share))
    )


def list_telling(result: RecallResult) -> Sequence[RetrievedMemory]:
    """Return the found memories that can answer. A question that was asked before is no evidence of its answer."""
    text = result.query.question
    return [found for found in result.memories if not (found.is_only_question or found.repeats_query(text))]


def find_known_share(result: RecallResult, telling: Sequence[RetrievedMemory]) -> float:
    """Return the share of the query's words that the memories contain, without words that only questions contain."""
    if len(telling) == len(result.memories):
        return result.known_share
    # in a text of mean length that has each word once, the score of a word is 1 / (1 + K1) of its maximum
    of_best = max((found.lexical for found in telling), default=0.0) * (1 + K1)
    return min(result.known_share, of_best)


def select_coefficients(model: RelevanceModel, result: RecallResult) -> RelevanceCoefficients:
    """Return the coefficients that match the embedding model of the search.

    Without an embedder these are `words_only`; for another model than the fitted one, or if the embedder failed,
    `other`.
    """
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
        + weights.size * evidence.size
    )
    return 1 / (1 + math.exp(-exponent))
