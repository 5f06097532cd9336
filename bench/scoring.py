"""Metrics: the share of the evidence that contexts contain (evidence recall), and percentiles of times. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

# A context contains at most this many tokens of one memory; a longer line cannot occur in it verbatim.
MAX_VERBATIM_TOKENS = 110
MIN_WORD_OVERLAP = 0.8


class ScoredItem(Protocol):
    """The fields of a context item that the metrics need."""

    @property
    def refs(self) -> Sequence[str]: ...
    @property
    def detail(self) -> str | None: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldMessage:
    """A message that contains evidence for a question, with its number of tokens."""

    ref: str
    content: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSample:
    """The measurements of one context. `tokens` is the stored token count, `counted_tokens` a new count."""

    type: str
    budget: int
    evidence: float
    tokens: int
    counted_tokens: int
    ms: float
    is_complete: bool = True


def word_overlap(line: str, text: str) -> float:
    """Return the share of the words of `line` that occur in `text`. A repeated word must occur as often.

    >>> word_overlap("no, no and no", "no, he said no")
    0.5
    """
    words = Counter(line.split())
    return (words & Counter(text.split())).total() / words.total() if words else 1.0


def is_in_context(gold: GoldMessage, items: Iterable[ScoredItem]) -> bool:
    """Return whether the items contain at least MIN_WORD_OVERLAP of the words of `gold`.

    A message of more than MAX_VERBATIM_TOKENS need only be in the context as a summary.
    """
    own = [item for item in items if gold.ref in item.refs]
    if gold.tokens > MAX_VERBATIM_TOKENS:
        return any(item.detail == "summary" for item in own)
    return is_verbatim_in_context(gold, own)


def is_verbatim_in_context(gold: GoldMessage, items: Iterable[ScoredItem]) -> bool:
    """Return whether an item of the message, however long it is, contains at least MIN_WORD_OVERLAP of its words."""
    own = (item for item in items if gold.ref in item.refs)
    return any(word_overlap(gold.content, item.text) >= MIN_WORD_OVERLAP for item in own)


def evidence_recall(gold_messages: Collection[GoldMessage | None], items: Collection[ScoredItem]) -> float:
    """Return the share of the gold messages that the context contains. None, an unknown message, counts as missing."""
    return mean([float(gold is not None and is_in_context(gold, items)) for gold in gold_messages])


def mean(values: Collection[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def percentile(values: Collection[float], share: float) -> float:
    """Return the percentile `share` (from 0 to 1) by linear interpolation; 0 for no values.

    >>> percentile([1, 2, 3, 10], 0.5)
    2.5
    """
    return float(np.quantile(list(values), share)) if values else 0.0


def p50_and_p95(times: Collection[float]) -> dict[str, float]:
    return {"p50": round(percentile(times, 0.5), 3), "p95": round(percentile(times, 0.95), 3)}


def summarize_by_budget(samples: Sequence[RecallSample]) -> dict[str, dict[str, Any]]:
    """Return the metrics of all samples, by budget."""
    return {budget: _summarize(own) for budget, own in _group_by(samples, "budget").items()}


def recall_by_type(samples: Sequence[RecallSample]) -> dict[str, dict[str, float]]:
    """Return the mean evidence recall by type of question and by budget."""
    return {
        kind: {budget: _mean_recall(some) for budget, some in _group_by(own, "budget").items()}
        for kind, own in _group_by(samples, "type").items()
    }


def _group_by(samples: Sequence[RecallSample], field: str) -> dict[str, list[RecallSample]]:
    """Return the samples grouped by the value of a field, in the order of the values."""
    values = sorted({getattr(sample, field) for sample in samples})
    return {str(value): [sample for sample in samples if getattr(sample, field) == value] for value in values}


def _mean_recall(samples: Sequence[RecallSample]) -> float:
    return round(mean([sample.evidence for sample in samples]), 4)


def _summarize(samples: Sequence[RecallSample]) -> dict[str, Any]:
    return {
        "evidence": _mean_recall(samples),
        "over_budget": sum(sample.counted_tokens > sample.budget for sample in samples),
        "miscounted": sum(sample.counted_tokens != sample.tokens for sample in samples),
        "tokens_mean": round(mean([sample.counted_tokens for sample in samples]), 1),
    }
