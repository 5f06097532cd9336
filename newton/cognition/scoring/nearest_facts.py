"""The facts nearest to a question: one of them often answers it in other words than its own. Pure."""

import re
from uuid import UUID

from newton.cognition.questions.question_rules import ANSWERED_KINDS, QuestionReading
from newton.cognition.scoring.answer_features import read_words
from newton.cognition.scoring.answers import AnswerEstimate
from newton.memory.memory import past_reason
from newton.memory.question_detection import is_only_question, opens_question
from newton.memory.search_types import RecallResult

NEAREST_FACT = "among the facts that are nearest to the question"

# Tokens of the facts nearest to a question about the person, to another one, and to one that memory hardly answers.
OWN_TOKENS, OTHER_TOKENS, UNLIKELY_TOKENS = 700, 250, 80
# Minimum cosine of the nearest fact to the question. "How do I ..." mostly asks for knowledge of the world.
MIN_OWN_COSINE, MIN_OTHER_COSINE, MIN_METHOD_COSINE = 0.2, 0.27, 0.3
MIN_SHARE = 0.3  # of the cosine of the nearest fact, for each other one
MIN_OTHER_QUESTION = 0.08  # of the probability that memory answers a question, below which it hardly does

_METHOD = re.compile(r"\b(?:how|where|what) (?:do|can|could|should|would) (?:i|we)\b", re.IGNORECASE)


def select_nearest_facts(result: RecallResult, reading: QuestionReading, answers: AnswerEstimate) -> frozenset[UUID]:
    """Return the current facts nearest to a question that single memories answer; none if all are too far from it.

    Without the probabilities of an answer, none is selected.
    """
    question = result.query.question
    if answers.question is None or reading.kind not in ANSWERED_KINDS:
        return frozenset()
    if not (opens_question(question) or is_only_question(question)):
        return frozenset()
    max_tokens, minimum = OWN_TOKENS, MIN_METHOD_COSINE if _METHOD.search(question) else MIN_OWN_COSINE
    if not reading.is_first_person:
        if answers.knows_names or read_words(question).names:
            return frozenset()
        max_tokens = UNLIKELY_TOKENS if answers.question < MIN_OTHER_QUESTION else OTHER_TOKENS
        minimum = MIN_OTHER_COSINE
    current = [f for f in result.memories if f.kind == "fact" and not (f.quarantined or past_reason(f.kind, f.state))]
    nearest = sorted(current, key=lambda f: (-result.find_answer_similarity(f), f.memory_id))
    best = result.find_answer_similarity(nearest[0]) if nearest else 0.0
    if best < minimum:
        return frozenset()
    selected = set[UUID]()
    for found in nearest:
        max_tokens -= found.summary_tokens
        if max_tokens < 0 or result.find_answer_similarity(found) < MIN_SHARE * best:
            break
        selected.add(found.memory_id)
    return frozenset(selected)
