"""The part of an English message that wants something of memory, as the reader of messages finds it. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from newton.providers.speech_reader import ACTS, SpeechReading, load_speech_reader, read_meant, read_speech
from newton.text.languages import ENGLISH, detect_language

WillAct = Literal["veil", "next", "session", "lift", "last", "topic"]
WILL_ACTS: tuple[WillAct, ...] = get_args(WillAct)
SENTENCE_MIN, CLAUSE_MIN, QUESTION_MIN = 0.7, 0.8, 0.9  # probability that a part wants something of memory
ACT_MIN = 0.42  # of what it wants, so that a part that is like many of them is none
LATER_MIN = 0.9  # if it means messages to come: "nothing goes up before I've seen it" is a rule for work
UNCLEAR_MIN = 0.85  # from which a part that is like many of them is one all the same
ASK_MIN = 0.5  # what is at most left of the probability of one under a condition
SURE_MIN = 0.9  # from which memory forgets without a question
TOLD_MIN = 0.5  # of a part, that it tells something
MIXED_MAX = 0.5  # of a clause that says something else
MIN_CLAUSE_WORDS = 2
ONLY_MIN = 0.85  # of the word pieces of a message that says nothing else
RUN_MIN, RUN_MEAN_MIN, MIN_RUN_PIECES, RUN_ACT_MIN = 0.8, 0.97, 5, 0.3  # of word pieces, whatever the punctuation

_CLAUSE = re.compile(r"[^,;:()–—]+(?:[,;:()–—]+|$)|\s-+\s")
_WORD = re.compile(r"[^\W_]+")


class WillPart(NamedTuple):
    """A part of a message that wants something of memory, what it wants, and the probability that it does."""

    start: int
    end: int
    act: WillAct
    probability: float


def find_will_part(message: str, sentences: Sequence[tuple[int, int]]) -> WillPart | None:
    """Return the part of a message in English that most surely wants something of memory.

    It is a sentence or a clause, or else some words: "new stream key dont save that". `sentences` are the spans of its
    sentences.
    """
    reading = read_speech(message)
    parts = [part for span in sentences if (part := _find_in(message, span, reading))]
    told = [span for span in sentences if "?" not in message[slice(*span)]]
    return max(parts or _list_runs(message, told, reading), key=lambda part: part.probability, default=None)


def _list_runs(message: str, sentences: Sequence[tuple[int, int]], reading: SpeechReading) -> Iterator[WillPart]:
    """Yield the runs of word pieces in these sentences that all want something of memory."""
    rates = _rate_wills(reading)
    for start, end in sentences:
        is_will = (rates >= RUN_MIN) & (reading.starts >= start) & (reading.ends <= end)
        edges = np.flatnonzero(np.diff(is_will, prepend=False, append=False))
        for first, last in zip(edges[::2], edges[1::2] - 1, strict=True):
            run = _rate(reading, (int(reading.starts[first]), int(reading.ends[last])), RUN_ACT_MIN)
            if run and last - first + 1 >= MIN_RUN_PIECES and _is_will(message, run, RUN_MEAN_MIN):
                yield run


def tells(message: str, span: tuple[int, int]) -> bool:
    """Return whether a part of a message tells something; in another language than English each may."""
    rates = read_speech(message).rate(*span) if detect_language(message) == ENGLISH else {}
    return rates.get("told", 1.0) >= TOLD_MIN


def only_wishes(message: str, earlier: Sequence[str]) -> bool:
    """Return whether a message says nothing but a wish, and so means what was said before it."""
    return bool(earlier) and bool(_rate_wills(read_meant(tuple(earlier), message).reading).mean() >= ONLY_MIN)


def corrects(text: str, earlier: Sequence[str], start: int) -> bool:
    """Return whether a text has, from `start` on, the right words for wrong ones of what was said before it."""
    compared = [load_speech_reader().compare(one, text) for one in earlier]
    return any(one.wrong is not None and one.right is not None and one.right.start >= start for one in compared)


def rate_wish(message: str, span: tuple[int, int]) -> float:
    """Return the probability that a part of a message in English wants something of memory."""
    rates = read_speech(message).rate(*span)
    return sum(rates.get(one, 0.0) for one in WILL_ACTS)


def _rate_wills(reading: SpeechReading) -> NDArray[np.float32]:
    """Return the probability that a word piece wants something of memory, for each piece."""
    odds = np.exp(reading.odds - reading.odds.max(axis=1, keepdims=True))
    return odds[:, [ACTS.index(one) for one in WILL_ACTS]].sum(axis=1) / odds.sum(axis=1)


def _find_in(message: str, sentence: tuple[int, int], reading: SpeechReading) -> WillPart | None:
    """Return the surest clause of a sentence that says other things too, else all of it, if it is a will."""
    text = message[: sentence[1]]
    clauses = [_rate(reading, one) for one in _list_clauses(message, sentence)]
    if any(one is None or one.probability < MIXED_MAX for one in clauses):
        best = max(filter(None, clauses), key=lambda one: one.probability, default=None)
        if best and _is_will(text, best, CLAUSE_MIN):
            return best
    whole = _rate(reading, sentence)
    return whole if whole and _is_will(text, whole, SENTENCE_MIN) else None


def _is_will(text: str, part: WillPart, limit: float) -> bool:
    """Return whether a part is surely enough a will; most questions only ask."""
    is_question = text[: part.end].rstrip().endswith("?")
    asked = QUESTION_MIN if is_question else 0.0
    return part.probability >= max(limit, asked, LATER_MIN if part.act in ("next", "session") else 0.0)


def _list_clauses(message: str, span: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the clauses of a sentence that has several."""
    found = [one.span() for one in _CLAUSE.finditer(message, *span)]
    if len(found) > 1:
        yield from (one for one in found if len(_WORD.findall(message[slice(*one)])) >= MIN_CLAUSE_WORDS)


def _rate(reading: SpeechReading, span: tuple[int, int], act_min: float = ACT_MIN) -> WillPart | None:
    rates = reading.rate(*span)
    if not rates:
        return None
    act, total = max(WILL_ACTS, key=lambda one: rates[one]), sum(rates[one] for one in WILL_ACTS)
    if rates[act] < act_min:  # surely a will, but not which one: what it names decides
        return WillPart(*span, "topic", total) if total >= UNCLEAR_MIN else None
    return WillPart(*span, act, total)
