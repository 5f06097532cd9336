"""A calibration for a terminal of 80 columns; plain lines, so that it also reads well when it is piped. Pure."""

import textwrap
from collections.abc import Sequence

from newton.brain.calibration.report import UNNAMED, Calibration, Group
from newton.brain.calibration.scores import Bin, Scores
from newton.brain.calibration.trend import Trend
from newton.runtime.plots import words

WIDTH = 80
AXIS = 40  # steps from 0 to 1
NAME = 20
MOST_GROUPS = 12
BAR = 16
TITLES = {"category": "By category", "stakes": "By stakes", "frame": "By frame", "reason": "By kind of reason"}


def calibration(whole: Calibration) -> str:
    """All of it. No line is longer than WIDTH."""
    if whole.scores is None or whole.bias is None:
        return "\n".join(_wrapped(words.NOTHING))
    parts = [
        [*_wrapped(words.judged(whole.scores)), *_figures(whole.scores), f"  Bias         {words.bias(whole.bias)}"],
        diagram(whole.scores.bins),
        _trend(whole.trend) if whole.trend else [words.trendless(whole.n)],
        *(_groups(TITLES[name], groups) for name, groups in whole.groups.items() if _telling(groups)),
        _recalibration(whole),
    ]
    return "\n\n".join("\n".join(part) for part in parts)


def diagram(bins: Sequence[Bin]) -> list[str]:
    """The reliability diagram, a line for each bin: where its decisions were stated, and where they came to lie."""
    scale = "".join(f"{mark:<10}" for mark in ("0 %", "25 %", "50 %", "75 %")) + "100 %"
    return [
        "What came true of what was stated",
        f"stated       n  {scale}  came true (95 %)",
        *(
            f"{one.label}{one.n:>7,}  {_row(one)}  {words.percent(one.observed):>5}  "
            f"({100 * one.wilson95[0]:.0f}-{100 * one.wilson95[1]:.0f})"
            for one in bins
        ),
        "               ○ stated  ● came true  ◉ both  ├─┤ 95 % (Wilson)",
    ]


def _row(one: Bin) -> str:
    cells = ["·" if at % 10 == 0 else " " for at in range(AXIS + 1)]
    low, high = (_cell(end) for end in one.wilson95)
    cells[low : high + 1] = ["─"] * (high + 1 - low)
    cells[low], cells[high] = "├", "┤"
    stated, came = _cell(one.mean_forecast), _cell(one.observed)
    cells[stated], cells[came] = "○", "◉" if stated == came else "●"
    return "".join(cells)


def _cell(share: float) -> int:
    return round(share * AXIS)


def _figures(of: Scores) -> list[str]:
    return [f"  {name:<12} {value:<7} {meaning}" for name, value, meaning in words.figures(of)]


def _trend(of: Trend) -> list[str]:
    most = max(window.brier for window in of.windows) or 1.0
    drift = of.drift and words.drift(of.drift)
    return [
        f"{'Over time':<{NAME}} {'n':>6}  came true   bias    Brier",
        *(
            f"{window.start:%Y-%m-%d}{'':<{NAME - 10}} {window.n:>6,}  {words.percent(window.base_rate):>9}  "
            f"{words.signed(window.bias)}  {window.brier:.3f} {'▇' * round(BAR * window.brier / most)}"
            for window in of.windows
        ),
        f"  Brier {words.slope(of.brier)}",
        f"  bias  {words.slope(of.bias)}",
        *(_wrapped(drift) if drift else ()),
    ]


def _telling(groups: Sequence[Group]) -> bool:
    return any(group.name != UNNAMED for group in groups)


def _groups(title: str, groups: Sequence[Group]) -> list[str]:
    more = len(groups) - MOST_GROUPS
    return [
        f"{title:<{NAME}} {'n':>6}  came true  Brier   bias",
        *(_group(group) for group in groups[:MOST_GROUPS]),
        *([f"… and {more} more"] if more > 0 else ()),
    ]


def _group(of: Group) -> str:
    verdict = "too few to say" if of.bias.interval is None else of.bias.verdict
    return (
        f"{words.named(of.name, most=NAME):<{NAME}} {of.n:>6,}  {words.percent(of.base_rate):>9}  {of.brier:.3f}  "
        f"{words.signed(of.bias.size)}  {verdict}"
    )


def _recalibration(whole: Calibration) -> list[str]:
    lines = ["Correction of stated confidence", *_wrapped(words.recalibration(whole))]
    if whole.recalibration is None or whole.recalibration.method == "none":
        return lines
    stated, came = zip(*words.corrections(whole.recalibration), strict=True)
    return [*lines, "  stated    " + _columns(stated), "  corrected " + _columns(came)]


def _columns(values: Sequence[str]) -> str:
    return "".join(f"{value:>7}" for value in values)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH)
