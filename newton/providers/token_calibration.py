"""Estimation of a model's token count from the local count, by regression on reported usage. Pure functions.

Tokenizers differ by a factor, and chat templates add a constant per message. Both are fitted to a few calls.
"""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

MIN_SAMPLES = 8  # to fit both ratio and overhead; with fewer samples only the ratio is fitted
DEFAULT_OVERHEAD, MAX_OVERHEAD = 4.0, 50.0  # tokens per message
# Limits of model tokens per local token. A ratio of bytes would be 5 in prose. Lower ratios than 0.6 mean that an
# endpoint does not report cached tokens, or a wrong local count; they would produce prompts that are too long. In a few
# scripts the true ratio is lower; there the limit only leaves part of the window unused.
MIN_RATIO, MAX_RATIO = 0.6, 8.0
# The weight of the default overhead in the fit; reported usage is wrong by a few percent.
OVERHEAD_PRIOR_WEIGHT = (0.01 / DEFAULT_OVERHEAD) ** 2
OUTLIER_SHIFT = 0.03  # a sample is an outlier if the fit without it changes the ratio by this fraction
SAMPLES_PER_OUTLIER = 4  # the minimum number of samples per outlier


class UsageSample(NamedTuple):
    """A call of a model: tokens of the prompt as counted locally and as reported, and its number of messages."""

    counted: int
    messages: int
    reported: int


class TokenCalibration(NamedTuple):
    """How a model counts tokens: `ratio` of them for each token counted locally, and `overhead` for each message."""

    ratio: float = 1.0
    overhead: float = DEFAULT_OVERHEAD

    def to_model_tokens(self, counted: int, messages: int) -> int:
        """Return how many tokens the model counts for a prompt of `counted` local tokens."""
        return round(self.ratio * counted + self.overhead * messages)

    def to_local_tokens(self, tokens: int, messages: int) -> int:
        """Return how many local tokens fit into `tokens` of the model, besides the overhead of the messages."""
        return max(int((tokens - self.overhead * messages) / self.ratio), 0)


def fit_calibration(samples: Sequence[UsageSample]) -> TokenCalibration:
    """Fit ratio and overhead to calls of a model, without outliers and implausible ones.

    Without calls, return the default.
    """
    plausible = [sample for sample in samples if _is_plausible(sample)]
    if not plausible:
        return TokenCalibration()
    return _fit_median(plausible) if len(plausible) < MIN_SAMPLES else _fit_best(_drop_outliers(plausible))


def _is_plausible(sample: UsageSample) -> bool:
    counted, messages, reported = sample
    expected = counted + DEFAULT_OVERHEAD * messages
    return counted > 0 and MIN_RATIO * counted <= reported <= MAX_RATIO * expected


def _fit_median(samples: Sequence[UsageSample]) -> TokenCalibration:
    """Fit only the ratio, as the median over the samples, after subtracting the default overhead of the messages.

    The ratio is at least the smaller of 1 and the median without that subtraction.
    """
    net = statistics.median((s.reported - DEFAULT_OVERHEAD * s.messages) / s.counted for s in samples)
    gross = statistics.median(s.reported / s.counted for s in samples)
    return TokenCalibration(min(max(net, min(gross, 1.0), MIN_RATIO), MAX_RATIO), DEFAULT_OVERHEAD)


def _drop_outliers(samples: list[UsageSample]) -> list[UsageSample]:
    for _ in range(len(samples) // SAMPLES_PER_OUTLIER):
        ratio = _fit_best(samples).ratio
        subsets = [samples[:n] + samples[n + 1 :] for n in range(len(samples))]
        shifted = [subset for subset in subsets if abs(math.log(_fit_best(subset).ratio / ratio)) >= OUTLIER_SHIFT]
        if not shifted:
            break
        samples = min(shifted, key=_squared_error)
    return samples


def _squared_error(samples: Sequence[UsageSample]) -> float:
    """Return the sum of squared relative errors of the best fit to the samples."""
    ratio, overhead = _fit_best(samples)
    return sum(((ratio * s.counted + overhead * s.messages) / s.reported - 1) ** 2 for s in samples)


def _fit_best(samples: Sequence[UsageSample]) -> TokenCalibration:
    return _fit_least_squares(samples) or _fit_median(samples)


def _fit_least_squares(samples: Sequence[UsageSample]) -> TokenCalibration | None:
    """Fit ratio and overhead by least squares of the relative errors. Return None when the fit is implausible."""
    tokens = [s.counted / s.reported for s in samples]
    messages = [s.messages / s.reported for s in samples]
    a, b = sum(x * x for x in tokens), sum(x * y for x, y in zip(tokens, messages, strict=True))
    c = sum(y * y for y in messages) + OVERHEAD_PRIOR_WEIGHT
    u, v = sum(tokens), sum(messages) + OVERHEAD_PRIOR_WEIGHT * DEFAULT_OVERHEAD
    if (determinant := a * c - b * b) <= 0:
        return None
    fit = TokenCalibration((u * c - v * b) / determinant, (v * a - u * b) / determinant)
    return fit if MIN_RATIO <= fit.ratio <= MAX_RATIO and 0 <= fit.overhead <= MAX_OVERHEAD else None
