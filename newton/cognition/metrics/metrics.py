"""Metrics of the quality of contexts in a period, with target ranges. Pure."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, computed_field

from newton.cognition.bundles.bundle import RefreshMethod
from newton.cognition.metrics.advice import ADVICE_BY_VERDICT

MetricVerdict = Literal["ok", "low", "high", "too few"]
MetricUnit = Literal["share", "score", "ms", "count"]

MIN_TURNS, MIN_FACTS, MIN_RATED_USES = 10, 5, 5
COLD_START_PERCENTILE = 0.95  # reported for cold starts


class ItemSample(NamedTuple):
    """A memory in a context, and whether the reply used it.

    `probability` is the probability that it is relevant to the input, None for a memory found by name, time or trigger.
    `cosine` is its cosine similarity to the input.
    """

    probability: float | None
    cosine: float
    is_used: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSample:
    """The measurements of a stored context: budget, tokens, build time in milliseconds, and items."""

    bundle_id: UUID
    frame: str
    is_frame_forced: bool
    profile: str
    budget: int
    tokens: int
    build_ms: float
    items: tuple[ItemSample, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSample:
    """A finished turn, with its context.

    `is_first` marks the first turn of a session, which has no context to reuse. `by_model` means that a model replied,
    `has_text` that a model replied and the texts of input and reply are still stored.
    """

    created_at: datetime
    session_id: UUID
    is_first: bool
    method: RefreshMethod
    by_model: bool
    has_text: bool
    context: ContextSample | None


class FactConfirmationCounts(NamedTuple):
    """The number of facts known at the end of the period, and the number of those that are confirmed."""

    total: int
    confirmed: int


class RatedUseCounts(NamedTuple):
    """The matches of censors in a period and the false ones of them, and the uses of procedures with a rated result."""

    matches: int
    false_positives: int
    successes: int
    failures: int


class PrefixSample(NamedTuple):
    """First prompts of turns, grouped by why they differ from the previous prompt of the session (`difference`).

    `difference` is empty for prompts that repeat the whole previous prompt and extend it. `identical_chars` counts the
    characters at the start of their messages that are the same as in the previous prompt, of `message_chars` in all.
    """

    difference: str
    prompts: int
    message_chars: int
    identical_chars: int


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """The target range of a metric: values above `above` and below `below`; None for no limit."""

    above: float | None = None
    below: float | None = None


class QualityMetric(BaseModel):
    """The value of a metric over a sample; None without samples.

    With fewer than `min_samples` samples the verdict is "too few".
    """

    model_config = ConfigDict(frozen=True)

    name: str
    value: float | None
    unit: MetricUnit = "share"
    target: MetricTarget | None = None
    sample_size: int
    sample_unit: str
    min_samples: int = MIN_TURNS

    @computed_field
    @property
    def verdict(self) -> MetricVerdict | None:
        """Compare the value with the target. Return None if there is no target."""
        if self.target is None:
            return None
        if self.value is None or self.sample_size < self.min_samples:
            return "too few"
        if self.target.above is not None and self.value <= self.target.above:
            return "low"
        return "high" if self.target.below is not None and self.value >= self.target.below else "ok"

    @computed_field
    @property
    def advice(self) -> str | None:
        """Advice for a missed target; None if the target is met or there is no advice."""
        return ADVICE_BY_VERDICT.get((self.name, self.verdict or ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricGroup:
    """Relevance, utilisation, precision and refresh rate of the turns with the same frame, profile or day."""

    name: str
    turns: int
    metrics: Sequence[QualityMetric]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPeriod:
    """The measured data of a period.

    `memories_by_day` counts new memories by day and kind, `model_tokens` the tokens of all model calls of the turns.
    """

    since: datetime
    until: datetime
    turns: Sequence[TurnSample]
    memories_by_day: Mapping[date, Mapping[str, int]]
    facts: FactConfirmationCounts
    uses: RatedUseCounts
    model_tokens: int
    prefixes: Sequence[PrefixSample] = ()

    @property
    def prompt_differences(self) -> Mapping[str, int]:
        """Return the number of prompts that did not repeat the whole previous prompt, by reason."""
        return {one.difference: one.prompts for one in self.prefixes if one.difference}

    @property
    def days(self) -> float:
        return (self.until - self.since).total_seconds() / 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityReport:
    """All metrics of a period, in total and by frame, profile and day.

    `prompt_differences` counts the prompts that did not repeat the whole previous prompt, by reason, `memories` the new
    memories by day and kind.
    """

    since: datetime
    until: datetime
    turns: int
    metrics: Sequence[QualityMetric]
    frames: Sequence[MetricGroup]
    profiles: Sequence[MetricGroup]
    days: Sequence[MetricGroup]
    prompt_differences: Mapping[str, int]
    memories: Mapping[date, Mapping[str, int]]


def compute_report(period: MetricPeriod) -> QualityReport:
    """Compute all metrics of a period, in total and by frame, profile and day."""
    turns = period.turns
    return QualityReport(
        since=period.since,
        until=period.until,
        turns=len(turns),
        metrics=(
            measure_relevance(turns),
            measure_utilisation(turns),
            measure_refresh_rate(turns),
            measure_precision(turns),
            measure_cold_start(turns),
            _measure_memories_per_day(period),
            _measure_fact_confirmation(period.facts),
            _measure_censors(period.uses),
            _measure_procedures(period.uses),
            measure_update_rate(turns),
            measure_cosine(turns),
            measure_wrong_frames(turns),
            measure_token_share(turns, model_tokens=period.model_tokens),
            measure_identical_prefix(period.prefixes),
        ),
        frames=_group_turns(turns, lambda turn: turn.context.frame if turn.context else None),
        profiles=_group_turns(turns, lambda turn: turn.context.profile if turn.context else None),
        days=_group_turns(turns, lambda turn: f"{turn.created_at:%Y-%m-%d}"),
        prompt_differences=period.prompt_differences,
        memories=period.memories_by_day,
    )


def measure_relevance(turns: Sequence[TurnSample]) -> QualityMetric:
    """Return the mean probability that a memory in a context is relevant to the input."""
    items = [item for context in _list_contexts(turns) for item in context.items]
    probabilities = [item.probability for item in items if item.probability is not None]
    return _mean_metric("context relevance", probabilities, "items", unit="score", target=MetricTarget(above=0.6))


def measure_cosine(turns: Sequence[TurnSample]) -> QualityMetric:
    """Return the mean cosine similarity of the memories in contexts to their inputs.

    It has no target, because its range depends on the embedding model.
    """
    cosines = [item.cosine for context in _list_contexts(turns) for item in context.items]
    return _mean_metric("mean cosine", cosines, "items", unit="score")


def measure_utilisation(turns: Sequence[TurnSample]) -> QualityMetric:
    """Return the mean share of its budget that a context uses."""
    shares = [context.tokens / context.budget for context in _list_contexts(turns)]
    return _mean_metric("budget utilisation", shares, "contexts", target=MetricTarget(above=0.5, below=0.9))


def measure_refresh_rate(turns: Sequence[TurnSample]) -> QualityMetric:
    """Return the share of turns, after the first of a session, whose context was rebuilt or lost memories.

    A context to which memories were only added counts as reused.
    """
    refreshed = [turn.method in ("built", "evicted") for turn in turns if not turn.is_first]
    return _mean_metric("refresh rate", refreshed, "later turns", target=MetricTarget(below=0.3))


def measure_update_rate(turns: Sequence[TurnSample]) -> QualityMetric:
    """Return the share of turns, after the first of a session, whose context only gained memories."""
    updated = [turn.method == "updated" for turn in turns if not turn.is_first]
    return _mean_metric("contexts with additions only", updated, "later turns")


def measure_precision(turns: Sequence[TurnSample]) -> QualityMetric:
    """Return the share of the memories in contexts that replies used, over all contexts that a model answered.

    A context of several turns counts once: a memory is used if any of the replies used it.
    """
    used: dict[UUID, tuple[bool, ...]] = {}
    for turn in turns:
        if turn.has_text and turn.context:
            flags = tuple(item.is_used for item in turn.context.items)
            before = used.get(turn.context.bundle_id, flags)
            used[turn.context.bundle_id] = tuple(a or b for a, b in zip(before, flags, strict=True))
    items = [flag for flags in used.values() for flag in flags]
    return _mean_metric("recall precision", items, "items", target=MetricTarget(above=0.4))


def measure_cold_start(turns: Sequence[TurnSample]) -> QualityMetric:
    """Return the 95th percentile of the time to build a context, without the start of the process."""
    times = sorted(t.context.build_ms for t in turns if t.context and t.method == "built")
    slow = times[math.ceil(COLD_START_PERCENTILE * len(times)) - 1] if times else None
    return QualityMetric(
        name="cold start, p95",
        value=slow,
        sample_size=len(times),
        sample_unit="contexts",
        unit="ms",
        target=MetricTarget(below=500),
    )


def measure_wrong_frames(turns: Sequence[TurnSample]) -> QualityMetric:
    """Return the share of selected frames that a person replaced by another one in the next turn of the session."""
    last: dict[UUID, ContextSample] = {}
    chosen = wrong = 0
    for turn in turns:
        if (context := turn.context) is None:
            continue
        before = last.get(turn.session_id)
        if before and not before.is_frame_forced and context.is_frame_forced:
            wrong += before.frame != context.frame
        chosen += not context.is_frame_forced
        last[turn.session_id] = context
    share = wrong / chosen if chosen else None
    return QualityMetric(name="frames corrected", value=share, sample_size=chosen, sample_unit="chosen frames")


def measure_token_share(turns: Sequence[TurnSample], *, model_tokens: int) -> QualityMetric:
    """Return the tokens of contexts as a share of all tokens of the turns' model calls."""
    tokens = [turn.context.tokens for turn in turns if turn.by_model and turn.context]
    share = min(sum(tokens) / model_tokens, 1.0) if model_tokens and tokens else None
    return QualityMetric(name="context share of tokens", value=share, sample_size=len(tokens), sample_unit="turns")


