"""Metrics of an agent's development in a period, compared with the period before it. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from newton.brain.calibration import bias as biases
from newton.brain.calibration.bias import ConfidenceBias, compute_bias
from newton.brain.calibration.series import FloatArray, ForecastSeries, sort_by_time, to_series
from newton.brain.calibration.trend import WINDOW_SIZE, CalibrationTrend, compute_trend, fit_slope
from newton.brain.draft import ReviewedDecision
from newton.brain.growth_queries import DecisionGrowth
from newton.brain.queries import DecisionSummary
from newton.brain.repeated_mistakes import RepeatReport
from newton.heart.growth_queries import MemoryGrowth, MemoryStateChange, ProcedureCounts
from newton.memory.times.time_expressions import ReportPeriods

# Below this a single case moves a share by more than 20 points.
MIN_SAMPLES = 5
MIN_SLOPE_SAMPLES = 2 * WINDOW_SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodMetric:
    """A metric of the current period and of the period before: a count, a share from 0 to 1, or a score.

    A value is None if it is undefined. `n` and `n_before` are the sample sizes; for a count, the count itself. A value
    from fewer than `fewest` samples is not reliable.
    """

    kind: Literal["count", "share", "score", "signed"]
    now: float | None
    before: float | None
    n: int
    n_before: int
    fewest: int = 0

    @property
    def reliable_now(self) -> float | None:
        """Return the value of the current period; None if its sample is too small."""
        return self.now if self.n >= self.fewest else None

    @property
    def reliable_before(self) -> float | None:
        return self.before if self.n_before >= self.fewest else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthMetrics:
    """The metrics of a growth report, for the current period and the period before.

    `made` counts the decisions made, `judged` those reviewed. `accuracy` (a partial outcome counts half), `brier` and
    `bias` are computed from the reviewed ones; `slope` is the trend of the Brier score per 100 decisions, over the
    whole record. `near` counts the decisions similar to a known failure: `answered` those that respond to it, `shown`
    those that only had it listed. The rest repeat a mistake; `repeated` is their share of all comparable decisions.

    `met` counts the matches of censors, `precision` is the share of matches not reported as wrong, `succeeded` the
    share of rated uses of procedures with success, and `confirmed` the share of facts confirmed at the end of the
    period.
    """

    made: PeriodMetric
    judged: PeriodMetric
    accuracy: PeriodMetric
    brier: PeriodMetric
    slope: PeriodMetric
    bias: PeriodMetric
    overdue: PeriodMetric
    near: PeriodMetric
    answered: PeriodMetric
    shown: PeriodMetric
    repeated: PeriodMetric
    met: PeriodMetric
    false_positives: PeriodMetric
    precision: PeriodMetric
    escalated: PeriodMetric
    retired: PeriodMetric
    uses: PeriodMetric
    succeeded: PeriodMetric
    effective: PeriodMetric
    ineffective: PeriodMetric
    learnt: PeriodMetric
    confirmed: PeriodMetric
    superseded: PeriodMetric
    disproved: PeriodMetric
    episodes: PeriodMetric


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthReport:
    """The data of a growth report.

    `bias` is computed from the current period, `trend` from all reviewed decisions; each is None if there is too little
    data. `overdue` lists the decisions longest overdue for review, `state_changes` the state changes of the period.
    """

    periods: ReportPeriods
    metrics: GrowthMetrics
    bias: ConfidenceBias | None
    trend: CalibrationTrend | None
    repeats: RepeatReport
    overdue: tuple[DecisionSummary, ...]
    procedures: tuple[ProcedureCounts, ...]
    state_changes: tuple[MemoryStateChange, ...]


def build_growth_report(periods: ReportPeriods, brain: DecisionGrowth, heart: MemoryGrowth) -> GrowthReport:
    """Compute the report of the current period, compared with the period before. Pure."""
    reviewed = sort_by_time(brain.reviewed)
    now = [decision for decision in reviewed if periods.is_current(decision.reviewed_at)]
    changes = [change for change in heart.state_changes if periods.is_current(change.at) and change.kind != "fact"]
    return GrowthReport(
        periods=periods,
        metrics=GrowthMetrics(
            **_decision_metrics(periods, brain),
            **_score_metrics(periods, reviewed),
            **_censor_metrics(periods, heart),
            **_procedure_metrics(periods, heart),
            **_fact_metrics(periods, heart),
        ),
        bias=compute_bias(to_series(now)),
        trend=compute_trend(reviewed, to_series(reviewed)),
        repeats=brain.now.repeats,
        overdue=brain.overdue,
        procedures=heart.procedures,
        state_changes=tuple(changes),
    )


def _decision_metrics(periods: ReportPeriods, brain: DecisionGrowth) -> dict[str, PeriodMetric]:
    now, before = brain.now.repeats, brain.before.repeats
    return {
        "made": _count_metric(brain.now.made, brain.before.made),
        "overdue": _count_metric(brain.now.overdue, brain.before.overdue),
        "near": _count_metric(now.near, before.near),
        "answered": _count_metric(now.answered, before.answered),
        "shown": _count_metric(_shown_count(now), _shown_count(before)),
        "repeated": _share_metric((len(now.repeated), now.compared), (len(before.repeated), before.compared)),
    }


def _shown_count(repeats: RepeatReport) -> int:
    return repeats.near - repeats.answered - len(repeats.repeated)


def _score_metrics(periods: ReportPeriods, decisions: Sequence[ReviewedDecision]) -> dict[str, PeriodMetric]:
    """Compute accuracy, Brier score, bias and slope of both periods.

    The slope of a period is fitted to all decisions reviewed until its end.
    """
    now = to_series([decision for decision in decisions if periods.is_current(decision.reviewed_at)])
    before = to_series([decision for decision in decisions if periods.is_previous(decision.reviewed_at)])
    earlier = to_series([decision for decision in decisions if decision.reviewed_at < periods.start])
    whole = to_series(decisions)
    n, n_before = len(now), len(before)

    def score(
        kind: Literal["share", "score", "signed"], column: Callable[[ForecastSeries], FloatArray], fewest: int
    ) -> PeriodMetric:
        first, second = (float(column(pairs).mean()) if len(pairs) else None for pairs in (now, before))
        return PeriodMetric(kind=kind, now=first, before=second, n=n, n_before=n_before, fewest=fewest)

    def slope(series: ForecastSeries) -> float | None:
        return fit_slope(series.squared_errors).per_100 if len(series) >= MIN_SLOPE_SAMPLES else None

    return {
        "judged": _count_metric(n, n_before),
        "accuracy": score("share", lambda pairs: pairs.outcome, MIN_SAMPLES),
        "brier": score("score", lambda pairs: pairs.squared_errors, MIN_SAMPLES),
        "bias": score("signed", lambda pairs: pairs.gap, biases.MIN_REVIEWS_FOR_BIAS),
        "slope": PeriodMetric(
            kind="signed",
            now=slope(whole),
            before=slope(earlier),
            n=len(whole),
            n_before=len(earlier),
            fewest=MIN_SLOPE_SAMPLES,
        ),
    }


def _censor_metrics(periods: ReportPeriods, heart: MemoryGrowth) -> dict[str, PeriodMetric]:
    met, false, met_before, false_before = heart.censors
    return {
        "met": _count_metric(met, met_before),
        "false_positives": _count_metric(false, false_before),
        "precision": _share_metric((met - false, met), (met_before - false_before, met_before)),
        "escalated": _change_metric(periods, heart, "censor", "ESCALATED"),
        "retired": _change_metric(periods, heart, "censor", "RETIRED"),
    }


def _procedure_metrics(periods: ReportPeriods, heart: MemoryGrowth) -> dict[str, PeriodMetric]:
    def total(field: str) -> int:
        return sum(getattr(counts, field) for counts in heart.procedures)

    successes, successes_before = total("successes"), total("successes_before")
    return {
        "uses": _count_metric(total("uses"), total("uses_before")),
        "succeeded": _share_metric(
            (successes, successes + total("failures")), (successes_before, successes_before + total("failures_before"))
        ),
        "effective": _change_metric(periods, heart, "procedure", "EFFECTIVE"),
        "ineffective": _change_metric(periods, heart, "procedure", "INEFFECTIVE"),
    }


def _fact_metrics(periods: ReportPeriods, heart: MemoryGrowth) -> dict[str, PeriodMetric]:
    facts = heart.facts
    return {
        "learnt": _count_metric(facts.learnt, facts.learnt_before),
        "confirmed": _share_metric((facts.confirmed, facts.known), (facts.confirmed_before, facts.known_before)),
        "superseded": _change_metric(periods, heart, "fact", "SUPERSEDED"),
        "disproved": _change_metric(periods, heart, "fact", "INACTIVE"),
        "episodes": _count_metric(heart.episodes.episodes, heart.episodes.episodes_before),
    }


def _change_metric(periods: ReportPeriods, heart: MemoryGrowth, kind: str, state: str) -> PeriodMetric:
    times = [change.at for change in heart.state_changes if (change.kind, change.state) == (kind, state)]
    return _count_metric(sum(map(periods.is_current, times)), sum(map(periods.is_previous, times)))


def _count_metric(now: int, before: int) -> PeriodMetric:
    return PeriodMetric(kind="count", now=now, before=before, n=now, n_before=before)


def _share_metric(now: tuple[int, int], before: tuple[int, int]) -> PeriodMetric:
    """Return the metric of a share. `now` and `before` are pairs: the number of cases counted, and of all cases."""
    (part, whole), (part_before, whole_before) = now, before
    return PeriodMetric(
        kind="share",
        now=part / whole if whole else None,
        before=part_before / whole_before if whole_before else None,
        n=whole,
        n_before=whole_before,
        fewest=MIN_SAMPLES,
    )
