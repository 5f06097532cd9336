"""Metrics of an agent's development: a period beside the one before it. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from newton.brain.calibration import bias as biases
from newton.brain.calibration.bias import ConfidenceBias, compute_bias
from newton.brain.calibration.series import FloatArray, ForecastSeries, sort_by_time, to_series
from newton.brain.calibration.trend import WINDOW_SIZE, CalibrationTrend, compute_trend, fit_slope
from newton.brain.draft import ReviewedDecision
from newton.brain.growth_queries import DecisionGrowth as Decided
from newton.brain.queries import DecisionSummary
from newton.brain.repeated_mistakes import RepeatReport
from newton.heart.growth_queries import MemoryGrowth as Lived
from newton.heart.growth_queries import MemoryStateChange, ProcedureCounts
from newton.memory.time_expressions import ReportPeriods

# Below this a single case moves a share by more than 20 points.
MIN_SAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodMetric:
    """A count, a share in [0, 1] or a score, of this period and the one before; None where undefined.

    `n` and `n_before` are the sample sizes; a value from fewer than `fewest` is not reliable. A count is its own n.
    """

    kind: Literal["count", "share", "score", "signed"]
    now: float | None
    before: float | None
    n: int
    n_before: int
    fewest: int = 0

    @property
    def reliable_now(self) -> float | None:
        """Return the current value if its sample is large enough."""
        return self.now if self.n >= self.fewest else None

    @property
    def reliable_before(self) -> float | None:
        return self.before if self.n_before >= self.fewest else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthMetrics:
    """Metrics of two periods.

    `made` counts decisions by decision time, `judged` by review time: `accuracy` (a partial outcome counts half),
    `brier` and `bias` are of the latter; `slope` is of all decisions up to the end, per 100 decisions. `near` counts
    decisions near a known failure; some `answered` it, to some it was only `shown`, and `repeated` is the share of the
    rest among all comparable decisions. `precision` is the share of censor activations not reported as false positives,
    `succeeded` that of rated procedure uses with success, and `confirmed` that of all facts at the end of the period
    that were confirmed.
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
    """A growth report without its text. `bias` is of the period, `trend` of the whole record (None if too short);
    `overdue` are the decisions overdue the longest, `state_changes` those of the period."""

    periods: ReportPeriods
    metrics: GrowthMetrics
    bias: ConfidenceBias | None
    trend: CalibrationTrend | None
    repeats: RepeatReport
    overdue: tuple[DecisionSummary, ...]
    procedures: tuple[ProcedureCounts, ...]
    state_changes: tuple[MemoryStateChange, ...]


def build_growth_report(periods: ReportPeriods, brain: Decided, heart: Lived) -> GrowthReport:
    """Compute the report of both periods."""
    judged = sort_by_time(brain.reviewed)
    now = [one for one in judged if periods.is_current(one.reviewed_at)]
    changed = tuple(one for one in heart.state_changes if periods.is_current(one.at))
    return GrowthReport(
        periods=periods,
        metrics=GrowthMetrics(
            **_decision_metrics(periods, brain),
            **_score_metrics(periods, judged),
            **_censor_metrics(periods, heart),
            **_procedure_metrics(periods, heart),
            **_fact_metrics(periods, heart),
        ),
        bias=compute_bias(to_series(now)),
        trend=compute_trend(judged, to_series(judged)),
        repeats=brain.now.repeats,
        overdue=brain.overdue,
        procedures=heart.procedures,
        state_changes=tuple(one for one in changed if one.kind != "fact"),
    )