def measure_identical_prefix(prefixes: Sequence[PrefixSample]) -> QualityMetric:
    """Return the share of the characters of first prompts that repeat the start of the session's previous prompt."""
    chars, count = sum(one.message_chars for one in prefixes), sum(one.prompts for one in prefixes)
    share = sum(one.identical_chars for one in prefixes) / chars if chars else None
    return QualityMetric(
        name="identical prefix",
        value=share,
        sample_size=count,
        sample_unit="later prompts",
        target=MetricTarget(above=0.9),
    )


def _measure_memories_per_day(period: MetricPeriod) -> QualityMetric:
    total = sum(sum(kinds.values()) for kinds in period.memories_by_day.values())
    rate = total / period.days if total and period.days else 0.0
    return QualityMetric(name="memories a day", value=rate, sample_size=total, sample_unit="memories", unit="count")


def _measure_fact_confirmation(facts: FactConfirmationCounts) -> QualityMetric:
    return QualityMetric(
        name="facts confirmed",
        value=facts.confirmed / facts.total if facts.total else None,
        sample_size=facts.total,
        sample_unit="facts",
        target=MetricTarget(above=0.2),
        min_samples=MIN_FACTS,
    )


def _measure_censors(uses: RatedUseCounts) -> QualityMetric:
    return QualityMetric(
        name="censors right",
        value=1 - uses.false_positives / uses.matches if uses.matches else None,
        sample_size=uses.matches,
        sample_unit="matches",
        target=MetricTarget(above=0.85),
        min_samples=MIN_RATED_USES,
    )


