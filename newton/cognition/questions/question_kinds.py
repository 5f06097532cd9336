"""Classification of questions by the memories that answer them, and detection of earlier equal questions. Pure."""

import functools
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Literal, NamedTuple
from uuid import UUID

from newton.content.yaml_files import parse_trusted
from newton.memory.search_types import RetrievedMemory
from newton.text.languages import ENGLISH, detect_language
from newton.text.patterns import question_patterns
from newton.text.words import extract_content_words

QuestionKind = Literal["point", "list", "timeline", "summary", "standing"]

MAX_READ_CHARACTERS = 2_000  # of an input; a longer one is mostly pasted text

FOREIGN_KINDS: Sequence[QuestionKind] = ("timeline", "summary", "standing", "list")  # in the order of trial

_FIRST_PERSON = re.compile(r"\b(?:i|my|me|mine|we|our)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuestionReading:
    """The kind of a question, and the words in it that decided; no words for the default kind `point`.

    `asks_own_words` means that the question asks what the person has said, `is_first_person` that it is about the
    person. Both are False if it asks what the agent has said (`asks_agent_words`).
    """

    kind: QuestionKind = "point"
    phrase: str = ""
    asks_own_words: bool = False
    is_first_person: bool = False
    asks_agent_words: bool = False


POINT = QuestionReading()


class _KindPatterns(NamedTuple):
    """The pattern of each kind, in the order of the tests, and those of questions for words of the person or agent."""

    kinds: Sequence[tuple[QuestionKind, re.Pattern[str]]]
    own_words: re.Pattern[str]
    agent_words: re.Pattern[str]


def read_question(text: str) -> QuestionReading:
    """Return the kind of the question in a text.

    >>> texts = ("Where is the key?", "In what order did we go?", "Sum up the talks.", "How many cats has Nora?")
    >>> [read_question(text).kind for text in (*texts, "Write a letter to Nora.")]
    ['point', 'timeline', 'summary', 'list', 'standing']
    """
    if (code := detect_language(text)) != ENGLISH:
        return _read_foreign_question(text[:MAX_READ_CHARACTERS], code)
    folded = " ".join(text[:MAX_READ_CHARACTERS].replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split())
    patterns = _load_patterns()
    readings = (
        QuestionReading(kind, match[0].strip(" ,.;"))
        for kind, pattern in patterns.kinds
        if (match := pattern.search(folded))
    )
    decided = next(readings, POINT)
    if patterns.agent_words.search(folded):
        return replace(decided, asks_agent_words=True)
    return replace(
        decided,
        asks_own_words=patterns.own_words.search(folded) is not None,
        is_first_person=_FIRST_PERSON.search(folded) is not None,
    )


def _read_foreign_question(text: str, code: str) -> QuestionReading:
    """Return the kind of a question in another language than English, by the patterns of the language."""
    folded = " ".join(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").split())
    readings = (
        QuestionReading(kind, match[0].strip(" ,.;¿"))
        for kind in FOREIGN_KINDS
        if (match := question_patterns(kind, code).search(folded))
    )
    decided = next(readings, POINT)
    if question_patterns("agent_words", code).search(folded):
        return replace(decided, asks_agent_words=True)
    return replace(
        decided,
        asks_own_words=question_patterns("own_words", code).search(folded) is not None,
        is_first_person=question_patterns("first_person", code).search(folded) is not None,
    )


@functools.cache
def _load_patterns() -> _KindPatterns:
    source = files("newton.cognition.questions").joinpath("question_kinds.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = parse_trusted(source)

    def compile_any(patterns: Sequence[str]) -> re.Pattern[str]:
        joined = "|".join(f"(?:{pattern})" for pattern in patterns)
        for name, part in content["parts"].items():
            joined = joined.replace(f"{{{name}}}", part)
        return re.compile(joined, re.IGNORECASE)

    kinds = [(section["kind"], compile_any(section["patterns"])) for section in content["kinds"]]
    return _KindPatterns(kinds, compile_any(content["own_words"]), compile_any(content["agent_words"]))


ECHO_FACTOR = 0.3  # of the relevance of an echo
MAX_ADDED_WORDS = 1  # content words of an echo that the input lacks
MIN_LEXICAL = 0.15  # less than a question with half of the words of the input has

_INTERROGATIVE = re.compile(r"\b(?:where|when|who|whom|whose|which|what|why|how)\b")


def is_echo(found: RetrievedMemory, text: str) -> bool:
    """Return True if a message is an earlier question with the same words as the text, so it cannot answer it.

    At most one of its content words may be absent from the text, and most of them must be in it, or half if both begin
    with the same interrogative. Words decide, not the cosine: a long question often answers a different one.
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

    The best of the other memories then has relevance 1.
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
