"""What a model takes a prompt to cost, learnt from what its endpoint reports, in terms of our own count. Pure.

Other tokenizers cut text into more or fewer pieces than ours, and templates put marks around each message; both are
constant enough to be learnt from a few calls.
"""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

FEWEST = 8  # calls before two unknowns are told apart; with fewer the ratio alone is learnt
USUAL_MARKS = 4.0  # tokens around a message before anything is learnt
MOST_MARKS = 50.0
# Times our count. Bytes of prose are five. No tokenizer of a chat model makes so much fewer pieces of a text than ours
# that it comes below the floor, save in a few scripts, where too high a ratio only leaves room unused. But an endpoint
# that leaves out what it had cached, or a prompt that was counted wrongly, does, and a ratio that is too low sends a
# prompt that does not fit.
LEAST, MOST = 0.6, 8.0
# Reports are off by a few in a hundred; so much do they have to agree before they say that marks are unusual.
PULL = (0.01 / USUAL_MARKS) ** 2
ODD = 0.03  # a call that alone moves the ratio by this part is passed over ...
PASSED_OVER = 4  # ... but at most one in so many


class Sample(NamedTuple):
    """One call: the tokens of its words by our count, its messages, and the tokens that were reported."""

    counted: int
    messages: int
    reported: int


class Gauge(NamedTuple):
    """Tokens of the model for one of ours, and for the marks around a message."""

    ratio: float = 1.0
    marks: float = USUAL_MARKS

    def tokens(self, counted: int, messages: int) -> int:
        """What such a prompt costs the model."""
        return round(self.ratio * counted + self.marks * messages)

    def room(self, tokens: int, messages: int) -> int:
        """How many of our tokens fit into so many of the model's beside the marks of so many messages."""
        return max(int((tokens - self.marks * messages) / self.ratio), 0)


def learnt(samples: Sequence[Sample]) -> Gauge:
    """The gauge that explains the calls best; the usual one while there are none. One odd call does not decide it."""
    told = [sample for sample in samples if _likely(sample)]
    if not told:
        return Gauge()
    if len(told) < FEWEST:
        return _middle(told)
    return _best(_without_odd(told))


def _likely(sample: Sample) -> bool:
    counted, messages, reported = sample
    usual = counted + USUAL_MARKS * messages
    return counted > 0 and LEAST * counted <= reported <= MOST * usual


def _middle(told: Sequence[Sample]) -> Gauge:
    """By the middle one of them, as if marks were usual; where that makes the words cheap, there may be no marks."""
    usual = statistics.median((s.reported - USUAL_MARKS * s.messages) / s.counted for s in told)
    bare = statistics.median(s.reported / s.counted for s in told)
    return Gauge(min(max(usual, min(bare, 1.0), LEAST), MOST), USUAL_MARKS)


def _without_odd(told: list[Sample]) -> list[Sample]:
    for _ in range(len(told) // PASSED_OVER):
        ratio = _best(told).ratio
        rests = [told[:n] + told[n + 1 :] for n in range(len(told))]
        moved = [rest for rest in rests if abs(math.log(_best(rest).ratio / ratio)) >= ODD]
        if not moved:
            break
        told = min(moved, key=_spread)
    return told


def _spread(told: Sequence[Sample]) -> float:
    """How far calls lie from what explains them best."""
    best = _best(told)
    return sum((best.ratio * s.counted / s.reported + best.marks * s.messages / s.reported - 1) ** 2 for s in told)


def _best(told: Sequence[Sample]) -> Gauge:
    return _fit(told) or _middle(told)


def _fit(told: Sequence[Sample]) -> Gauge | None:
    """The ratio and the marks of the smallest squares, each call alike whatever its length; None when no tokenizer has
    such."""
    words = [s.counted / s.reported for s in told]
    around = [s.messages / s.reported for s in told]
    a, b = sum(x * x for x in words), sum(x * y for x, y in zip(words, around, strict=True))
    c = sum(y * y for y in around) + PULL
    u, v = sum(words), sum(around) + PULL * USUAL_MARKS
    if (whole := a * c - b * b) <= 0:
        return None
    ratio, marks = (u * c - v * b) / whole, (v * a - u * b) / whole
    return Gauge(ratio, marks) if LEAST <= ratio <= MOST and 0 <= marks <= MOST_MARKS else None
