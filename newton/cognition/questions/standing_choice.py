"""Choice of the standing instructions and preferences that apply to an input. Pure.

A request seldom has words of an instruction that applies to it, so the statements are compared with the input apart
from all other memories. A manner, an instruction on the form of every answer, applies to every input. Preferences apply
only to requests, other instructions also to inputs of their domain: those that are close to them, or that ask for what
their form is about.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from newton.cognition.questions.question_kinds import QuestionReading
from newton.heart.identity.tenets import reduce_wish
from newton.memory.memory import StandingType
from newton.memory.search_types import RetrievedMemory
from newton.text.words import extract_content_words

# The least cosine similarity to a request. Within one domain, unrelated statements have less.
REASONS: Mapping[StandingType, str] = {
    "manner": "a standing wish on the form of every answer",
    "instruction": "a standing instruction that applies to the input",
    "preference": "a standing preference that applies to the input",
}
MIN_COSINE: Mapping[StandingType, float] = {"manner": -1.0, "instruction": 0.15, "preference": 0.25}
MIN_OTHER_COSINE = 0.28  # of an instruction to an input that is no request: memory may have many domains
REQUEST_SHARE, OTHER_SHARE = 0.2, 0.06  # of the tokens, for statements that apply to a request and to another input


# What a question asks for, and the words of an instruction on the form of such an answer.
_FORMS = tuple(
    (re.compile(asks, re.IGNORECASE), re.compile(says, re.IGNORECASE))
    for asks, says in (
        (r"\bwhen\b|\bwhat (?:date|day|time)\b|\bhow long\b", r"\b(?:dates?|times?|days?|deadlines?|timelines?)\b"),
        (
            r"\bhow (?:much|many)\b|\bwhat (?:amount|price)\b",
            r"\b(?:numbers?|amounts?|figures?|percent\w*|prices?|units?)\b",
        ),
    )
)


class StandingStatement(NamedTuple):
    """A memory that states an instruction or a preference. Its `similarity` is its cosine to the input."""

    found: RetrievedMemory
    standing: StandingType


def choose_standing(
    reading: QuestionReading, statements: Sequence[StandingStatement], *, text: str, max_tokens: int
) -> dict[UUID, str]:
    """Return the statements that apply to an input, best first, with the reasons: manners, instructions, preferences.

    Without vectors, an instruction or a preference applies if it shares a content word with the input. Of manners with
    the same words, one applies.
    """
    is_request = reading.kind == "standing"
    free_tokens, chosen = max_tokens * (REQUEST_SHARE if is_request else OTHER_SHARE), dict[UUID, str]()
    types: Sequence[StandingType] = ("manner", "instruction", *(("preference",) if is_request else ()))
    wishes = set[str]()
    for standing in types:
        for found, own in statements:
            wish = reduce_wish(found.spoken_text)
            if own != standing or found.summary_tokens > free_tokens or wish in wishes:
                continue
            if _applies(found, standing, text, is_request):
                free_tokens -= found.summary_tokens
                wishes.add(wish)
                chosen[found.memory_id] = REASONS[standing]
    return chosen


def _applies(found: RetrievedMemory, standing: StandingType, text: str, is_request: bool) -> bool:  # noqa: FBT001 (private)
    if standing == "manner":
        return True
    if not found.similarity:
        return not extract_content_words(text).isdisjoint(extract_content_words(found.spoken_text))
    if found.similarity < MIN_COSINE[standing]:
        return False
    return is_request or found.similarity >= MIN_OTHER_COSINE or _is_on_form(found.spoken_text, text)


def _is_on_form(statement: str, text: str) -> bool:
    """Return True if an instruction is on the form of what the input asks for, such as how dates are written.

    >>> _is_on_form("Always write dates with the month first.", "When is the fair?")
    True
    """
    return any(asks.search(text) and says.search(statement) for asks, says in _FORMS)
