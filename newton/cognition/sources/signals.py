"""Analysis of an input: its intent, the event types that help with it, and the times that it asks for. Pure."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from newton.text.greetings import is_small_talk, strip_greeting
from newton.text.time_expressions import TimeRange, find_time_ranges, remove_times
from newton.text.words import FOLLOW_UP_WORDS, extract_content_words

InputIntent = Literal["question", "action", "fix", "explain", "other"]

# Event types that help with each intent, most helpful first.
EVENT_TYPES_BY_INTENT: Mapping[InputIntent, tuple[str, ...]] = {
    "fix": ("error", "shell_exec", "file_write"),
    "explain": ("file_read", "document_read", "message"),
    "question": ("message", "file_read", "search"),
    "action": ("file_write", "shell_exec", "file_read"),
    "other": (),
}

# Generic activities, which name no subject.
_GENERIC_WORDS = extract_content_words(
    "agree agreed agreement appointment arrange choose chose choice conclude conclusion decide decision discuss"
    " discussion do event learn learnt meet meeting met plan planned say schedule scheduled settle speak spoke talk"
    " talked work worked write wrote"
)
_FIX = re.compile(r"\b(?:fix(?:e[sd]|ing)?|errors?|bugs?)\b", re.IGNORECASE)
_EXPLAIN = re.compile(r"\b(?:explain(?:s|ed|ing)?|how (?:does|do|did)|what(?: is| are|'s|’s))\b", re.IGNORECASE)

# A question about the past or about plans, or the request to look something up; and a question for advice.
_LINK = r"\W*(?:(?:and|so|but|or|ok|okay|then|also|now|well|please)\b\W*)*"
_WH = r"(?:what|who|whom|whose|when|where|which|why|how)"
_BE_OR_DO = r"(?:did|do|does|was|were|is|are|am|has|have|had|happened|went|came)"
_QUERY = re.compile(
    rf"{_LINK}(?:{_WH}(?:'s|'re|'d|'ve)\b|{_WH}(?: [\w'-]+){{0,3}}? {_BE_OR_DO}\b|{_BE_OR_DO}(?:n't)?\b|any\w*\b"
    r"|(?:show|list|tell|give|find|search|look up|summari[sz]e|sum up|recap|recall)\b"
    r"|remind me (?:what|who|when|where|which|how|of|about)\b)",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    rf"{_LINK}(?:{_WH}(?: [\w'-]+){{0,2}}? )?(?:should|shall|can|could|would|may|might)\b"
    rf"|{_LINK}how (?:do|does|to)\b",
    re.IGNORECASE,
)
# A question for an hour: what answers it is known on any day, so the day that it names is no time to search.
_HOUR = re.compile(
    rf"{_LINK}(?:(?:from|until|till|by) )?(?:when|(?:at )?what time)(?:'s|'re| (?:do|does|is|are|am))\b", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")
_COMMA = re.compile(r"[,:]\s+")


def classify_intent(text: str) -> InputIntent:
    """Return the intent of an input: fix, explain, question, action or other.

    Rules match whole words: 'prefix' and 'debug' do not match 'fix'.

    >>> texts = ("Fix the bug", "How does it work?", "Who is Ana?", "Sort the prefixes", "Thanks!")
    >>> [classify_intent(text) for text in texts]
    ['fix', 'explain', 'question', 'action', 'other']
    """
    if not re.search(r"\w", text) or is_small_talk(text):
        return "question" if "?" in text else "other"
    if _FIX.search(text):
        return "fix"
    if _EXPLAIN.search(text):
        return "explain"
    return "question" if "?" in text else "action"


def find_asked_times(text: str, *, now: datetime) -> tuple[TimeRange, ...]:
    """Return the time ranges that an input names, relative to `now`; none if the input is only small talk.

    >>> now = datetime(2024, 5, 15)
    >>> texts = ("What broke yesterday?", "How are you today?", "What broke?")
    >>> [len(find_asked_times(text, now=now)) for text in texts]
    [1, 0, 0]
    """
    found = tuple(find_time_ranges(text, now=now))
    return () if found and is_small_talk(remove_times(text, found)) else found


def asks_for_times(text: str, time_ranges: Sequence[TimeRange]) -> bool:
    """Return True when the input asks what happened or is planned in one of `time_ranges`; False if it only names them.

    >>> now = datetime(2024, 5, 15)
    >>> texts = "What did I do last Friday?", "Remind me on Friday to call Ana.", "What should I wear on Friday?"
    >>> [asks_for_times(text, find_asked_times(text, now=now)) for text in (*texts, "When do you close on Friday?")]
    [True, False, False, False]
    """
    phrases = [span.phrase for span in time_ranges]
    if "?" in text and asks_only_about_time(text, time_ranges):
        rest = strip_greeting(text)
        return _ADVICE.match(rest) is None and _HOUR.match(rest) is None
    sentences = _SENTENCE_END.split(_fold(strip_greeting(text)))
    parts = [*sentences, *(part for sentence in sentences for part in _COMMA.split(sentence))]
    return any(_is_query(part) for part in parts if any(phrase in part for phrase in phrases))


def _is_query(sentence: str) -> bool:
    rest = strip_greeting(sentence)
    return _QUERY.match(rest) is not None and _ADVICE.match(rest) is None and _HOUR.match(rest) is None


def _fold(text: str) -> str:
    return " ".join(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").lower().split())


def asks_only_about_time(text: str, time_ranges: Sequence[TimeRange]) -> bool:
    """Return True when the input has at most one content word besides its times.

    >>> now = datetime(2024, 5, 15)
    >>> texts = "What did we decide last week?", "What did we decide about the cache last week?"
    >>> [asks_only_about_time(text, find_asked_times(text, now=now)) for text in texts]
    [True, False]
    """
    return bool(time_ranges) and len(extract_content_words(remove_times(text, time_ranges))) <= FOLLOW_UP_WORDS


def asks_for_whole_range(text: str, time_ranges: Sequence[TimeRange]) -> bool:
    """Return True when the input names no topic besides its times, so only memories of those times can answer it.

    >>> now = datetime(2024, 5, 15)
    >>> texts = "What did we decide last week?", "Where were the keys last week?"
    >>> [asks_for_whole_range(text, find_asked_times(text, now=now)) for text in texts]
    [True, False]
    """
    return bool(time_ranges) and extract_content_words(remove_times(text, time_ranges)) <= _GENERIC_WORDS
