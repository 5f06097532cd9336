"""The calibration report as plain text, at most 80 columns wide."""

import textwrap
from collections.abc import Sequence

from newton.brain.calibration.report import CalibrationGroup, CalibrationReport, CalibrationTrend
from newton.brain.calibration.scores import CalibrationBin, CalibrationScores
from newton.operations.decisions import calibration_phrases as phrases

WIDTH = 80
AXIS_STEPS = 40  # steps from 0 to 1
NAME_WIDTH = 20
MAX_GROUPS = 12
BAR_WIDTH = 16


def render_calibration(report: CalibrationReport) -> str:
    """Return the calibration report as text. No line is longer than `WIDTH`."""
    if report.scores is None or report.bias is None:
        return "\n".join(_wrap(phrases.NO_REVIEWED_DECISIONS))
    parts = [
        [
            *_wrap(phrases.describe_sample(report.scores)),
            *_render_scores(report.scores),
            f"  Bias         {phrases.describe_bias(report.bias)}",
        ],
        render_diagram(report.scores.bins),
        _render_trend(report.trend) if report.trend else [phrases.describe_missing_trend(report.n)],
        *(_render_groups(title, groups) for title, groups in phrases.list_groups(report)),
        _render_recalibration(report),
    ]
    return "\n\n".join("\n".join(part) for part in parts)


def render_diagram(
    bins: Sequence[CalibrationBin],
    *,
    title: str = "Observed success rate by stated confidence",
    value: str = "succeeded",
) -> list[str]:
    """Return the lines of the reliability diagram: for each bin, the stated confidence and the observed rate.

    `value` is the word for what is observed, such as "succeeded".
    """
    scale = "".join(f"{mark:<10}" for mark in ("0 %", "25 %", "50 %", "75 %")) + "100 %"
    return [
        title,
        f"stated       n  {scale}  {value} (95 %)",
        *(
            f"{one.bin}{one.n:>7,}  {_render_row(one)}  {phrases.format_percent(one.observed):>5}  "
            f"({100 * one.wilson95[0]:.0f}-{100 * one.wilson95[1]:.0f})"
            for one in bins
        ),
        f"               ○ stated  ● {value}  ◉ both  ├─┤ 95 % (Wilson)",
    ]


def _render_row(score_bin: CalibrationBin) -> str:
    cells = ["·" if at % 10 == 0 else " " for at in range(AXIS_STEPS + 1)]
    low, high = (_to_column(end) for end in score_bin.wilson95)
    cells[low : high + 1] = ["─"] * (high + 1 - low)
    cells[low], cells[high] = "├", "┤"
    stated, observed = _to_column(score_bin.mean_forecast), _to_column(score_bin.observed)
    cells[stated], cells[observed] = "○", "◉" if stated == observed else "●"
    return "".join(cells)


def _to_column(share: float) -> int:
    return round(share * AXIS_STEPS)


def _render_scores(scores: CalibrationScores) -> list[str]:
    return [f"  {name:<12} {value:<7} {meaning}" for name, value, meaning in phrases.list_scores(scores)]


def _render_trend(trend: CalibrationTrend) -> list[str]:
    highest = max(window.brier for window in trend.windows) or 1.0
    drift = phrases.describe_drift(trend.drift) if trend.drift else None
    return [
        f"{'Over time':<{NAME_WIDTH}} {'n':>6}  succeeded   bias    Brier",
        *(
            f"{window.start:%Y-%m-%d}{'':<{NAME_WIDTH - 10}} {window.n:>6,}  "
            f"{phrases.format_percent(window.base_rate):>9}  {phrases.format_signed_number(window.bias)}  "
            f"{window.brier:.3f} {'▇' * round(BAR_WIDTH * window.brier / highest)}"
            for window in trend.windows
        ),
        f"  Brier {phrases.describe_slope(trend.brier)}",
        f"  bias  {phrases.describe_slope(trend.bias)}",
        *(_wrap(drift) if drift else ()),
    ]


def _render_groups(title: str, groups: Sequence[CalibrationGroup]) -> list[str]:
    more = len(groups) - MAX_GROUPS
    return [
        f"{title:<{NAME_WIDTH}} {'n':>6}  succeeded  Brier   bias",
        *(_render_group(group) for group in groups[:MAX_GROUPS]),
        *([f"… and {more} more"] if more > 0 else ()),
    ]


def _render_group(group: CalibrationGroup) -> str:
    verdict = phrases.describe_verdict(group.bias)
    return (
        f"{phrases.clip_name(group.name, max_chars=NAME_WIDTH):<{NAME_WIDTH}} {group.n:>6,}  "
        f"{phrases.format_percent(group.base_rate):>9}  {group.brier:.3f}  "
        f"{phrases.format_signed_number(group.bias.size)}  {verdict}"
    )


def _render_recalibration(report: CalibrationReport) -> list[str]:
    lines = ["Correction of stated confidence", *_wrap(phrases.describe_recalibration(report))]
    if report.recalibration is None or report.recalibration.method == "none":
        return lines
    rows = zip(("stated", "corrected"), zip(*phrases.list_corrections(report.recalibration), strict=True), strict=True)
    return [*lines, *(f"  {label:<10}" + "".join(f"{value:>7}" for value in values) for label, values in rows)]


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH)
