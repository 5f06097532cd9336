"""Strengths, concerns and recommendations of a growth report, derived by fixed rules. Pure.

A metric whose sample is too small is not used.
"""

from collections.abc import Callable, Iterator
from operator import ge, gt, le, lt
from typing import NamedTuple

from newton.agent.growth.report import GrowthReport, PeriodMetric
from newton.brain.calibration.bias import ConfidenceBias
from newton.memory.lookup import short_id

HIGH_ACCURACY_MIN, LOW_ACCURACY_MAX = 0.7, 0.5  # shares of successful decisions
MIN_CHANGE = 0.15  # the smallest change of a share to report
MAX_REPEAT_RATE = 0.10
MIN_CENSOR_PRECISION = 0.85
MIN_CONFIRMED_RATE = 0.20


class GrowthAssessment(NamedTuple):
    strengths: tuple[str, ...]
    concerns: tuple[str, ...]
    recommendations: tuple[str, ...]


def assess(report: GrowthReport) -> GrowthAssessment:
    """Return the sentences of all rules that apply to the report, each list in the order of the rules."""
    return GrowthAssessment(
        tuple(_iter_strengths(report)), tuple(_iter_concerns(report)), tuple(_iter_recommendations(report))
    )


def _iter_strengths(report: GrowthReport) -> Iterator[str]:
    metrics, near, effective = report.metrics, report.repeats.near, _procedure_names(report, "EFFECTIVE")
    if _compare(metrics.accuracy, ge, HIGH_ACCURACY_MIN):
        yield f"{_format_share(metrics.accuracy)} reviewed decisions succeeded."
    if _changed_by(metrics.accuracy, ge, MIN_CHANGE):
        yield f"More decisions succeeded than before: {_format_change(metrics.accuracy)}."
    yield from _iter_calibration_strengths(report)
    if near and report.repeats.answered >= near:
        similar = _pluralize(near, "decision was", "decisions were")
        yield f"{similar} similar to a known failure, and all responded to it."
    if _compare(metrics.precision, gt, MIN_CENSOR_PRECISION):
        yield f"Censors were right in {_format_share(metrics.precision)} cases."
    if effective:
        yield f"Procedures that became effective: {', '.join(effective)}."
    if _compare(metrics.confirmed, gt, MIN_CONFIRMED_RATE):
        yield f"{_format_share(metrics.confirmed)} facts were confirmed."


def _iter_calibration_strengths(report: GrowthReport) -> Iterator[str]:
    if report.bias and report.bias.verdict == "no sign of either":
        yield f"Stated confidence can be trusted: no sign of a bias in {report.bias.n} reviews."
    if report.trend and report.trend.brier.direction == "falling":
        yield "The Brier score falls: stated confidence is becoming more accurate."


def _iter_concerns(report: GrowthReport) -> Iterator[str]:
    metrics, ineffective = report.metrics, _procedure_names(report, "INEFFECTIVE")
    if _compare(metrics.accuracy, lt, LOW_ACCURACY_MAX):
        yield f"Only {_format_share(metrics.accuracy)} reviewed decisions succeeded."
    if _changed_by(metrics.accuracy, le, -MIN_CHANGE):
        yield f"Fewer decisions succeeded than before: {_format_change(metrics.accuracy)}."
    yield from _iter_calibration_concerns(report)
    if _compare(metrics.repeated, gt, MAX_REPEAT_RATE):
        target = _format_percent(MAX_REPEAT_RATE)
        yield f"{_format_share(metrics.repeated)} decisions repeat a mistake; the target is under {target}."
    if _compare(metrics.precision, le, MIN_CENSOR_PRECISION):
        target = _format_percent(MIN_CENSOR_PRECISION)
        yield f"Censors were right in only {_format_share(metrics.precision)} cases; the target is over {target}."
    if ineffective:
        yield f"Procedures that became ineffective: {', '.join(ineffective)}."
    if _compare(metrics.confirmed, le, MIN_CONFIRMED_RATE):
        target = _format_percent(MIN_CONFIRMED_RATE)
        yield f"Only {_format_share(metrics.confirmed)} facts were confirmed; the target is over {target}."


