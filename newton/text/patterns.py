"""Facts, instructions and questions in other languages than English, found by the language's patterns. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from newton.text.languages import LANGUAGES, load_language

MAX_MESSAGE_CHARACTERS = 2_000  # a longer message is mostly pasted text
MAX_SENTENCE_CHARACTERS = 300
MIN_CONTENT_WORDS, MIN_CHARACTERS = 2, 6  # of a statement that matches no pattern, without and with spaces

_SENTENCE = re.compile(
    r"[^\n.!?。！？]+(?:(?:[.!?](?=[^\s])|(?:(?<=\b\d)|(?<=\b\d\d)|(?<=\b[DMS][rst]|\b[dm]r)|(?<=\bProf))\.(?= \w))"
    r"[^\n.!?。！？]*)*"
    r"[.!?。！？]*"
)
_QUOTED = re.compile(r"[\"„“”«»「」『』‹›]|^\s*[>|]|```")
_WORD = re.compile(r"\w{2,}|\d")
_EDGES = " \t,;:–—-.!。！"


class PatternStatement(NamedTuple):
    """A statement that is worth remembering, from `start` to `end` of the message.

    `attribute` names what it states, such as "lives in". It is empty if it has no name.
    """

    start: int
    end: int
    attribute: str


def find_statements(message: str, code: str) -> list[PatternStatement]:
    """Return the statements of a message in the language `code`, in order.

    Questions, instructions, quotations, and sentences with too few words of content are left out. What is not so has no
    attribute, so that it replaces no other value.

    >>> find_statements("Hallo! Ich wohne in Bergen. Wo kann ich ein Rad kaufen?", "de")
    [PatternStatement(start=7, end=26, attribute='lives in')]
    """
    return [] if len(message) > MAX_MESSAGE_CHARACTERS else list(_iter_statements(message, code))


def list_sentences(message: str, code: str) -> list[tuple[int, int, bool]]:
    """Return start and end of each sentence of a message in the language `code`, and whether it asks."""
    return [(*one.span(), asks(one[0], code)) for one in _SENTENCE.finditer(message) if one[0].strip()]


def _iter_statements(message: str, code: str) -> Iterator[PatternStatement]:
    for sentence in _SENTENCE.finditer(message):
        text = _strip_opening(sentence[0], code)
        if _is_question(sentence[0], text, code):  # "wir sind zu viert, was kostet das?" tells something and asks
            head, _, tail = text.rpartition(", ")
            text = tail if _compile("asking", code).match(text) and not text.endswith("?") else head
        if not text or len(text) > MAX_SENTENCE_CHARACTERS or _compile("asking", code).match(text):
            continue
        if _QUOTED.search(text) or find_instruction(text, code) or question_patterns("standing", code).search(text):
            continue
        attribute = find_attribute(text, code)
        if attribute is not None or _tells(text, code):
            start = message.index(text, sentence.start())
            is_not = has_ended(text, code) or is_negated(text, code)
            yield PatternStatement(start, start + len(text), "" if is_not else attribute or "")


def _tells(text: str, code: str) -> bool:
    """Return whether a sentence has enough content to be remembered, by its words."""
    data = load_language(code)
    if not data.is_spaced:
        return len(text) >= MIN_CHARACTERS and question_patterns("first_person", code).search(text) is not None
    words = [word for word in _WORD.findall(text) if word.casefold() not in data.words]
    return len(words) >= MIN_CONTENT_WORDS


def find_attribute(text: str, code: str) -> str | None:
    """Return the attribute of a statement, such as "lives in", by the first pattern that matches; None without one."""
    folded = _fold(text)
    return next((attribute for attribute, pattern in _fact_patterns(code) if pattern.search(folded)), None)


def has_ended(text: str, code: str) -> bool:
    """Return whether a statement in the language `code` says that something is over, as "nicht mehr" does."""
    return _matches(_compile("ended", code), text)


def is_negated(text: str, code: str) -> bool:
    """Return whether a statement in the language `code` has a negation."""
    return _matches(_compile("negated", code), text)


def concerns_health(text: str) -> bool:
    """Return whether a text in any served language is about an allergy, an illness or a medication."""
    return any(_matches(_compile("safety", code), text) for code in LANGUAGES)


def find_instruction(text: str, code: str) -> bool:
    """Return whether a sentence in the language `code` is an instruction for later requests."""
    return _matches(_standing_pattern("instruction", code), text)


def list_instructions(message: str, code: str) -> list[str]:
    """Return the sentences of a message in the language `code` that are instructions for later requests, in order.

    >>> list_instructions("Danke! Antworte bitte immer auf Deutsch.", "de")
    ['Antworte bitte immer auf Deutsch']
    """
    if len(message) > MAX_MESSAGE_CHARACTERS:
        return []
    texts = [_strip_opening(one, code) for one in _SENTENCE.findall(message) if not one.rstrip().endswith(("?", "？"))]
    return [text[:1].upper() + text[1:] for text in texts if find_instruction(text, code) and not _QUOTED.search(text)]


def states_preference(message: str, code: str) -> bool:
    """Return whether a sentence of a message in the language `code` states a preference."""
    return len(message) <= MAX_MESSAGE_CHARACTERS and _matches(_standing_pattern("preference", code), message)


def asks(sentence: str, code: str) -> bool:
    """Return whether a sentence in the language `code` is a question by its mark or its first word."""
    return _is_question(sentence, _strip_opening(sentence, code), code)


@cache
def question_patterns(name: str, code: str) -> re.Pattern[str]:
    """Return the pattern `name` of the language `code`: of a kind of question, or of what a question is about."""
    return compile_any(load_language(code).questions.get(name, ()))


def compile_any(patterns: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches wherever one of the patterns does; without patterns, it matches nothing."""
    joined = "|".join(f"(?:{pattern})" for pattern in patterns)
    return re.compile(joined or r"(?!)", re.IGNORECASE)


def _matches(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(_fold(text)) is not None


def _fold(text: str) -> str:
    return " ".join(text.split()).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def _is_question(sentence: str, text: str, code: str) -> bool:
    return sentence.rstrip(' "”»)').endswith(("?", "？")) or _compile("asking", code).match(text) is not None


def _strip_opening(sentence: str, code: str) -> str:
    text = sentence.strip(_EDGES)
    opening = _opening_pattern(code)
    while (match := opening.match(text)) and match.end() < len(text):
        text = text[match.end() :].lstrip(_EDGES)
    return text


@cache
def _opening_pattern(code: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?:{load_language(code).openings or '(?!)'})(?:[\s,:;!–—-]+|(?=[\u3040-\u9fff]))", re.IGNORECASE
    )


@cache
def _compile(name: str, code: str) -> re.Pattern[str]:
    return compile_any([pattern] if (pattern := getattr(load_language(code), name)) else [])


@cache
def _standing_pattern(name: str, code: str) -> re.Pattern[str]:
    return compile_any(load_language(code).standing.get(name, ()))


@cache
def _fact_patterns(code: str) -> Sequence[tuple[str, re.Pattern[str]]]:
    return [(fact["attribute"], re.compile(fact["pattern"], re.IGNORECASE)) for fact in load_language(code).facts]