def _measure_procedures(uses: RatedUseCounts) -> QualityMetric:
    rated = uses.successes + uses.failures
    share = uses.successes / rated if rated else None
    return QualityMetric(name="procedures succeeded", value=share, sample_size=rated, sample_unit="rated uses")


def _list_contexts(turns: Sequence[TurnSample]) -> list[ContextSample]:
    """Return the contexts of the turns, each once."""
    return list({turn.context.bundle_id: turn.context for turn in turns if turn.context}.values())


def _mean_metric(
    name: str,
    values: Sequence[float],
    sample_unit: str,
    *,
    unit: MetricUnit = "share",
    target: MetricTarget | None = None,
) -> QualityMetric:
    """Return the mean of the values as a metric. For booleans it is the share of True."""
    mean = sum(values) / len(values) if values else None
    return QualityMetric(
        name=name, value=mean, sample_size=len(values), sample_unit=sample_unit, unit=unit, target=target
    )


GROUPED = (measure_relevance, measure_utilisation, measure_precision, measure_refresh_rate)


def _group_turns(turns: Sequence[TurnSample], key: Callable[[TurnSample], str | None]) -> tuple[MetricGroup, ...]:
    groups: dict[str, list[TurnSample]] = {}
    for turn in turns:
        if (name := key(turn)) is not None:
            groups.setdefault(name, []).append(turn)
    return tuple(
        MetricGroup(
            name=name,
            turns=len(group),
            metrics=[measure(group) for measure in GROUPED],
        )
        for name, group in sorted(groups.items())
    )
