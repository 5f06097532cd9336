"""Probability that a memory is relevant to an input, answers a question, or a context has all that it needs. Pure.

Unlike the probability of being relevant to a topic, that of an answer is calibrated on questions of which every answer
is known: of the memories with a probability of .2, one in five answers.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import NamedTuple
from uuid import UUID

from newton.cognition.questions.question_kinds import find_echoes
from newton.cognition.relevance_model import (
    NO_CORRECTION,
    AnswerCorrection,
    AnswerFeature,
    AnswerRegression,
    BoostedTrees,
    LogisticCoefficients,
    RelevanceCoefficients,
    RelevanceModel,
    TreeSplit,
    to_log_odds,
)
from newton.ids import derive_model_id
from newton.memory.query_vectors import NO_EMBEDDER
from newton.memory.recall import K1
from newton.memory.search_types import RecallResult, RetrievedMemory
from newton.text.words import is_content_word

FULL_TEXT_COUNT = 2_000  # texts of a memory that has nearly every common word


class SearchEvidence(NamedTuple):
    """Evidence of the search for one memory, or the maximum over all found memories: input of a logistic regression.

    `lexical` is the BM25 score as a share of the score of all words of the input, where unknown words count as the
    rarest. `relative` is the relevance as a share of that of the best memory. `known_share` is the share of the input's
    words that the agent's memories contain; it is raised for few memories, which lack even common words. `size` grows
    with the number of memories, to 1 at FULL_TEXT_COUNT texts.
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
    """Return the found memories that can answer the query: all but questions, and texts that repeat the query."""
    text = result.query.question
    return [found for found in result.memories if not (found.is_only_question or found.repeats_query(text))]


def find_known_share(result: RecallResult, telling: Sequence[RetrievedMemory]) -> float:
    """Return the share of the query's words that memory contains; words that occur only in questions do not count."""
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


COMPARED = 20  # the most similar memories, with which the cosine of each memory is compared
MARGIN_RANK = 5  # the margin is the cosine of the best memory minus that of the one behind so many others
CLOSE_GAP = 0.1  # memories within this distance of the best cosine count as close
MIN_SPREAD = 0.02  # added to the standard deviation of the cosines
STEM_LETTERS = 4  # words of at most so many letters are compared whole

_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_SENTENCE_ENDS = frozenset('.?!:\n"')

Features = Mapping[AnswerFeature, float]

# The features that differ from memory to memory, in the order of their values.
MEMORY_FEATURES: tuple[AnswerFeature, ...] = (
    *("cosine", "lexical", "relative", "log_rank", "cosine_gap", "lexical_gap", "cosine_z", "plain_cosine"),
    *("name_share", "word_share", "only_question", "is_fact", "is_message"),
)


class QuestionWords(NamedTuple):
    """The names in a question, and the stems of its other content words in lower case, each once."""

    names: tuple[str, ...]
    stems: tuple[str, ...]


def read_words(text: str) -> QuestionWords:
    """Return the names and the other content words of a question. A capital at the start of a sentence is no name.

    >>> read_words("Where does Abena's brother keep the boats? Kofi asks.")
    QuestionWords(names=('Abena',), stems=('broth', 'keep', 'boat', 'kofi', 'asks'))
    """
    names, stems, end = dict[str, None](), dict[str, None](), 0
    for match in _WORD.finditer(text):
        starts_sentence = not end or not _SENTENCE_ENDS.isdisjoint(text[end : match.start()])
        end = match.end()
        word = match[0].removesuffix("'s").removesuffix("’s")
        folded = word.casefold()
        if not is_content_word(folded):
            continue
        if word[0].isupper() and not starts_sentence:
            names[word] = None
        else:
            stems[_cut_ending(folded)] = None
    return QuestionWords(tuple(names), tuple(stems))


def _cut_ending(word: str) -> str:
    """Return the beginning of a word that its inflected forms share."""
    if len(word) <= STEM_LETTERS:
        return word
    return word[: max(STEM_LETTERS, len(word) - 2)] if len(word) <= 7 else word[:-3]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvidence:
    """The features for a question: `shared` by all found memories, and a tuple for each memory by id."""

    shared: Features
    memories: Mapping[UUID, tuple[float, ...]]


