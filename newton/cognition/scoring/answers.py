"""Probability that a memory answers a question, and that a context has all that the question needs. Pure.

Unlike the probability of being relevant to a topic, it is calibrated on questions of which every answer is known: of
the memories with a probability of .2, one in five answers.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import mul
from uuid import UUID

from newton.cognition.questions.echo import find_echoes
from newton.cognition.relevance_model import (
    NO_CORRECTION,
    AnswerCorrection,
    AnswerRegression,
    BoostedTrees,
    RelevanceModel,
    TreeSplit,
    to_log_odds,
)
from newton.cognition.scoring.answer_features import MEMORY_FEATURES, AnswerEvidence, Features, extract_features
from newton.cognition.scoring.relevance import extract_best_evidence, find_known_share, list_telling
from newton.ids import derive_model_id
from newton.memory.search_types import RecallResult, RetrievedMemory

MIN_TEXTS = 10  # the smallest memory to which the model is fitted has twelve
MIN_QUESTION = 0.2  # of the probability that memory answers the input at all; below it, memory hardly knows its subject
MAX_LOG_ODDS = 30.0  # more is certainty, and would overflow


@dataclass(frozen=True, slots=True)
class AnswerEstimate:
    """The probability that memory answers a question at all, and that each found memory does, by id.

    `knows_names` means that one memory has all names of the question: then it is not on another subject. Without a
    model for the search there are no probabilities, and `question` is None.
    """

    question: float | None = None
    memories: Mapping[UUID, float] = field(default_factory=dict[UUID, float])
    knows_names: bool = False

    def find(self, found: RetrievedMemory) -> float:
        """Return the probability that a memory answers; 0 for one that the search did not find."""
        return self.memories.get(found.memory_id, 0.0)


NO_ESTIMATE = AnswerEstimate()


def estimate_answers(
    model: RelevanceModel,
    result: RecallResult,
    *,
    telling: Sequence[RetrievedMemory] | None = None,
    correction: AnswerCorrection = NO_CORRECTION,
) -> AnswerEstimate:
    """Return the probabilities that the memories of a search answer its question.

    The probability of a memory is the product of two: that memory answers the question at all, and that this one does.
    An earlier question that says the same has none. `telling` are the memories that can answer, if they are known.
    `correction` is that of the agent.
    """
    if (
        result.text_count < MIN_TEXTS
        or result.missing.get("embeddings")
        or result.query.model_id != derive_model_id(model.embedding_model)
    ):
        return NO_ESTIMATE
    coefficients = model.answers
    evidence = extract_evidence(result, telling=telling)
    if not evidence.memories:
        return AnswerEstimate(0.0)
    log_odds = _combine(coefficients.memory, evidence)
    question = estimate_question(coefficients.question, evidence, max(log_odds.values()))
    memories = {memory_id: question * _to_probability(value) for memory_id, value in log_odds.items()}
    if correction != NO_CORRECTION:
        memories = {memory_id: correction.apply(value) for memory_id, value in memories.items()}
    return AnswerEstimate(question, memories, knows_names=evidence.shared["best_name_share"] == 1)


def extract_evidence(result: RecallResult, *, telling: Sequence[RetrievedMemory] | None = None) -> AnswerEvidence:
    """Return the features of the memories of a search, without earlier questions that say the same as its question."""
    telling = list_telling(result) if telling is None else telling
    known = find_known_share(result, telling)
    best = extract_best_evidence(telling, known_share=known, text_count=result.text_count)
    shared: Features = {"best_lexical": best.lexical, "known_share": best.known_share, "size": best.size}
    question = result.query.question
    echoes = find_echoes(question, result.memories)
    memories = [found for found in result.memories if found.memory_id not in echoes]
    cosines = {found.memory_id: result.find_answer_similarity(found) for found in result.memories}
    return extract_features(question, memories, telling, known=known, shared=shared, answer_cosines=cosines)


def estimate_question(trees: BoostedTrees, evidence: AnswerEvidence, best_log_odds: float) -> float:
    """Return the probability that memory answers the question. `best_log_odds` is that of the best memory."""
    values: Features = {**evidence.shared, "best_logit": best_log_odds}
    return _to_probability(trees.base + sum(_evaluate(tree, values) for tree in trees.trees))


def estimate_sufficiency(
    coefficients: tuple[float, float], question: float, *, shown: Iterable[float], found: Iterable[float]
) -> float:
    """Return the probability that a context has all that a question needs.

    `question` is the probability that memory answers the question. `shown` are the probabilities of the items of the
    context, `found` those of all memories that were found: what is left out lowers the result in proportion.
    """
    intercept, slope = coefficients
    total = sum(found)
    share = min(sum(shown) / total, 1.0) if total > 0 else 0.0
    return share * _to_probability(intercept + slope * to_log_odds(question))


def _combine(regression: AnswerRegression, evidence: AnswerEvidence) -> dict[UUID, float]:
    """Return the log-odds of each memory. What all memories share is added up once: there are hundreds of them."""
    weights, shared = regression.coefficients, evidence.shared
    base = regression.intercept + sum(weight * shared[name] for name, weight in weights.items() if name in shared)
    own = [weights.get(name, 0.0) for name in MEMORY_FEATURES]
    return {memory_id: base + sum(map(mul, own, values)) for memory_id, values in evidence.memories.items()}


def _evaluate(tree: Sequence[TreeSplit | float], values: Features) -> float:
    node = tree[0]
    while isinstance(node, TreeSplit):
        node = tree[node.low if values[node.feature] <= node.threshold else node.high]
    return node


def _to_probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-min(max(log_odds, -MAX_LOG_ODDS), MAX_LOG_ODDS)))
