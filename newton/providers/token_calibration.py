"""What a model takes a prompt to cost, learnt from what its endpoint reports, in terms of our own count. Pure.

Other tokenizers cut text into more or fewer pieces than ours, and templates put marks around each message; both are
constant enough to be learnt from a few calls.
"""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

MIN_SAMPLES = 8  # calls before two unknowns are told apart; with fewer the ratio alone is learnt
DEFAULT_OVERHEAD = 4.0  # tokens around a message before anything is learnt
MAX_OVERHEAD = 50.0
# Times our count. Bytes of prose are five. No tokenizer of a chat model makes so much fewer pieces of a text than ours
# that it comes below the floor, save in a few scripts, where too high a ratio only leaves room unused. But an endpoint
# that leaves out what it had cached, or a prompt that was counted wrongly, does, and a ratio that is too low sends a
# prompt that does not fit.
MIN_RATIO, MAX_RATIO = 0.6, 8.0
# Reports are off by a few in a hundred; so much do they have to agree before they say that marks are unusual.
OVERHEAD_PRIOR_WEIGHT = (0.01 / DEFAULT_OVERHEAD) ** 2
OUTLIER_SHIFT = 0.03  # a call that alone moves the ratio by this part is passed over ...
SAMPLES_PER_OUTLIER = 4  # ... but at most one in so many


class UsageSample(NamedTuple):
    """One call: the tokens of its words by our count, its messages, and the tokens that were reported."""

    counted: int
    messages: int
    reported: int


class TokenCalibration(NamedTuple):
    """Tokens of the model for one of ours, and for the marks around a message."""

    ratio: float = 1.0
    overhead: float = DEFAULT_OVERHEAD

    def to_model_tokens(self, counted: int, messages: int) -> int:
        """What such a prompt costs the model."""
        return round(self.ratio * counted + self.overhead * messages)

    def to_local_tokens(self, tokens: int, messages: int) -> int:
        """How many of our tokens fit into so many of the model's beside the marks of so many messages."""
        return max(int((tokens - self.overhead * messages) / self.ratio), 0)


def fit_calibration(samples: Sequence[UsageSample]) -> TokenCalibration:
    """The gauge that explains the calls best; the usual one while there are none. One odd call does not decide it."""
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
    """By the middle one of them, as if marks were usual; where that makes the words cheap, there may be no marks."""
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
    """How far calls lie from what explains them best."""
    best = _fit_best(samples)
    return sum(
        (best.ratio * s.counted / s.reported + best.overhead * s.messages / s.reported - 1) ** 2 for s in samples
    )


def _fit_best(samples: Sequence[UsageSample]) -> TokenCalibration:
    return _fit_least_squares(samples) or _fit_median(samples)


def _fit_least_squares(samples: Sequence[UsageSample]) -> TokenCalibration | None:
    """The ratio and the marks of the smallest squares, each call alike whatever its length; None when no tokenizer has
    such."""
    words = [s.counted / s.reported for s in samples]
    around = [s.messages / s.reported for s in samples]
    a, b = sum(x * x for x in words), sum(x * y for x, y in zip(words, around, strict=True))
    c = sum(y * y for y in around) + OVERHEAD_PRIOR_WEIGHT
    u, v = sum(words), sum(around) + OVERHEAD_PRIOR_WEIGHT * DEFAULT_OVERHEAD
    if (whole := a * c - b * b) <= 0:
        return None
    ratio, marks = (u * c - v * b) / whole, (v * a - u * b) / whole
    return TokenCalibration(ratio, marks) if MIN_RATIO <= ratio <= MAX_RATIO and 0 <= marks <= MAX_OVERHEAD else None