def extract_features(
    text: str,
    memories: Sequence[RetrievedMemory],
    telling: Sequence[RetrievedMemory],
    *,
    known: float,
    shared: Features,
    answer_cosines: Mapping[UUID, float],
) -> AnswerEvidence:
    """Return the features of memories for a question.

    `telling` are the found memories that can answer, `known` is the share of the question's words that they contain,
    and `shared` holds `best_lexical`, `known_share` and `size`. `answer_cosines` are the cosines of memories with the
    vector of the search, by id.
    """
    asked, telling_ids = read_words(text), {found.memory_id for found in telling}
    can_answer = [found for found in memories if found.memory_id in telling_ids]
    compared = [found for found in can_answer if found.kind != "procedure"] or can_answer
    cosines = sorted((answer_cosines[found.memory_id] for found in compared), reverse=True) or [0.0]
    best_lexical = max((found.lexical for found in compared), default=0.0)
    shares = {found.memory_id: _find_shares(asked, found) for found in memories}
    mean, spread = _measure_spread(cosines[:COMPARED])
    common: Features = {
        **shared,
        "best_cosine": cosines[0],
        "best_plain": max((found.similarity for found in compared), default=0.0),
        "margin": cosines[0] - cosines[min(MARGIN_RANK, len(cosines) - 1)],
        "best_name_share": max((shares[found.memory_id][0] for found in compared), default=0.0),
        "best_word_share": max((shares[found.memory_id][1] for found in compared), default=0.0),
        "close_count": math.log1p(sum(cosine > cosines[0] - CLOSE_GAP for cosine in cosines)),
        "has_names": float(bool(asked.names)),
    }
    ranked = sorted(memories, key=lambda found: -found.relevance)
    best = cosines[0]
    own = {
        found.memory_id: (
            answer_cosines[found.memory_id],
            found.lexical * known,
            found.relevance,
            math.log1p(rank),
            answer_cosines[found.memory_id] - best,
            found.lexical - best_lexical,
            (answer_cosines[found.memory_id] - mean) / spread,
            found.similarity,
            *shares[found.memory_id],
            found.memory_id not in telling_ids,
            found.kind == "fact",
            found.kind == "exchange",
        )
        for rank, found in enumerate(ranked)
    }
    return AnswerEvidence(shared=common, memories=own)


def _measure_spread(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the standard deviation plus `MIN_SPREAD`. The module `statistics` takes far longer."""
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((value - mean) ** 2 for value in values) / len(values)) + MIN_SPREAD


def _find_shares(asked: QuestionWords, found: RetrievedMemory) -> tuple[float, float]:
    """Return the shares of the names and of the other words that are in the summary or the best part of a long text."""
    text = f"{found.summary} {found.window.text}" if found.window else found.summary
    folded = text.casefold()
    # lists are faster here than generators
    names = sum([name in text for name in asked.names]) / len(asked.names) if asked.names else 0.0
    return names, sum([stem in folded for stem in asked.stems]) / len(asked.stems) if asked.stems else 0.0


MIN_TEXTS = 10  # the smallest memory to which the model is fitted has twelve
MIN_QUESTION = 0.2  # of the probability that memory answers the input at all; below it, memory hardly knows its subject
MAX_LOG_ODDS = 30.0  # more is certainty, and would overflow


@dataclass(frozen=True, slots=True)
class AnswerEstimate:
    """The probability that any memory answers a question (`question`), and that each found memory does, by id.

    `knows_names` means that one memory contains all names of the question, so memory knows the topic. Without a model
    fitted to the search there are no probabilities, and `question` is None.
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
    evidence = extract_answer_evidence(result, telling=telling)
    if not evidence.memories:
        return AnswerEstimate(0.0)
    log_odds = _combine(coefficients.memory, evidence)
    question = estimate_question(coefficients.question, evidence, max(log_odds.values()))
    memories = {memory_id: question * _to_probability(value) for memory_id, value in log_odds.items()}
    if correction != NO_CORRECTION:
        memories = {memory_id: correction.apply(value) for memory_id, value in memories.items()}
    return AnswerEstimate(question, memories, knows_names=evidence.shared["best_name_share"] == 1)


def extract_answer_evidence(
    result: RecallResult, *, telling: Sequence[RetrievedMemory] | None = None
) -> AnswerEvidence:
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
    """Return the log-odds of each memory. The sum of the shared features is computed once, for speed."""
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