def _iter_calibration_concerns(report: GrowthReport) -> Iterator[str]:
    if bias := _significant_bias(report):
        stated, actual = _format_percent(bias.mean_stated), _format_percent(bias.mean_outcome)
        average = f"the average stated confidence is {stated}, but {actual} of the decisions succeeded"
        yield f"{bias.verdict.capitalize()}: {average} ({bias.n} reviews)."
    if report.trend and report.trend.brier.direction == "rising":
        yield "The Brier score rises: stated confidence is becoming less accurate."


def _iter_recommendations(report: GrowthReport) -> Iterator[str]:
    yield from _iter_decision_recommendations(report)
    if bias := _significant_bias(report):
        less = "less" if bias.size > 0 else "more"
        yield f"State {less} confidence: `newton calibration` compares stated confidence with outcomes."
    if _compare(report.metrics.precision, le, MIN_CENSOR_PRECISION):
        yield "Retire or narrow the censors with false positives: `newton censors list`."
    if ineffective := _procedure_names(report, "INEFFECTIVE"):
        yield f"Rewrite the procedure that does not work: `newton procedures show {ineffective[0]}`."
    if _compare(report.metrics.confirmed, le, MIN_CONFIRMED_RATE):
        yield "Confirm the facts that are true: `newton confirm ID`."
    if missing := report.repeats.missing:
        decisions = _pluralize(missing, "decision has", "decisions have")
        yield f"{decisions} no embedding vector, so repeated mistakes may be missed: run `newton doctor`."


def _iter_decision_recommendations(report: GrowthReport) -> Iterator[str]:
    metrics = report.metrics
    if late := int(metrics.overdue.now or 0):
        yield f"{_pluralize(late, 'decision waits', 'decisions wait')} for an outcome: `newton decisions list --due`."
    elif metrics.made.now and not metrics.judged.now:
        yield "No decision was reviewed; record an outcome: `newton review ID success`."
    if report.repeats.repeated:
        pair = report.repeats.repeated[-1].pair
        failed_id, decision_id = short_id(pair.failed_id), short_id(pair.decision_id)
        yield (
            f"Read the earlier failure: `newton decisions show {failed_id}`. If it was considered, record that: "
            f"`newton decisions link {decision_id} relates {failed_id}`."
        )
    if shown := int(metrics.shown.now or 0):
        yield (
            f"{_pluralize(shown, 'decision was', 'decisions were')} shown a similar failure and did not respond to it;"
            " give the reason: `newton think ID TEXT`, with the id of the failure."
        )


def _significant_bias(report: GrowthReport) -> ConfidenceBias | None:
    return report.bias if report.bias and report.bias.verdict in ("overconfident", "underconfident") else None


def _compare(metric: PeriodMetric, operator: Callable[[float, float], bool], bound: float) -> bool:
    """Return `operator(value, bound)` for the value of the current period; False if that value is not reliable."""
    return metric.reliable_now is not None and operator(metric.reliable_now, bound)


def _changed_by(metric: PeriodMetric, operator: Callable[[float, float], bool], bound: float) -> bool:
    """Return `operator(change, bound)` for the change from the previous to the current period.

    Return False if the value of a period is not reliable.
    """
    now, before = metric.reliable_now, metric.reliable_before
    return now is not None and before is not None and operator(now - before, bound)


def _procedure_names(report: GrowthReport, state: str) -> list[str]:
    """Return the names of the procedures whose last change of state in the period was to `state`."""
    last = {change.name: change.state for change in report.state_changes if change.kind == "procedure"}
    return [name for name, now in last.items() if now == state]


def _format_share(share: PeriodMetric) -> str:
    return f"{_format_percent(share.now or 0)} of {share.n:,}"


def _format_change(share: PeriodMetric) -> str:
    return f"{_format_percent(share.before or 0)} before, {_format_percent(share.now or 0)} now"


def _format_percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _pluralize(number: int, singular: str, plural: str) -> str:
    return f"{number:,} {singular if number == 1 else plural}"
