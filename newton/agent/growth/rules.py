"""Strengths, concerns and recommendations of a growth report, by fixed rules. Pure.

A rule is a function that returns a sentence when its condition holds. No rule uses an unreliable metric.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from newton.agent.growth.report import GrowthReport, PeriodMetric
from newton.memory.lookup import short_id

HIGH_ACCURACY_MIN, LOW_ACCURACY_MAX = 0.7, 0.5  # shares of successful decisions
MIN_CHANGE = 0.15  # the smallest change of a share to report
MAX_REPEAT_RATE = 0.10
MIN_CENSOR_PRECISION = 0.85
MIN_CONFIRMED_RATE = 0.20

GrowthRule = Callable[[GrowthReport], str | None]


class GrowthAssessment(NamedTuple):
    strengths: tuple[str, ...]
    concerns: tuple[str, ...]
    recommendations: tuple[str, ...]


def assess(report: GrowthReport) -> GrowthAssessment:
    """Apply all rules, in order."""

    def said(rules: Sequence[GrowthRule]) -> tuple[str, ...]:
        return tuple(sentence for rule in rules if (sentence := rule(report)))

    return GrowthAssessment(said(STRENGTHS), said(CONCERNS), said(RECOMMENDATIONS))


def high_accuracy(report: GrowthReport) -> str | None:
    """Accuracy is HIGH_ACCURACY_MIN or more."""
    share = report.metrics.accuracy
    return f"{_format_share(share)} reviewed decisions succeeded." if _at_least(share, HIGH_ACCURACY_MIN) else None


def low_accuracy(report: GrowthReport) -> str | None:
    """Accuracy is below LOW_ACCURACY_MAX."""
    share = report.metrics.accuracy
    return f"Only {_format_share(share)} reviewed decisions succeeded." if _below(share, LOW_ACCURACY_MAX) else None


def rising_accuracy(report: GrowthReport) -> str | None:
    """Accuracy rose by MIN_CHANGE or more."""
    return _describe_change(report.metrics.accuracy, 1, "More decisions succeeded than before")


def falling_accuracy(report: GrowthReport) -> str | None:
    """Accuracy fell by MIN_CHANGE or more."""
    return _describe_change(report.metrics.accuracy, -1, "Fewer decisions succeeded than before")


def no_bias(report: GrowthReport) -> str | None:
    """There are enough reviews, and no significant bias."""
    if report.bias is None or report.bias.verdict != "no sign of either":
        return None
    return f"Stated confidence can be trusted: no sign of a bias in {report.bias.n} reviews."


def clear_bias(report: GrowthReport) -> str | None:
    """Overconfidence or underconfidence is significant."""
    if not _has_bias(report):
        return None
    assert report.bias is not None
    stated, came = _format_percent(report.bias.mean_stated), _format_percent(report.bias.mean_outcome)
    return (
        f"{report.bias.verdict.capitalize()}: stated {stated} on average, {came} came true ({report.bias.n} reviews)."
    )


def falling_brier(report: GrowthReport) -> str | None:
    """The Brier score of the whole record falls significantly."""
    return (
        "The Brier score falls: stated confidence is becoming more accurate."
        if _brier_direction(report) == "falling"
        else None
    )


def rising_brier(report: GrowthReport) -> str | None:
    """The Brier score of the whole record rises significantly."""
    return (
        "The Brier score rises: stated confidence is becoming less accurate."
        if _brier_direction(report) == "rising"
        else None
    )


def answered_failures(report: GrowthReport) -> str | None:
    """Decisions came near a known failure, and all answered it."""
    if not report.repeats.near or report.repeats.answered < report.repeats.near:
        return None
    times = _pluralize(report.repeats.near, "decision was", "decisions were")
    return f"{times} near a known failure, and each answered it."


def repeated_mistakes(report: GrowthReport) -> str | None:
    """The share of repeated mistakes exceeds its limit."""
    share = report.metrics.repeated
    if share.reliable_now is None or share.reliable_now <= MAX_REPEAT_RATE:
        return None
    return f"{_format_share(share)} decisions repeat a mistake; the target is under {_format_percent(MAX_REPEAT_RATE)}."


def high_precision(report: GrowthReport) -> str | None:
    """Censor precision exceeds its target."""
    share = report.metrics.precision
    return f"Censors were right {_format_share(share)} times." if _above(share, MIN_CENSOR_PRECISION) else None


def low_precision(report: GrowthReport) -> str | None:
    """Censor precision misses its target."""
    share = report.metrics.precision
    if share.reliable_now is None or share.reliable_now > MIN_CENSOR_PRECISION:
        return None
    target = _format_percent(MIN_CENSOR_PRECISION)
    return f"Censors were right only {_format_share(share)} times; the target is over {target}."


def effective_procedures(report: GrowthReport) -> str | None:
    """A procedure became EFFECTIVE."""
    return _list_procedures(report, "EFFECTIVE", "Proved to work: {}.")


def ineffective_procedures(report: GrowthReport) -> str | None:
    """A procedure became INEFFECTIVE."""
    return _list_procedures(report, "INEFFECTIVE", "Turned out not to work: {}.")


def high_confirmation(report: GrowthReport) -> str | None:
    """The share of confirmed facts exceeds its target."""
    share = report.metrics.confirmed
    return f"{_format_share(share)} facts were confirmed." if _above(share, MIN_CONFIRMED_RATE) else None


def low_confirmation(report: GrowthReport) -> str | None:
    """The share of confirmed facts misses its target."""
    share = report.metrics.confirmed
    if share.reliable_now is None or share.reliable_now > MIN_CONFIRMED_RATE:
        return None
    return f"Only {_format_share(share)} facts were confirmed; over {_format_percent(MIN_CONFIRMED_RATE)} is the aim."


def review_overdue(report: GrowthReport) -> str | None:
    """A decision is overdue for review."""
    late = int(report.metrics.overdue.now or 0)
    if not late:
        return None
    return f"{_pluralize(late, 'decision waits', 'decisions wait')} for an outcome: `newton decisions list --due`."


def review_decisions(report: GrowthReport) -> str | None:
    """Decisions were made, none is overdue, and none was reviewed."""
    figures = report.metrics
    if not figures.made.now or figures.judged.now or figures.overdue.now:
        return None
    return "No decision was judged; say what became of one: `newton review ID success`."


def check_failure(report: GrowthReport) -> str | None:
    """A mistake was repeated."""
    if not report.repeats.repeated:
        return None
    last = report.repeats.repeated[-1].pair
    return (
        f"Look at what failed before: `newton decisions show {short_id(last.failed_id)}`; if it was thought of, "
        f"`newton decisions link {short_id(last.decision_id)} relates {short_id(last.failed_id)}`."
    )


def answer_failures(report: GrowthReport) -> str | None:
    """A known failure was shown and not answered."""
    times = int(report.metrics.shown.now or 0)
    if not times:
        return None
    them = _pluralize(times, "decision was", "decisions were")
    return f"{them} shown a failure and went on without a word; say why: `newton think ID TEXT`, with the failure's id."


def embed_decisions(report: GrowthReport) -> str | None:
    """A decision has no vector."""
    if not report.repeats.missing:
        return None
    them = _pluralize(report.repeats.missing, "decision has", "decisions have")
    return f"{them} no vector, so repeated mistakes among them are not seen: `newton doctor`."


def adjust_confidence(report: GrowthReport) -> str | None:
    """There is a significant bias."""
    if not _has_bias(report):
        return None
    assert report.bias is not None
    less = "less" if report.bias.size > 0 else "more"
    return f"State {less} confidence; what came of each is shown by `newton calibration`."


def narrow_censors(report: GrowthReport) -> str | None:
    """Censor precision misses its target."""
    return "Retire or narrow the censors that were wrong: `newton censors list`." if low_precision(report) else None


def rewrite_procedures(report: GrowthReport) -> str | None:
    """A procedure became INEFFECTIVE."""
    failed = _procedure_names(report, "INEFFECTIVE")
    return f"Rewrite what does not work: `newton procedures show {failed[0]}`." if failed else None


def confirm_facts(report: GrowthReport) -> str | None:
    """Few facts are confirmed."""
    return "Say which facts are so: `newton confirm ID`." if low_confirmation(report) else None


STRENGTHS: tuple[GrowthRule, ...] = (
    high_accuracy,
    rising_accuracy,
    no_bias,
    falling_brier,
    answered_failures,
    high_precision,
    effective_procedures,
    high_confirmation,
)
CONCERNS: tuple[GrowthRule, ...] = (
    low_accuracy,
    falling_accuracy,
    clear_bias,
    rising_brier,
    repeated_mistakes,
    low_precision,
    ineffective_procedures,
    low_confirmation,
)
RECOMMENDATIONS: tuple[GrowthRule, ...] = (
    review_overdue,
    review_decisions,
    check_failure,
    answer_failures,
    adjust_confidence,
    narrow_censors,
    rewrite_procedures,
    confirm_facts,
    embed_decisions,
)


def _has_bias(report: GrowthReport) -> bool:
    return report.bias is not None and report.bias.verdict in ("overconfident", "underconfident")


def _brier_direction(report: GrowthReport) -> str | None:
    return report.trend and report.trend.brier.direction


def _at_least(share: PeriodMetric, bound: float) -> bool:
    return share.reliable_now is not None and share.reliable_now >= bound


def _above(share: PeriodMetric, bound: float) -> bool:
    return share.reliable_now is not None and share.reliable_now > bound


def _below(share: PeriodMetric, bound: float) -> bool:
    return share.reliable_now is not None and share.reliable_now < bound


def _describe_change(share: PeriodMetric, sign: int, text: str) -> str | None:
    now, before = share.reliable_now, share.reliable_before
    if now is None or before is None or sign * (now - before) < MIN_CHANGE:
        return None
    return f"{text}: {_format_percent(before)} then, {_format_percent(now)} now."


def _list_procedures(report: GrowthReport, state: str, template: str) -> str | None:
    names = _procedure_names(report, state)
    return template.format(", ".join(names)) if names else None


def _procedure_names(report: GrowthReport, state: str) -> list[str]:
    """Return the procedures that entered a state in the period and are still in it."""
    last = {one.name: one.state for one in report.state_changes if one.kind == "procedure"}
    return [name for name, now in last.items() if now == state]


def _format_share(share: PeriodMetric) -> str:
    return f"{_format_percent(share.now or 0)} of {share.n:,}"


def _format_percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _pluralize(number: int, singular: str, plural: str) -> str:
    return f"{number:,} {singular if number == 1 else plural}"
