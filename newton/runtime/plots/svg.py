"""Plots as inline SVG. Colours come from the page's style, so they follow its light or dark mode. Pure."""

from collections.abc import Sequence
from html import escape

from newton.brain.calibration.scores import BINS, Bin
from newton.brain.calibration.trend import Window
from newton.runtime.plots import words

SIDE = 400  # of the plotting area of the diagram, in units of the drawing
WIDE, HIGH = 400, 150
LEFT, TOP, RIGHT, BOTTOM = 62, 20, 24, 44
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
SMALLEST, LARGEST = 3.5, 9.0  # radius of a dot
CLOSE = 0.12  # of the height: two marks nearer than this would touch


def reliability(bins: Sequence[Bin]) -> str:
    """Stated against came true, with Wilson's intervals and the number of decisions. The diagonal is perfect."""
    most = max(one.n for one in bins)
    marks = [_dot(one, most) for one in bins]
    diagonal = f'<line class="ideal" x1="0" y1="{SIDE}" x2="{SIDE}" y2="0"/>'
    told = "; ".join(f"{one.label}: {words.percent(one.observed)} of {one.n}" for one in bins)
    axes = _grid(SIDE, SIDE) + _label_x("stated confidence", SIDE, SIDE) + _label_y("came true", SIDE)
    return _drawing("reliability", "Reliability diagram", told, axes + diagonal + "".join(marks), high=SIDE)


def sharpness(bins: Sequence[Bin]) -> str:
    """How often each confidence was stated."""
    most = max(one.n for one in bins)
    width = WIDE / BINS
    bars = "".join(
        f'<rect class="bar" x="{one.low * WIDE + 2:.1f}" y="{HIGH - HIGH * one.n / most:.1f}" '
        f'width="{width - 4:.1f}" height="{HIGH * one.n / most:.1f}"/>'
        + _text(one.low * WIDE + width / 2, HIGH - HIGH * one.n / most - 4, f"{one.n:,}", "count")
        for one in bins
    )
    told = "; ".join(f"{one.label}: {one.n}" for one in bins)
    axes = _ticks_x(WIDE, HIGH) + _base(WIDE, HIGH) + _label_x("stated confidence", WIDE, HIGH)
    return _drawing("sharpness", "How often each confidence was stated", told, axes + bars, high=HIGH)


def trend(windows: Sequence[Window]) -> str:
    """Brier score and bias of each window of decisions, in order of time."""
    values = [value for window in windows for value in (window.brier, window.bias)]
    low, high = min(0.0, *values), max(0.05, *values)
    marks = (0.0, high) if -low < CLOSE * (high - low) else (low, 0.0, high)
    across = [WIDE * number / (len(windows) - 1) for number in range(len(windows))]

    def height(value: float) -> float:
        return HIGH * (high - value) / (high - low)

    def line(name: str, points: Sequence[float]) -> str:
        path = " ".join(f"{x:.1f},{height(value):.1f}" for x, value in zip(across, points, strict=True))
        dots = "".join(
            f'<circle class="{name}" cx="{x:.1f}" cy="{height(value):.1f}" r="3"/>'
            for x, value in zip(across, points, strict=True)
        )
        return f'<polyline class="{name}" points="{path}"/>{dots}'

    zero = f'<line class="axis" x1="0" y1="{height(0):.1f}" x2="{WIDE}" y2="{height(0):.1f}"/>'
    ends = _text(0, HIGH + 18, f"{windows[0].start:%Y-%m-%d}", "tick start") + _text(
        WIDE, HIGH + 18, f"{windows[-1].end:%Y-%m-%d}", "tick end"
    )
    scale = "".join(_text(-8, height(value) + 4, f"{value:.2f}", "tick end") for value in marks)
    lines = line("brier", [window.brier for window in windows]) + line("bias", [window.bias for window in windows])
    told = "; ".join(f"{w.start:%Y-%m-%d}: Brier {w.brier:.3f}, bias {words.signed(w.bias)}" for w in windows)
    return _drawing("trend", "Brier score and bias over time", told, zero + scale + ends + lines, high=HIGH)


def _dot(one: Bin, most: int) -> str:
    x, y = one.mean_forecast * SIDE, SIDE - one.observed * SIDE
    top, bottom = SIDE - one.wilson95[1] * SIDE, SIDE - one.wilson95[0] * SIDE
    radius = SMALLEST + (LARGEST - SMALLEST) * (one.n / most) ** 0.5
    return (
        f'<path class="reach" d="M{x:.1f} {top:.1f}V{bottom:.1f}M{x - 4:.1f} {top:.1f}h8M{x - 4:.1f} {bottom:.1f}h8"/>'
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>' + _text(x, top - 6, f"{one.n:,}", "count")
    )


def _grid(wide: int, high: int) -> str:
    lines = "".join(
        f'<path class="grid" d="M{at * wide:.0f} 0V{high}M0 {at * high:.0f}H{wide}"/>'
        + _text(-8, high - at * high + 4, words.percent(at), "tick end")
        for at in TICKS
    )
    return lines + _ticks_x(wide, high)


def _ticks_x(wide: int, high: int) -> str:
    return "".join(_text(at * wide, high + 18, words.percent(at), "tick") for at in TICKS)


def _base(wide: int, high: int) -> str:
    return f'<line class="axis" x1="0" y1="{high}" x2="{wide}" y2="{high}"/>'


def _label_x(text: str, wide: int, high: int) -> str:
    return _text(wide / 2, high + 38, text, "label")


def _label_y(text: str, high: int) -> str:
    return f'<text class="label" transform="translate(-50 {high / 2:.0f}) rotate(-90)">{escape(text)}</text>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _drawing(name: str, title: str, told: str, inside: str, *, high: int) -> str:
    """A drawing with its title and its figures in words, for those who do not see it."""
    size = f"{-LEFT} {-TOP} {LEFT + WIDE + RIGHT} {TOP + high + BOTTOM}"
    return (
        f'<svg viewBox="{size}" role="img" aria-labelledby="{name}-title {name}-told">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-told">{escape(told)}</desc>{inside}</svg>'
    )
