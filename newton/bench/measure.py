"""What is measured: the share of the evidence that a context holds, and the middle and the tail of many times. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# A context shows at most so much of one memory; a longer line cannot stand in it word for word.
LONGEST_VERBATIM = 110
ENOUGH_WORDS = 0.8


class Shown(Protocol):
    """What measuring needs to know of an item of a context."""

    @property
    def refs(self) -> Sequence[str]: ...
    @property
    def detail(self) -> str | None: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Gold:
    """A line that holds evidence, with the tokens of its words."""

    ref: str
    content: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One context for one question, measured. `counted` is what its text costs, whatever the bundle says; it is not
    `whole` when a source was late or down."""

    type: str
    budget: int
    evidence: float
    tokens: int
    counted: int
    ms: float
    variant: str = ""
    whole: bool = True


def words_inside(line: str, text: str) -> float:
    """The share of the line's words that the text has too, each as often as the text has it.

    >>> words_inside("no, no and no", "no, he said no")
    0.5
    """
    wanted = Counter(line.split())
    return (wanted & Counter(text.split())).total() / wanted.total() if wanted else 1.0


def reached(gold: Gold, shown: Iterable[Shown]) -> bool:
    """Whether the line is there: nearly all of its words, or its summary when it is too long for that."""
    own = [item for item in shown if gold.ref in item.refs]
    if gold.tokens > LONGEST_VERBATIM:
        return any(item.detail == "summary" for item in own)
    return any(words_inside(gold.content, item.text) >= ENOUGH_WORDS for item in own)


def evidence(wanted: Collection[Gold | None], shown: Collection[Shown]) -> float:
    """The share of the gold lines that are there. None is a line that nobody has ever said."""
    return mean([float(gold is not None and reached(gold, shown)) for gold in wanted])


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


def tails(times: Collection[float]) -> dict[str, float]:
    return {"p50": round(percentile(times, 0.5), 3), "p95": round(percentile(times, 0.95), 3)}


def by_budget(samples: Sequence[Sample]) -> dict[str, dict[str, Any]]:
    """How each budget did over all questions."""
    return {str(budget): _figures(own) for budget, own in _grouped(samples, "budget").items()}


def by_type(samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """The evidence of each kind of question at each budget."""
    return {str(kind): _by_budget(own) for kind, own in _grouped(samples, "type").items()}


def by_variant(samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """The evidence of each way of making contexts at each budget, in the order in which the ways were tried."""
    ways = dict.fromkeys(sample.variant for sample in samples)
    return {way: _by_budget([sample for sample in samples if sample.variant == way]) for way in ways}


def _by_budget(samples: Sequence[Sample]) -> dict[str, float]:
    return {str(budget): _evidence(at) for budget, at in _grouped(samples, "budget").items()}


def _grouped(samples: Sequence[Sample], field: str) -> Mapping[Any, list[Sample]]:
    values = sorted({getattr(sample, field) for sample in samples})
    return {value: [sample for sample in samples if getattr(sample, field) == value] for value in values}


def _evidence(samples: Sequence[Sample]) -> float:
    return round(mean([sample.evidence for sample in samples]), 4)


def _figures(samples: Sequence[Sample]) -> dict[str, Any]:
    return {
        "evidence": _evidence(samples),
        "over_budget": sum(sample.counted > sample.budget for sample in samples),
        "miscounted": sum(sample.counted != sample.tokens for sample in samples),
        "tokens_mean": round(mean([sample.counted for sample in samples]), 1),
    }
