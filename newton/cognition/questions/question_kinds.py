"""Kinds of questions, by the memories that answer them: one fact, a list, a timeline, a summary, or a request. Pure."""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from newton.content.yaml_files import parse_trusted
from newton.text.languages import ENGLISH, detect_language
from newton.text.patterns import question_patterns

QuestionKind = Literal["point", "list", "timeline", "summary", "standing"]

MAX_READ_CHARACTERS = 2_000  # of an input; a longer one is mostly pasted text

FOREIGN_KINDS: Sequence[QuestionKind] = ("timeline", "summary", "standing", "list")  # in the order of trial

_FIRST_PERSON = re.compile(r"\b(?:i|my|me|mine|we|our)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class QuestionReading:
    """The kind of a question, and the words of it that decided; no words for a `point`, which is the default.

    `asks_own_words` means that it asks what the person has said, `is_first_person` that it is about the person. Both
    are False if it asks what the agent has said (`asks_agent_words`).
    """

    kind: QuestionKind = "point"
    phrase: str = ""
    asks_own_words: bool = False
    is_first_person: bool = False
    asks_agent_words: bool = False


POINT = QuestionReading()


class _KindPatterns(NamedTuple):
    """The patterns of the kinds, in the order in which they are tried, and those of an input about what was said."""

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
