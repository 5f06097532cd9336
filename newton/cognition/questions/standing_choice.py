"""Choice of the standing instructions and preferences that apply to an input. Pure.

A request seldom has words of an instruction that applies to it, so the statements are compared with the input apart
from all other memories. Instructions apply to any input of their domain, preferences only to requests.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from newton.cognition.content_words import extract_content_words
from newton.cognition.questions.question_kinds import QuestionReading
from newton.memory.memory import StandingType
from newton.memory.search_types import RetrievedMemory

# The least cosine similarity to the input. Within one domain, unrelated statements have less.
MIN_COSINE: Mapping[StandingType, float] = {"instruction": 0.15, "preference": 0.25}
REQUEST_SHARE, OTHER_SHARE = 0.2, 0.06  # of the tokens, for statements that apply to a request and to another input


class StandingStatement(NamedTuple):
    """A memory that states an instruction or a preference. Its `similarity` is its cosine to the input."""

    found: RetrievedMemory
    standing: StandingType


def choose_standing(
    reading: QuestionReading, statements: Sequence[StandingStatement], *, text: str, max_tokens: int
) -> dict[UUID, str]:
    """Return the statements that apply to an input, best first, with the reasons: instructions before preferences.

    Without vectors, a statement applies if it shares a content word with the input.
    """
    is_request = reading.kind == "standing"
    free_tokens, chosen = max_tokens * (REQUEST_SHARE if is_request else OTHER_SHARE), dict[UUID, str]()
    types: Sequence[StandingType] = ("instruction", "preference") if is_request else ("instruction",)
    words = extract_content_words(text)
    for standing in types:
        for found, own in statements:
            if own == standing and found.summary_tokens <= free_tokens and _applies(found, standing, words):
                free_tokens -= found.summary_tokens
                chosen[found.memory_id] = f"a standing {standing} that applies to the input"
    return chosen


def _applies(found: RetrievedMemory, standing: StandingType, words: frozenset[str]) -> bool:
    if found.similarity:
        return found.similarity >= MIN_COSINE[standing]
    return not words.isdisjoint(extract_content_words(found.spoken_text))
