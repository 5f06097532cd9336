"""Scores: evidence recall of a context, and percentiles of latencies. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# A context shows at most so much of one memory; a longer line cannot stand in it word for word.
MAX_VERBATIM_TOKENS = 110
MIN_WORD_OVERLAP = 0.8


class ContextItem(Protocol):
    """The fields of a context item that scoring needs."""

    @property
    def refs(self) -> Sequence[str]: ...
    @property
    def detail(self) -> str | None: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldMessage:
    """A line that holds evidence, with the tokens of its words."""

    ref: str
    content: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSample:
    """One context for one question, measured. `counted` is what its text costs, whatever the bundle says; it is not
    `whole` when a source was late or down."""

    type: str
    budget: int
    evidence: float
    tokens: int
    counted_tokens: int
    ms: float
    variant: str = ""
    is_complete: bool = True


def word_overlap(line: str, text: str) -> float:
    """The share of the line's words that the text has too, each as often as the text has it.

    >>> word_overlap("no, no and no", "no, he said no")
    0.5
    """
    wanted = Counter(line.split())
    return (wanted & Counter(text.split())).total() / wanted.total() if wanted else 1.0


def is_in_context(gold: GoldMessage, items: Iterable[ContextItem]) -> bool:
    """Return whether the items contain nearly all words of the line, or its summary if it is long."""
    own = [item for item in items if gold.ref in item.refs]
    if gold.tokens > MAX_VERBATIM_TOKENS:
        return any(item.detail == "summary" for item in own)
    return any(word_overlap(gold.content, item.text) >= MIN_WORD_OVERLAP for item in own)


def evidence_recall(gold_messages: Collection[GoldMessage | None], items: Collection[ContextItem]) -> float:
    """Return the share of gold lines in the context. None is an unknown line, which counts as missed."""
    return mean([float(gold is not None and is_in_context(gold, items)) for gold in gold_messages])


def mean(values: Collection[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def percentile(values: Collection[float], share: float) -> float:
    """The value below which that share of the values lies, in between two of them if need be.

    >>> percentile([1, 2, 3, 10], 0.5)
    2.5
    """
    if not values:
        return 0.0
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def p50_and_p95(times: Collection[float]) -> dict[str, float]:
    return {"p50": round(percentile(times, 0.5), 3), "p95": round(percentile(times, 0.95), 3)}


def summarize_by_budget(samples: Sequence[RecallSample]) -> dict[str, dict[str, Any]]:
    """Return the metrics of each budget over all questions."""
    return {str(budget): _summarize(own) for budget, own in _group_by(samples, "budget").items()}


def recall_by_type(samples: Sequence[RecallSample]) -> dict[str, dict[str, float]]:
    """The evidence of each kind of question at each budget."""
    return {str(kind): _recall_by_budget(own) for kind, own in _group_by(samples, "type").items()}


def recall_by_variant(samples: Sequence[RecallSample]) -> dict[str, dict[str, float]]:
    """The evidence of each way of making contexts at each budget, in the order in which the ways were tried."""
    ways = dict.fromkeys(sample.variant for sample in samples)
    return {way: _recall_by_budget([sample for sample in samples if sample.variant == way]) for way in ways}


def _recall_by_budget(samples: Sequence[RecallSample]) -> dict[str, float]:
    return {str(budget): _mean_recall(at) for budget, at in _group_by(samples, "budget").items()}


def _group_by(samples: Sequence[RecallSample], field: str) -> Mapping[Any, list[RecallSample]]:
    values = sorted({getattr(sample, field) for sample in samples})
    return {value: [sample for sample in samples if getattr(sample, field) == value] for value in values}


def _mean_recall(samples: Sequence[RecallSample]) -> float:
    return round(mean([sample.evidence for sample in samples]), 4)


def _summarize(samples: Sequence[RecallSample]) -> dict[str, Any]:
    return {
        "evidence": _mean_recall(samples),
        "over_budget": sum(sample.counted_tokens > sample.budget for sample in samples),
        "miscounted": sum(sample.counted_tokens != sample.tokens for sample in samples),
        "tokens_mean": round(mean([sample.counted_tokens for sample in samples]), 1),
    }
