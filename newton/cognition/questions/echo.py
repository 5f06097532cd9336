"""Earlier questions that say the same as the input: they have its words, so a search finds them first. Pure."""

import re
from collections.abc import Sequence, Set
from uuid import UUID

from newton.memory.search_types import RetrievedMemory
from newton.text.words import extract_content_words

ECHO_FACTOR = 0.3  # of the relevance of an echo
MAX_ADDED_WORDS = 1  # content words of an echo that the input lacks
MIN_LEXICAL = 0.15  # less than a question with half of the words of the input has

_INTERROGATIVE = re.compile(r"\b(?:where|when|who|whom|whose|which|what|why|how)\b")


def is_echo(found: RetrievedMemory, text: str) -> bool:
    """Return True if a message only asks, and has at most one content word that the text lacks.

    Most of its words must be in the text, or half of them if both ask with the same word, such as "where". The words
    decide and not the cosine: a long question often says something that answers another one.
    """
    if found.kind != "exchange" or not found.is_only_question:
        return False
    words, asked = extract_content_words(found.spoken_text), extract_content_words(text)
    added, common = len(words - asked), len(words & asked)
    if added > MAX_ADDED_WORDS or not common:
        return False
    return common > added or _find_interrogative(found.spoken_text) == _find_interrogative(text) is not None


def find_echoes(text: str, memories: Sequence[RetrievedMemory]) -> Set[UUID]:
    """Return the ids of the memories that are earlier questions which say the same as the text."""
    suspected = (f for f in memories if f.kind == "exchange" and f.lexical >= MIN_LEXICAL)
    return {f.memory_id for f in suspected if f.repeats_query(text) or is_echo(f, text)}


def demote_echoes(text: str, memories: Sequence[RetrievedMemory]) -> Sequence[RetrievedMemory]:
    """Lower the relevance of earlier questions that say the same as the text, and scale that of all other memories.

    The best memory that can answer has relevance 1 then, as without the questions.
    """
    echoes = find_echoes(text, memories)
    best = max((f.relevance for f in memories if f.memory_id not in echoes), default=0.0)
    if not echoes or best <= 0:
        return memories
    scaled = (
        f._replace(relevance=f.relevance * ECHO_FACTOR if f.memory_id in echoes else f.relevance / best)
        for f in memories
    )
    return sorted(scaled, key=lambda f: (-f.relevance, f.memory_id))


def _find_interrogative(text: str) -> str | None:
    match = _INTERROGATIVE.search(text.casefold())
    return match[0] if match else None
