"""Estimate a model's token count from the local count, by regression on reported usage. Pure functions.

Tokenizers differ by a ratio, and chat templates add a constant per message; both are learnt from a few calls.
"""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

MIN_SAMPLES = 8  # minimum samples to fit both unknowns; with fewer only the ratio is fitted
DEFAULT_OVERHEAD = 4.0  # default tokens per message
MAX_OVERHEAD = 50.0
# Times our count. Bytes of prose are five. No tokenizer of a chat model makes so much fewer pieces of a text than ours
# that it comes below the floor, save in a few scripts, where too high a ratio only leaves room unused. But an endpoint
# that leaves out what it had cached, or a prompt that was counted wrongly, does, and a ratio that is too low sends a
# prompt that does not fit.
MIN_RATIO, MAX_RATIO = 0.6, 8.0
# Reported usage is off by a few percent; the fit must be this good to override the default tokens per message.
OVERHEAD_PRIOR_WEIGHT = (0.01 / DEFAULT_OVERHEAD) ** 2
OUTLIER_SHIFT = 0.03  # a sample that alone moves the ratio by this fraction is an outlier ...
SAMPLES_PER_OUTLIER = 4  # ... but at most one in this many


class UsageSample(NamedTuple):
    """One call: the local token count of its text, its number of messages, and the reported tokens."""

    counted: int
    messages: int
    reported: int


class TokenCalibration(NamedTuple):
    """Model tokens per local token, and per message."""

    ratio: float = 1.0
    overhead: float = DEFAULT_OVERHEAD

    def to_model_tokens(self, counted: int, messages: int) -> int:
        """Return the model's tokens for a prompt."""
        return round(self.ratio * counted + self.overhead * messages)

    def to_local_tokens(self, tokens: int, messages: int) -> int:
        """Return the local tokens that fit into the model's tokens after the cost of the messages."""
        return max(int((tokens - self.overhead * messages) / self.ratio), 0)


def fit_calibration(samples: Sequence[UsageSample]) -> TokenCalibration:
    """Return the best fit to the samples without one outlier; the default when there are none."""
    told = [sample for sample in samples if _is_plausible(sample)]
    if not told:
        return TokenCalibration()
    if len(told) < MIN_SAMPLES:
        return _fit_median(told)
    return _fit_best(_drop_outliers(told))


def _is_plausible(sample: UsageSample) -> bool:
    counted, messages, reported = sample
    usual = counted + DEFAULT_OVERHEAD * messages
    return counted > 0 and MIN_RATIO * counted <= reported <= MAX_RATIO * usual


def _fit_median(samples: Sequence[UsageSample]) -> TokenCalibration:
    """Return the median ratio with the default tokens per message, or none if that makes the ratio too low."""
    usual = statistics.median((s.reported - DEFAULT_OVERHEAD * s.messages) / s.counted for s in samples)
    bare = statistics.median(s.reported / s.counted for s in samples)
    return TokenCalibration(min(max(usual, min(bare, 1.0), MIN_RATIO), MAX_RATIO), DEFAULT_OVERHEAD)


def _drop_outliers(samples: list[UsageSample]) -> list[UsageSample]:
    for _ in range(len(samples) // SAMPLES_PER_OUTLIER):
        ratio = _fit_best(samples).ratio
        rests = [samples[:n] + samples[n + 1 :] for n in range(len(samples))]
        moved = [rest for rest in rests if abs(math.log(_fit_best(rest).ratio / ratio)) >= OUTLIER_SHIFT]
        if not moved:
            break
        samples = min(moved, key=_squared_error)
    return samples


def _squared_error(samples: Sequence[UsageSample]) -> float:
    """Return the squared error of the best fit."""
    best = _fit_best(samples)
    return sum(
        (best.ratio * s.counted / s.reported + best.overhead * s.messages / s.reported - 1) ** 2 for s in samples
    )


def _fit_best(samples: Sequence[UsageSample]) -> TokenCalibration:
    return _fit_least_squares(samples) or _fit_median(samples)


def _fit_least_squares(samples: Sequence[UsageSample]) -> TokenCalibration | None:
    """Return the least squares fit, weighting each call equally; None when it is implausible."""
    words = [s.counted / s.reported for s in samples]
    around = [s.messages / s.reported for s in samples]
    a, b = sum(x * x for x in words), sum(x * y for x, y in zip(words, around, strict=True))
    c = sum(y * y for y in around) + OVERHEAD_PRIOR_WEIGHT
    u, v = sum(words), sum(around) + OVERHEAD_PRIOR_WEIGHT * DEFAULT_OVERHEAD
    if (whole := a * c - b * b) <= 0:
        return None
    ratio, marks = (u * c - v * b) / whole, (v * a - u * b) / whole
    return TokenCalibration(ratio, marks) if MIN_RATIO <= ratio <= MAX_RATIO and 0 <= marks <= MAX_OVERHEAD else None
