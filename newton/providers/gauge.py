"""What a model takes a prompt to cost, learnt from what its endpoint reports, in terms of our own count. Pure.

Other tokenizers cut text into more or fewer pieces than ours, and templates put marks around each message; both are
constant enough to be learnt from a few calls.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

FEWEST = 3  # calls before two unknowns are told apart; with fewer the ratio alone is learnt
USUAL_MARKS = 4.0  # tokens around a message before anything is learnt
LEAST, MOST = 0.3, 8.0  # times our count: bytes of prose are five, and what lies outside was reported wrongly


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
    """The gauge that explains the calls best; the usual one while there are none."""
    told = [s for s in samples if s.counted and LEAST <= s.reported / (s.counted + USUAL_MARKS * s.messages) <= MOST]
    if not told:
        return Gauge()
    counted = np.array([s.counted for s in told], dtype=np.float64)
    messages = np.array([s.messages for s in told], dtype=np.float64)
    reported = np.array([s.reported for s in told], dtype=np.float64)
    if len(told) >= FEWEST:
        # each call counts alike whatever its length, and what it says nothing of stays near the usual
        weights = 1 / reported
        rows = np.stack([counted * weights, messages * weights], axis=1)
        pull = np.array([[0.0, 1e-4]])
        (ratio, marks), *_ = np.linalg.lstsq(
            np.concatenate([rows, pull]), np.concatenate([np.ones(len(told)), pull[0, 1:] * USUAL_MARKS]), rcond=None
        )
        if LEAST <= ratio <= MOST and 0 <= marks <= 50:
            return Gauge(float(ratio), float(marks))
    return Gauge(float(((reported - USUAL_MARKS * messages) / counted).clip(LEAST, MOST).mean()), USUAL_MARKS)
