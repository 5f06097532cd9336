"""The command `newton metrics`: quality of the contexts compared with targets."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from cyclopts import Parameter

from newton.cognition.metrics.metrics import MetricGroup, QualityMetric, QualityReport
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.reports.metrics import find_advice, metrics_to_json


async def show_metrics(
    *,
    days: Annotated[int, Parameter(help="Length of the period in days.")] = 7,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show quality metrics of the contexts: relevance, budget use, rebuilds, share of items used in replies, speed.

    Each metric is shown with its target and its sample size.

    Example: newton metrics --days 30
    """
    async with open_agent(load_settings(agent)) as newton:
        report = await newton.metrics().report(days)
    if json:
        formatting.print_json(metrics_to_json(report))
    else:
        say("\n".join(format_metrics(report)))


def format_metrics(report: QualityReport) -> Iterator[str]:
    """Yield the lines of the report: all metrics, tables by kind of input, profile and day, and advice."""
    period = report.period
    yield f"{period.since:%Y-%m-%d} to {period.until:%Y-%m-%d} · {formatting.pluralize(len(period.turns), 'turn')}\n"
    yield f"{'metric':<23}{'value':>8}  {'target':<10}{'verdict':<9}sample"
    for metric in report.metrics:
        yield (
            f"{metric.name:<23}{_format_value(metric):>8}  {_format_target(metric):<10}{metric.verdict or '':<9}"
            f"{metric.n:,} {metric.sample_unit}"
        )
    if differences := period.prompt_differences:
        counted = ", ".join(f"{name} {count:,}" for name, count in differences.items())
        yield f"\nprompts not repeated to the end: {counted}"
    for grouping, groups in (("frame", report.frames), ("profile", report.profiles), ("day", report.days)):
        yield from _format_table(grouping, groups, report)
    if advice := [f"- {metric.name}: {text}" for metric in report.metrics if (text := find_advice(metric))]:
        yield "\nAdvice"
        yield from advice


def _format_table(grouping: str, groups: Sequence[MetricGroup], report: QualityReport) -> Iterator[str]:
    if not groups:
        return
    by_day = grouping == "day"
    head = f"\n{f'by {grouping}':<23}{'turns':>8}{'relevance':>12}{'budget':>10}{'used':>10}{'refreshed':>12}"
    yield head + (f"{'memories':>11}" if by_day else "")
    memories = {str(day): sum(kinds.values()) for day, kinds in report.period.memories_by_day.items()}
    for group in groups:
        relevance, utilisation = _format_value(group.relevance), _format_value(group.utilisation)
        row = f"{group.name:<23}{group.turns:>8}{relevance:>12}{utilisation:>10}"
        row += f"{_format_value(group.precision):>10}{_format_value(group.refresh):>12}"
        yield row + (f"{memories.get(group.name, 0):>11}" if by_day else "")


def _format_value(metric: QualityMetric) -> str:
    """Format the value of a metric with its unit, or a dash if there is no value.

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
