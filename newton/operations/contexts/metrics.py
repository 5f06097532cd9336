"""The operation that measures the quality of contexts, and its report as text."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from newton.cognition.metrics.metrics import MetricGroup, MetricTarget, QualityReport
from newton.cognition.metrics.service import MAX_DAYS
from newton.operations.declaration import operation
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

COLUMN_WIDTHS = (12, 10, 10, 12)  # of the metrics of a group


def format_report(report: QualityReport) -> str:
    """Format a report on contexts: all metrics, tables by kind of input, profile and day, and advice."""
    return "\n".join(_list_lines(report))


def _list_lines(report: QualityReport) -> Iterator[str]:
    yield f"{report.since:%Y-%m-%d} to {report.until:%Y-%m-%d} · {pluralize(report.turns, 'turn')}\n"
    yield f"{'metric':<29}{'value':>8}  {'target':<14}{'verdict':<9}sample"
    for metric in report.metrics:
        target = format_target(metric.target, metric.unit) if metric.target else ""
        yield (
            f"{metric.name:<29}{format_value(metric.value, metric.unit):>8}  {target:<14}{metric.verdict or '':<9}"
            f"{metric.sample_size:,} {metric.sample_unit}"
        )
    if differences := report.prompt_differences:
        counted = ", ".join(f"{name} {count:,}" for name, count in differences.items())
        yield f"\nprompts not repeated to the end: {counted}"
    for grouping, groups in (("frame", report.frames), ("profile", report.profiles), ("day", report.days)):
        yield from _format_table(grouping, groups, report)
    if advice := [f"- {metric.name}: {text}" for metric in report.metrics if (text := metric.advice)]:
        yield "\nAdvice"
        yield from advice


def _format_table(grouping: str, groups: Sequence[MetricGroup], report: QualityReport) -> Iterator[str]:
    if not groups:
        return
    by_day = grouping == "day"
    head = f"\n{f'by {grouping}':<23}{'turns':>8}{'relevance':>12}{'budget':>10}{'used':>10}{'refreshed':>12}"
    yield head + (f"{'memories':>11}" if by_day else "")
    memories = {str(day): sum(kinds.values()) for day, kinds in report.memories.items()}
    for group in groups:
        values = [format_value(metric.value, metric.unit) for metric in group.metrics]
        cells = "".join(f"{value:>{width}}" for value, width in zip(values, COLUMN_WIDTHS, strict=True))
        row = f"{group.name:<23}{group.turns:>8}{cells}"
        yield row + (f"{memories.get(group.name, 0):>11}" if by_day else "")


def format_value(value: float | None, unit: str) -> str:
    """Return the value of a metric with its unit.

    >>> format_value(0.456, "share"), format_value(12.3, "ms"), format_value(None, "score")
    ('46 %', '12 ms', 'no data')
    """
    if value is None:
        return "no data"
    match unit:
        case "share":
            return f"{100 * value:.0f} %"
        case "ms":
            return f"{value:,.0f} ms"
        case "count":
            return f"{value:,.1f}"
        case _:
            return f"{value:.2f}"


def format_target(target: MetricTarget, unit: str) -> str:
    """Return the target range of a metric as text.

    >>> format_target(MetricTarget(0.5, 0.9), "share"), format_target(MetricTarget(below=500), "ms")
    ('50 % to 90 %', 'below 500 ms')
    """
    above, below = target.above, target.below
    if above is not None and below is not None:
        return f"{format_value(above, unit)} to {format_value(below, unit)}"
    return f"above {format_value(above, unit)}" if above is not None else f"below {format_value(below, unit)}"


@operation(
    "GET /v1/metrics",
    "reads",
    name="metrics",
    command="metrics",
    text=format_report,
    names_commands=True,
)
async def measure_contexts(
    caller: "OperationCaller",
    days: Annotated[int, Field(ge=1, le=MAX_DAYS, description="Length of the period in days.")] = 7,
) -> QualityReport:
    """Report on the contexts of the last days: relevance, budget use, speed, and how much of them the replies used.

    Each metric is shown with its target and its sample size, and with advice if it misses the target.

    Example: newton metrics --days 30
    """
    return await caller.newton.metrics().report(days)