def _decision_metrics(periods: ReportPeriods, brain: Decided) -> dict[str, PeriodMetric]:
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
    """Compute accuracy, Brier score, bias and slope; the slope needs all earlier decisions."""
    now = to_series([one for one in decisions if periods.is_current(one.reviewed_at)])
    before = to_series([one for one in decisions if periods.is_previous(one.reviewed_at)])
    whole, until = to_series(decisions), to_series([one for one in decisions if one.reviewed_at < periods.start])
    n, n_before = len(now), len(before)

    def score(
        kind: Literal["share", "score", "signed"], column: Callable[[ForecastSeries], FloatArray], fewest: int
    ) -> PeriodMetric:
        first, second = (float(column(pairs).mean()) if len(pairs) else None for pairs in (now, before))
        return PeriodMetric(kind=kind, now=first, before=second, n=n, n_before=n_before, fewest=fewest)

    steep, was = (fit_slope(of.squared_errors).per_100 if len(of) >= 2 * WINDOW_SIZE else None for of in (whole, until))
    return {
        "judged": _count_metric(n, n_before),
        "accuracy": score("share", lambda pairs: pairs.outcome, MIN_SAMPLES),
        "brier": score("score", lambda pairs: pairs.squared_errors, MIN_SAMPLES),
        "bias": score("signed", lambda pairs: pairs.gap, biases.MIN_REVIEWS_FOR_BIAS),
        "slope": PeriodMetric(
            kind="signed", now=steep, before=was, n=len(whole), n_before=len(until), fewest=2 * WINDOW_SIZE
        ),
    }


def _censor_metrics(periods: ReportPeriods, heart: Lived) -> dict[str, PeriodMetric]:
    met, wrong, met_before, wrong_before = heart.censors
    return {
        "met": _count_metric(met, met_before),
        "false_positives": _count_metric(wrong, wrong_before),
        "precision": _share_metric((met - wrong, met), (met_before - wrong_before, met_before)),
        "escalated": _change_metric(periods, heart, "censor", "ESCALATED"),
        "retired": _change_metric(periods, heart, "censor", "RETIRED"),
    }


def _procedure_metrics(periods: ReportPeriods, heart: Lived) -> dict[str, PeriodMetric]:
    successes, failures = sum(one.successes for one in heart.procedures), sum(one.failures for one in heart.procedures)
    well, badly = (
        sum(one.successes_before for one in heart.procedures),
        sum(one.failures_before for one in heart.procedures),
    )
    return {
        "uses": _count_metric(
            sum(one.uses for one in heart.procedures), sum(one.uses_before for one in heart.procedures)
        ),
        "succeeded": _share_metric((successes, successes + failures), (well, well + badly)),
        "effective": _change_metric(periods, heart, "procedure", "EFFECTIVE"),
        "ineffective": _change_metric(periods, heart, "procedure", "INEFFECTIVE"),
    }


def _fact_metrics(periods: ReportPeriods, heart: Lived) -> dict[str, PeriodMetric]:
    facts = heart.facts
    return {
        "learnt": _count_metric(facts.learnt, facts.learnt_before),
        "confirmed": _share_metric((facts.confirmed, facts.known), (facts.confirmed_before, facts.known_before)),
        "superseded": _change_metric(periods, heart, "fact", "SUPERSEDED"),
        "disproved": _change_metric(periods, heart, "fact", "INACTIVE"),
        "episodes": _count_metric(heart.episodes.episodes, heart.episodes.episodes_before),
    }


def _change_metric(periods: ReportPeriods, heart: Lived, kind: str, state: str) -> PeriodMetric:
    ats = [one.at for one in heart.state_changes if (one.kind, one.state) == (kind, state)]
    return _count_metric(sum(map(periods.is_current, ats)), sum(map(periods.is_previous, ats)))


def _count_metric(now: int, before: int) -> PeriodMetric:
    return PeriodMetric(kind="count", now=now, before=before, n=now, n_before=before)


def _share_metric(now: tuple[int, int], before: tuple[int, int]) -> PeriodMetric:
    """Compute a share from (part, whole) pairs."""
    (part, whole), (former, n_before) = now, before
    return PeriodMetric(
        kind="share",
        now=part / whole if whole else None,
        before=former / n_before if n_before else None,
        n=whole,
        n_before=n_before,
        fewest=MIN_SAMPLES,
    )
