"""The statements that a request to memory means, by the reader of messages and the words that they share. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from newton.heart.reconciliation.text_evidence import list_stems, share_stems
from newton.heart.statements.clauses import split_alone
from newton.providers.speech_reader import MeantWords, read_meant
from newton.text.names import find_names
from newton.text.sentences import split_sentences

# Fitted by logistic regression to the requests of three persons of tests/data/speech_wills whom the reader has not seen
# (courier, solicitor, illustrator), behind what they mean and behind other statements: the log odds of the reader, how
# far they are above those of the surest other statement, and the same of the words that a statement shares with the
# request, each divided by the statements with it.
WEIGHTS, BIAS = np.array([0.422, 0.176, 1.33, 0.349]), -0.919
MAX_SHARED = 2.0
NO_OTHER = -3.0  # log odds of another statement, if there is none
MAYBE_MIN = 0.07  # from which a statement may be meant: one of 16 meant ones is below it, and two come to one request
SURE_MIN = 0.8  # from which the only statement that may be meant is: of requests that mean none here, 6 of 144 have one
MEANT_MIN = 0.5
NAMED_MIN = 0.7  # if no statement has the name that the request has
SAME_PART = 0.5  # of the rate of the surest part of a statement, from which another part is meant too
ALL_MEAN_MIN, ALL_EACH_MIN = 0.3, 0.1  # of the rates of the statements of a conversation, from which all are meant


class MeantStatement(NamedTuple):
    """A statement as a request may mean it: the probability, and the numbers of its parts that say something else.

    `rate` is the mean probability of the words of its surest part, as the reader of wishes gives it.
    """

    probability: float
    kept: tuple[int, ...]
    rate: float


def rate_statements(groups: Sequence[Sequence[str]], request: str) -> list[list[MeantStatement]]:
    """Return how surely a request means each of several statements; those of a group are read together, in order."""
    texts = [text for group in groups for text in group]
    meant = [one for group in groups if group for one in read_meant(tuple(group), request).meant]
    read = [_read(text, own) for text, own in zip(texts, meant, strict=True)]
    odds = [float(np.log((rate + 1e-3) / (1 - rate + 1e-3))) for rate, _ in read]
    features = zip(odds, _above_others(odds, NO_OTHER), *_compare_words(texts, request), strict=True)
    scores = [float(np.dot(WEIGHTS, row)) + BIAS for row in features]
    rated = iter(
        MeantStatement(float(1 / (1 + np.exp(-score))), kept, rate)
        for score, (rate, kept) in zip(scores, read, strict=True)
    )
    return [[next(rated) for _ in group] for group in groups]


def names_another(request: str, texts: Sequence[str]) -> bool:
    """Return whether a request has names of which no text has one, so that it may mean none of them."""
    names = {one.text.lower() for one in find_names(request) if one.is_certain}
    return bool(names) and not any(name in text.lower() for name in names for text in texts)


def means_all(rated: Sequence[MeantStatement]) -> bool:
    """Return whether a request means all of the last statements of a conversation, and so the conversation."""
    rates = [one.rate for one in rated]
    return bool(rates) and min(rates) >= ALL_EACH_MIN and sum(rates) / len(rates) >= ALL_MEAN_MIN


def list_parts(text: str) -> list[tuple[int, str]]:
    """Return the clauses that can stand alone, else the sentences, each behind the number of its sentence."""
    return [(n, one) for n, sentence in enumerate(split_sentences(text)) for one in split_alone(sentence)]


def list_spans(text: str) -> list[tuple[int, int]]:
    """Return where each part of a text stands in it."""
    spans, at = list[tuple[int, int]](), 0
    for _, part in list_parts(text):
        stated = part.strip(" .,;!?")
        start = max(text.find(stated, at), at)
        at = start + len(stated)
        spans.append((start, at))
    return spans


def _read(text: str, marks: MeantWords) -> tuple[float, tuple[int, ...]]:
    """Return the rate of the surest part of a statement, and the numbers of the parts that are not meant with it."""
    rates = [marks.rate(*span) for span in list_spans(text)]
    best = max(rates, default=0.0)
    return best, tuple(n for n, rate in enumerate(rates) if rate < SAME_PART * best)


def _compare_words(texts: Sequence[str], request: str) -> tuple[list[float], list[float]]:
    """Return the words that each statement shares with a request, and how many more than the others."""
    wanted, stems = list_stems(request), [list_stems(text) for text in texts]
    count = Counter(stem for one in stems for stem in one)
    shared = [sum(1 / count[stem] for stem in share_stems(wanted, one) if stem in count) for one in stems]
    return [min(one, MAX_SHARED) for one in shared], _above_others(shared, 0.0)


def _above_others(values: Sequence[float], none: float) -> list[float]:
    """Return how far each value is above the highest of the others; above `none` if there are no others."""
    return [one - max((*values[:n], *values[n + 1 :]), default=none) for n, one in enumerate(values)]
