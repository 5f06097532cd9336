"""`newton metrics`: how well contexts serve, beside what is aimed at."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from cyclopts import Parameter

from newton.cognition.metrics.metrics import MetricGroup, QualityMetric, QualityReport
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

# What helps when a target is missed, on which side.
ADVICE_BY_VERDICT: Mapping[tuple[str, str], str] = {
    ("context relevance", "low"): "What has a quarter of the best one's evidence is loaded (lines: half of its"
    " relevance), so that few answers are lost. A profile of your own (NEWTON_PROFILES_DIR) with a higher `floor` and"
    " `near` raises this figure, and loses some; less room does not.",
    ("budget utilisation", "low"): "Inputs are allotted more than memory has to say about them: lower"
    " NEWTON_CONTEXT_TOKENS, or tell more (`newton remember`, `newton ingest`).",
    ("budget utilisation", "high"): "Contexts are full, and something is left out: raise NEWTON_CONTEXT_TOKENS.",
    ("refresh rate", "high"): "Contexts change at most turns: give one conversation to one topic (`/frame` holds a"
    " frame), and begin another with `newton chat`.",
    ("recall precision", "low"): "Replies leave most items alone: forget or retract what is of no use, or give less"
    " room (NEWTON_CONTEXT_TOKENS).",
    ("cold start, p95", "high"): "Contexts are slow to make: `newton bench context` tells which part, `newton doctor`"
    " what is wrong; NEWTON_SOURCE_TIMEOUT_SECONDS is the deadline of each source.",
    ("facts confirmed", "low"): "Few facts were told again: `newton confirm` what is so, and `newton jobs run"
    " lifecycle` joins what says the same in other words.",
}


async def show_metrics(
    *,
    days: Annotated[int, Parameter(help="How many days, up to now.")] = 7,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show how well contexts served in the last days: relevance, budget, refreshes, what replies used of them, speed.

    Each figure stands beside its target and the number of things it is computed from.

    Example: newton metrics --days 30
    """
    async with open_newton(load_settings(agent)) as newton:
        found = await newton.metrics().report(days)
    if json:
        formatting.print_json(metrics_to_json(found))
    else:
        say("\n".join(format_metrics(found)))


def format_metrics(report: QualityReport) -> Iterator[str]:
    """As a person reads it."""
    period = report.period
    yield f"{period.since:%Y-%m-%d} to {period.until:%Y-%m-%d} · {formatting.pluralize(len(period.turns), 'turn')}\n"
    yield f"{'figure':<23}{'value':>8}  {'target':<10}{'verdict':<9}from"
    for figure in report.metrics:
        yield (
            f"{figure.name:<23}{_format_value(figure):>8}  {_format_target(figure):<10}{figure.verdict or '':<9}"
            f"{figure.n:,} {figure.sample_unit}"
        )
    for what, groups in (("frame", report.frames), ("profile", report.profiles), ("day", report.days)):
        yield from _format_table(what, groups, report)
    advice = [f"{figure.name}: {said}" for figure in report.metrics if (said := _find_advice(figure))]
    if advice:
        yield "\nWhat may help"
        yield from (f"- {one}" for one in advice)


def metrics_to_json(report: QualityReport) -> dict[str, object]:
    """As a program reads it."""
    period = report.period
    return {
        "since": period.since.isoformat(),
        "until": period.until.isoformat(),
        "turns": len(period.turns),
        "figures": [_metric_to_json(figure) | {"advice": _find_advice(figure)} for figure in report.metrics],
        "frames": [_group_to_json(group) for group in report.frames],
        "profiles": [_group_to_json(group) for group in report.profiles],
        "days": [_group_to_json(group) for group in report.days],
        "memories": {str(day): dict(kinds) for day, kinds in period.memories_by_day.items()},
    }


def _format_table(grouping: str, groups: Sequence[MetricGroup], report: QualityReport) -> Iterator[str]:
    if not groups:
        return
    by_day = grouping == "day"
    head = f"\n{f'by {grouping}':<23}{'turns':>8}{'relevance':>12}{'budget':>10}{'used':>10}{'refreshed':>12}"
    yield head + (f"{'memories':>11}" if by_day else "")
    made = {str(day): sum(kinds.values()) for day, kinds in report.period.memories_by_day.items()}
    for group in groups:
        relevance, utilisation = _format_value(group.relevance), _format_value(group.utilisation)
        row = f"{group.name:<23}{group.turns:>8}{relevance:>12}{utilisation:>10}"
        row += f"{_format_value(group.precision):>10}{_format_value(group.refresh):>12}"
        yield row + (f"{made.get(group.name, 0):>11}" if by_day else "")


def _format_value(metric: QualityMetric) -> str:
    """
    >>> _format_value(QualityMetric(name="", value=0.456, n=1, sample_unit=""))
    '46 %'
    >>> _format_value(QualityMetric(name="", value=12.3, n=1, sample_unit="", unit="ms"))
    '12 ms'
    """
    if metric.value is None:
        return "–"
    match metric.unit:
        case "share":
            return f"{metric.value:.0%}".replace("%", " %")
        case "score":
            return f"{metric.value:.2f}"
        case "ms":
            return f"{metric.value:,.0f} ms"
        case "count":
            return f"{metric.value:,.1f}"


def _format_target(metric: QualityMetric) -> str:
    if (target := metric.target) is None:
        return ""
    scale, unit = {"share": (100, " %"), "ms": (1, " ms")}.get(metric.unit, (1, ""))
    above, below = (None if end is None else f"{end * scale:g}" for end in target)
    if above and below:
        return f"{above}-{below}{unit}"
    return f"> {above}{unit}" if above else f"< {below}{unit}"


def _find_advice(metric: QualityMetric) -> str | None:
    return ADVICE_BY_VERDICT.get((metric.name, metric.verdict or ""))


def _metric_to_json(metric: QualityMetric) -> dict[str, object]:
    return {
        "name": metric.name,
        "value": None if metric.value is None else round(metric.value, 4),
        "unit": metric.unit,
        "target": metric.target._asdict() if metric.target else None,
        "n": metric.n,
        "of": metric.sample_unit,
        "verdict": metric.verdict,
    }


def _group_to_json(group: MetricGroup) -> dict[str, object]:
    figures = (group.relevance, group.utilisation, group.precision, group.refresh)
    return {"name": group.name, "turns": group.turns, "figures": [_metric_to_json(figure) for figure in figures]}
