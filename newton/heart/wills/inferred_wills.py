"""The part of an English message that wants something of memory, as the reader of messages finds it. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from newton.providers.speech_reader import ACTS, SpeechReading, load_speech_reader, read_meant, read_speech
from newton.text.languages import ENGLISH, detect_language

WillAct = Literal["veil", "next", "session", "lift", "last", "topic"]
WILL_ACTS: tuple[WillAct, ...] = get_args(WillAct)
# Fitted by logistic regression to 1,974 messages of 19 persons whom the readers have not seen, 310 of which want
# something of memory: the log odds that a part does, by the reader of messages and by that of wishes behind the
# statements before it, and the logarithm of the count of its words. Of the parts of a message the surest counts.
WEIGHTS, BIAS = np.array([0.45, 1.15, 1.14]), -4.17
NEAR_MIN = -2.25  # log odds by the first reader, below which the second does not read: 9 of 10 everyday messages
# Probability from which a part may want something of memory, if it surely means a statement, and from which it may
# at all (95 of 100 wishes, 3 of 1,000 other messages).
LEAST_MIN, POSSIBLE_MIN = 0.15, 0.4
SENTENCE_MIN = 0.6  # from which it does, if the first reader alone is as sure: else the person is asked
QUESTION_MIN = 0.9  # the same of a question: most only ask
SURE_MIN = 0.85  # from which memory forgets without a question, or keeps nothing of messages to come
# Of a message that is not kept, or not those behind it: nobody is asked.
LIMITS: Mapping[WillAct, float] = {"veil": SENTENCE_MIN, "lift": SENTENCE_MIN, "next": SURE_MIN, "session": SURE_MIN}
ASK_MIN = 0.5  # what is at most left of the probability of one under a condition
TOLD_MIN = 0.5  # of a part, that it tells something
MIXED_MAX = 0.5  # of a clause that says something else
MIN_CLAUSE_WORDS = 2
LEAST = 1e-3  # added to each side of odds
RUN_MIN, RUN_MEAN_MIN, MIN_RUN_PIECES = 0.8, 0.97, 5  # of word pieces in a longer sentence
ONLY_MIN = 0.85  # of the word pieces of a message that says nothing else

_CLAUSE = re.compile(r"[^,;:()–—]+(?:[,;:()–—]+|$)|\s-+\s")
_WORD = re.compile(r"[^\W_]+")


class WillPart(NamedTuple):
    """A part of a message that wants something of memory, what it wants, and the probability that it does.

    If it `shows_alone`, it does without what was said before it.
    """

    start: int
    end: int
    act: WillAct
    probability: float
    shows_alone: bool


def find_will_part(
    message: str, sentences: Sequence[tuple[int, int]], earlier: tuple[str, ...] = ()
) -> WillPart | None:
    """Return the part of a message in English that most surely wants something of memory, a sentence or a clause.

    `sentences` are the spans of its sentences, and `earlier` the statements behind which it is read.
    """
    own = read_speech(message)
    spans = [one for sentence in sentences for one in (sentence, *_list_clauses(message, sentence))]
    if max((odds for one in spans if (odds := _find_odds(own, one)) is not None), default=NEAR_MIN) <= NEAR_MIN:
        return None
    behind = read_meant(earlier, message).reading
    rated = _rate(message, spans, own, behind)
    best = max(rated, key=lambda one: rated[one])
    runs = _list_runs(sentences, own) if rated[best] < SENTENCE_MIN else ()
    rated |= _rate(message, runs, own, behind)
    best = max(rated, key=lambda one: rated[one])
    sentence = next(one for one in sentences if one[0] <= best[0] and best[1] <= one[1])
    is_whole = best in spans and all(rated.get(one, 1) >= MIXED_MAX for one in _list_clauses(message, sentence))
    span = sentence if is_whole else best
    shares = [rates for one in (own, behind) if (rates := one.rate(*span))]
    act = max(WILL_ACTS, key=lambda one: sum(rates[one] for rates in shares))
    is_question = message[: span[1]].rstrip().endswith("?")
    shows_alone = _to_share(_find_odds(own, best)) >= (QUESTION_MIN if is_question else SENTENCE_MIN)
    is_enough = rated[best] >= LIMITS.get(act, LEAST_MIN) and (shows_alone or act not in LIMITS)
    return WillPart(*span, act, rated[best], shows_alone) if is_enough else None


def _rate(
    message: str, spans: Iterable[tuple[int, int]], own: SpeechReading, behind: SpeechReading
) -> dict[tuple[int, int], float]:
    """Return the probability that parts of a message want something of memory, by both readings of it."""
    rated = dict[tuple[int, int], float]()
    for span in spans:
        near, further = _find_odds(own, span), _find_odds(behind, span)
        if near is not None:  # of a long message, only the beginning is read behind what was said before it
            words = np.log(len(_WORD.findall(message[slice(*span)])) + 0.1)
            rated[span] = _to_share(WEIGHTS @ (near, near if further is None else further, words) + BIAS)
    return rated


def _list_runs(sentences: Sequence[tuple[int, int]], reading: SpeechReading) -> Iterator[tuple[int, int]]:
    """Yield the spans of word pieces that all want something of memory, whatever the punctuation."""
    rates = _rate_wills(reading)
    for start, end in sentences:
        is_will = (rates >= RUN_MIN) & (reading.starts >= start) & (reading.ends <= end)
        edges = np.flatnonzero(np.diff(is_will, prepend=False, append=False))
        for first, last in zip(edges[::2], edges[1::2] - 1, strict=True):
            span = int(reading.starts[first]), int(reading.ends[last])
            if last - first + 1 >= MIN_RUN_PIECES and _to_share(_find_odds(reading, span)) >= RUN_MEAN_MIN:
                yield span


def _find_odds(reading: SpeechReading, span: tuple[int, int]) -> float | None:
    """Return the log odds that a part wants something of memory; None for one without words."""
    rates = reading.rate(*span)
    share = sum(rates[one] for one in WILL_ACTS) if rates else 0.0
    return float(np.log((share + LEAST) / (1 - share + LEAST))) if rates else None


def _to_share(odds: float | None) -> float:
    return float(1 / (1 + np.exp(-odds))) if odds is not None else 0.0


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
    """Return the probability that a part of a message wants something of memory; 0 in another language than English."""
    rates = read_speech(message).rate(*span) if detect_language(message) == ENGLISH else {}
    return sum(rates.get(one, 0.0) for one in WILL_ACTS)


def _rate_wills(reading: SpeechReading) -> NDArray[np.float32]:
    """Return the probability that a word piece wants something of memory, for each piece."""
    odds = np.exp(reading.odds - reading.odds.max(axis=1, keepdims=True))
    return odds[:, [ACTS.index(one) for one in WILL_ACTS]].sum(axis=1) / odds.sum(axis=1)


def _list_clauses(message: str, span: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the spans of the clauses of a sentence that has several."""
    found = [one.span() for one in _CLAUSE.finditer(message, *span)]
    if len(found) > 1:
        yield from (one for one in found if len(_WORD.findall(message[slice(*one)])) >= MIN_CLAUSE_WORDS)
