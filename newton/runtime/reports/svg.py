"""Plots as inline SVG. Colours come from the page's style, so they follow its light or dark mode. Pure."""

from collections.abc import Sequence
from html import escape

from newton.brain.calibration.scores import BIN_COUNT, CalibrationBin
from newton.brain.calibration.trend import TrendWindow
from newton.runtime.reports import phrases

PLOT_SIDE = 400  # of the plotting area of the diagram, in units of the drawing
PLOT_WIDTH, PLOT_HEIGHT = 400, 150
LEFT, TOP, RIGHT, BOTTOM = 62, 20, 24, 44
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
MIN_RADIUS, MAX_RADIUS = 3.5, 9.0  # radius of a dot
MIN_MARK_GAP = 0.12  # of the height: two marks nearer than this would touch


def draw_reliability(bins: Sequence[CalibrationBin]) -> str:
    """Draw the reliability diagram, with Wilson intervals and counts. The diagonal is perfect calibration."""
    most = max(one.n for one in bins)
    marks = [_draw_bin(one, most) for one in bins]
    diagonal = f'<line class="ideal" x1="0" y1="{PLOT_SIDE}" x2="{PLOT_SIDE}" y2="0"/>'
    told = "; ".join(f"{one.label}: {phrases.format_percent(one.observed)} of {one.n}" for one in bins)
    axes = (
        _draw_grid(PLOT_SIDE, PLOT_SIDE)
        + _draw_x_label("stated confidence", PLOT_SIDE, PLOT_SIDE)
        + _draw_y_label("came true", PLOT_SIDE)
    )
    return _render_svg("reliability", "Reliability diagram", told, axes + diagonal + "".join(marks), height=PLOT_SIDE)


def draw_sharpness(bins: Sequence[CalibrationBin]) -> str:
    """Draw the histogram of stated confidence."""
    most = max(one.n for one in bins)
    width = PLOT_WIDTH / BIN_COUNT
    bars = "".join(
        f'<rect class="bar" x="{one.low * PLOT_WIDTH + 2:.1f}" y="{PLOT_HEIGHT - PLOT_HEIGHT * one.n / most:.1f}" '
        f'width="{width - 4:.1f}" height="{PLOT_HEIGHT * one.n / most:.1f}"/>'
        + _draw_text(
            one.low * PLOT_WIDTH + width / 2, PLOT_HEIGHT - PLOT_HEIGHT * one.n / most - 4, f"{one.n:,}", "count"
        )
        for one in bins
    )
    told = "; ".join(f"{one.label}: {one.n}" for one in bins)
    axes = (
        _draw_x_ticks(PLOT_WIDTH, PLOT_HEIGHT)
        + _draw_baseline(PLOT_WIDTH, PLOT_HEIGHT)
        + _draw_x_label("stated confidence", PLOT_WIDTH, PLOT_HEIGHT)
    )
    return _render_svg("sharpness", "How often each confidence was stated", told, axes + bars, height=PLOT_HEIGHT)


def draw_trend(windows: Sequence[TrendWindow]) -> str:
    """Draw the Brier score and bias of each window, in order of time."""
    values = [value for window in windows for value in (window.brier, window.bias)]
    low, high = min(0.0, *values), max(0.05, *values)
    marks = (0.0, high) if -low < MIN_MARK_GAP * (high - low) else (low, 0.0, high)
    across = [PLOT_WIDTH * number / (len(windows) - 1) for number in range(len(windows))]

    def height(value: float) -> float:
        return PLOT_HEIGHT * (high - value) / (high - low)

    def line(name: str, points: Sequence[float]) -> str:
        path = " ".join(f"{x:.1f},{height(value):.1f}" for x, value in zip(across, points, strict=True))
        dots = "".join(
            f'<circle class="{name}" cx="{x:.1f}" cy="{height(value):.1f}" r="3"/>'
            for x, value in zip(across, points, strict=True)
        )
        return f'<polyline class="{name}" points="{path}"/>{dots}'

    zero = f'<line class="axis" x1="0" y1="{height(0):.1f}" x2="{PLOT_WIDTH}" y2="{height(0):.1f}"/>'
    ends = _draw_text(0, PLOT_HEIGHT + 18, f"{windows[0].start:%Y-%m-%d}", "tick start") + _draw_text(
        PLOT_WIDTH, PLOT_HEIGHT + 18, f"{windows[-1].end:%Y-%m-%d}", "tick end"
    )
    scale = "".join(_draw_text(-8, height(value) + 4, f"{value:.2f}", "tick end") for value in marks)
    lines = line("brier", [window.brier for window in windows]) + line("bias", [window.bias for window in windows])
    told = "; ".join(
        f"{w.start:%Y-%m-%d}: Brier {w.brier:.3f}, bias {phrases.format_signed_number(w.bias)}" for w in windows
    )
    return _render_svg("trend", "Brier score and bias over time", told, zero + scale + ends + lines, height=PLOT_HEIGHT)


def _draw_bin(score_bin: CalibrationBin, max_count: int) -> str:
    x, y = score_bin.mean_forecast * PLOT_SIDE, PLOT_SIDE - score_bin.observed * PLOT_SIDE
    top, bottom = PLOT_SIDE - score_bin.wilson95[1] * PLOT_SIDE, PLOT_SIDE - score_bin.wilson95[0] * PLOT_SIDE
    radius = MIN_RADIUS + (MAX_RADIUS - MIN_RADIUS) * (score_bin.n / max_count) ** 0.5
    return (
        f'<path class="reach" d="M{x:.1f} {top:.1f}V{bottom:.1f}M{x - 4:.1f} {top:.1f}h8M{x - 4:.1f} {bottom:.1f}h8"/>'
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
        + _draw_text(x, top - 6, f"{score_bin.n:,}", "count")
    )


def _draw_grid(width: int, height: int) -> str:
    lines = "".join(
        f'<path class="grid" d="M{at * width:.0f} 0V{height}M0 {at * height:.0f}H{width}"/>'
        + _draw_text(-8, height - at * height + 4, phrases.format_percent(at), "tick end")
        for at in TICKS
    )
    return lines + _draw_x_ticks(width, height)


def _draw_x_ticks(width: int, height: int) -> str:
    return "".join(_draw_text(at * width, height + 18, phrases.format_percent(at), "tick") for at in TICKS)


def _draw_baseline(width: int, height: int) -> str:
    return f'<line class="axis" x1="0" y1="{height}" x2="{width}" y2="{height}"/>'


def _draw_x_label(text: str, width: int, height: int) -> str:
    return _draw_text(width / 2, height + 38, text, "label")


def _draw_y_label(text: str, height: int) -> str:
    return f'<text class="label" transform="translate(-50 {height / 2:.0f}) rotate(-90)">{escape(text)}</text>'


def _draw_text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _render_svg(name: str, title: str, description: str, content: str, *, height: int) -> str:
    """Return the SVG with a title and a text description for screen readers."""
    size = f"{-LEFT} {-TOP} {LEFT + PLOT_WIDTH + RIGHT} {TOP + height + BOTTOM}"
    return (
        f'<svg viewBox="{size}" role="img" aria-labelledby="{name}-title {name}-told">'
        f'<title id="{name}-title">{escape(title)}</title><desc '
        f'id="{name}-told">{escape(description)}</desc>{content}</svg>'
    )
