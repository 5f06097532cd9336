"""The facts and messages nearest to a question: one often answers it in other words than its own. Pure."""

import re
from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from newton.cognition.questions.question_rules import ANSWERED_KINDS, QuestionReading, is_reply
from newton.cognition.scoring.answer_features import read_words
from newton.cognition.scoring.answers import MIN_QUESTION, AnswerEstimate
from newton.memory.memory import PERSON_TIERS, past_reason
from newton.memory.search_types import RecallResult, RetrievedMemory
from newton.text.questions import is_only_question, opens_question

NEAREST = "among the memories that are nearest to the question"

OWN_TOKENS, OTHER_TOKENS = 700, 250  # of the facts nearest to a question about the person, and to another one
UNLIKELY_FACTS = 2  # that a question gets which they hardly answer
MESSAGE_TOKENS = 200  # of the messages nearest to a question that memory hardly answers
# Minimum cosine of the nearest fact to the question. "How do I ..." mostly asks for knowledge of the world.
MIN_OWN_COSINE, MIN_OTHER_COSINE, MIN_METHOD_COSINE = 0.1, 0.2, 0.3
NEAR_OWN_COSINE, NEAR_OTHER_COSINE = 0.2, 0.27  # the minimum of the same if memory knows the subject of the question
MIN_MESSAGE_COSINE = 0.2
MIN_SHARE = 0.3  # of the cosine of the nearest fact, for each other one
CLEAR_COSINE, MIN_CLEAR_SHARE = 0.5, 0.45  # beside a fact as near as this, those that are far from it say nothing
MIN_OTHER_QUESTION = 0.08  # of the probability that memory answers a question, below which it hardly does
RANK_OFFSET = 5  # added to both ranks before they are combined: the higher, the less the first places count

_METHOD = re.compile(
    r"\b(?:how (?:do|can|could|should|would)|(?:where|what) (?:can|could|should|would)) (?:i|we)\b", re.IGNORECASE
)


def select_nearest(result: RecallResult, reading: QuestionReading, answers: AnswerEstimate) -> frozenset[UUID]:
    """Return the memories nearest to a question that single memories answer; none if all are too far from it.

    They are current facts, and messages of the person if memory hardly answers the question. Without the probabilities
    of an answer, and for a question with names that no memory has, none is selected.
    """
    question = result.query.question
    if answers.question is None or reading.kind not in ANSWERED_KINDS:
        return frozenset()
    if not (opens_question(question) or is_only_question(question)):
        return frozenset()
    if not reading.is_first_person and read_words(question).names and not answers.knows_names:
        return frozenset()
    is_hardly_known = not answers.knows_names and answers.question < MIN_QUESTION
    messages = _select_messages(result, answers) if is_hardly_known else ()
    return frozenset((*_select_facts(result, reading, answers, is_hardly_known=is_hardly_known), *messages))


def _select_facts(
    result: RecallResult, reading: QuestionReading, answers: AnswerEstimate, *, is_hardly_known: bool
) -> Iterator[UUID]:
    facts = [f for f in result.memories if f.kind == "fact" and not (f.quarantined or past_reason(f.kind, f.state))]
    best = max(map(result.find_answer_similarity, facts), default=0.0)
    if reading.is_first_person:
        is_method = _METHOD.search(result.query.question)
        minimum, near, max_tokens = MIN_METHOD_COSINE if is_method else MIN_OWN_COSINE, NEAR_OWN_COSINE, OWN_TOKENS
    else:
        minimum, near, max_tokens = MIN_OTHER_COSINE, NEAR_OTHER_COSINE, OTHER_TOKENS
    is_unlikely = best < near or (not reading.is_first_person and (answers.question or 0.0) < MIN_OTHER_QUESTION)
    if best < (minimum if is_hardly_known else max(minimum, near)):
        return
    share = MIN_CLEAR_SHARE if best >= CLEAR_COSINE else MIN_SHARE
    close = [f for f in _rank(facts, result, answers) if result.find_answer_similarity(f) >= share * best]
    yield from _fit(close[:UNLIKELY_FACTS] if is_unlikely else close, max_tokens)


def _select_messages(result: RecallResult, answers: AnswerEstimate) -> Iterator[UUID]:
    """Yield the person's messages nearest to a question that memory hardly answers, so that none answers by itself."""
    if _METHOD.search(result.query.question):
        return
    asked = (f for f in result.memories if f.kind == "exchange" and f.trust in PERSON_TIERS and not is_reply(f))
    messages = [f for f in asked if not (f.quarantined or f.is_only_question)]
    if max(map(result.find_answer_similarity, messages), default=0.0) >= MIN_MESSAGE_COSINE:
        yield from _fit(_rank(messages, result, answers), MESSAGE_TOKENS)


def _rank(
    memories: Sequence[RetrievedMemory], result: RecallResult, answers: AnswerEstimate
) -> Sequence[RetrievedMemory]:
    """Return memories, best first, by their ranks by cosine and by the probability that they answer."""

    def place(key: Callable[[RetrievedMemory], float]) -> dict[UUID, int]:
        ordered = sorted(memories, key=lambda f: (-key(f), f.memory_id))
        return {f.memory_id: RANK_OFFSET + rank for rank, f in enumerate(ordered)}

    near, likely = place(result.find_answer_similarity), place(answers.find)
    return sorted(memories, key=lambda f: (-1 / near[f.memory_id] - 1 / likely[f.memory_id], f.memory_id))


def _fit(memories: Sequence[RetrievedMemory], max_tokens: int) -> Iterator[UUID]:
    for found in memories:
        max_tokens -= found.summary_tokens
        if max_tokens < 0:
            return
        yield found.memory_id
