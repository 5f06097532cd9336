"""Charts as inline SVG, and their style sheet in light and dark mode."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from html import escape

from newton.brain.calibration.report import TrendWindow
from newton.brain.calibration.scores import BIN_COUNT, CalibrationBin
from newton.operations.decisions import calibration_phrases as phrases

CHART_STYLE = """
:root { --series-0: #1f5fa8; --series-1: #b3480e; --series-2: #2f7d4f; --series-3: #7a4aa0; --series-4: #8a6d00;
  --series-5: #4d6b7a; --series-6: #a83264; --series-7: #5f5f5f }
@media (prefers-color-scheme: dark) { :root { --series-0: #7db4f2; --series-1: #f0a26b; --series-2: #7fcf9f;
  --series-3: #c3a0e6; --series-4: #dcc35a; --series-5: #9db9c7; --series-6: #f090b8; --series-7: #b0b0b0 } }
figure { margin: 0 } figcaption { color: var(--soft); font-size: .875rem }
svg.chart { width: 100%; height: auto; display: block }
svg.chart text { fill: var(--soft); font: 12px system-ui, sans-serif; text-anchor: middle }
svg.chart .end { text-anchor: end } svg.chart .start { text-anchor: start } svg.chart .label { font-size: 13px }
svg.chart .count { font-size: 11px } svg.chart .grid { stroke: var(--line); fill: none }
svg.chart .axis { stroke: var(--soft) } svg.chart .ideal { stroke: var(--soft); stroke-dasharray: 5 5 }
svg.chart .reach { stroke: var(--main); fill: none; stroke-width: 1.5 }
svg.chart .dot, svg.chart .bar, svg.chart circle.brier { fill: var(--main) }
svg.chart polyline { fill: none; stroke-width: 2 } svg.chart polyline.brier { stroke: var(--main) }
svg.chart polyline.bias { stroke: var(--other); stroke-dasharray: 6 3 } svg.chart circle.bias { fill: var(--other) }
svg.chart .target { fill: var(--series-2); opacity: .18 } svg.chart polyline.value { stroke: var(--main) }
svg.chart circle.value { fill: var(--main) } svg.chart .track { fill: var(--line) }
svg.chart .mark { stroke: var(--ink); stroke-width: 2; vector-effect: non-scaling-stroke }
@media (max-width: 40rem) { svg.chart text, svg.chart .label { font-size: 15px } svg.chart .count { font-size: 14px } }
.brier-key { color: var(--main) } .bias-key { color: var(--other) }
svg.share { height: .6rem; border-radius: 3px }
.legend { display: flex; flex-wrap: wrap; gap: .15rem .9rem; list-style: none; padding: 0; margin: .25rem 0 0;
  font-size: .8125rem; color: var(--soft) }
.legend li { margin: 0 } .legend svg { width: .7rem; height: .7rem; margin-right: .3rem; vertical-align: -.05rem }
""" + "".join(f".series-{number} {{ fill: var(--series-{number}) }}\n" for number in range(8))


PLOT_WIDTH, PLOT_HEIGHT = 400, 150  # size of a plot in drawing units; the reliability diagram is a square
LEFT, TOP, RIGHT, BOTTOM = 62, 28, 24, 44  # margins
CONFIDENCE_LABEL = "stated confidence"
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
MIN_RADIUS, MAX_RADIUS = 3.5, 9.0  # radius of a dot
COUNT_Y = -13.0  # the baseline of the counts, above the largest dot at 100 %
MIN_MARK_GAP = 0.12  # minimum distance of two tick labels, as a share of the height


def draw_reliability(
    bins: Sequence[CalibrationBin],
    *,
    name: str = "reliability",
    x_label: str = CONFIDENCE_LABEL,
    y_label: str = "observed success rate",
) -> str:
    """Return the SVG of a reliability diagram (success rate by confidence), with Wilson intervals and counts.

    The diagonal stands for perfect calibration. `name` is the prefix of the SVG's ids, unique in the page.
    """
    side, max_count = PLOT_WIDTH, max(one.n for one in bins)
    grid = "".join(
        f'<path class="grid" d="M{at * side:.0f} 0V{side}M0 {at * side:.0f}H{side}"/>'
        + draw_text(-8, side - at * side + 4, phrases.format_percent(at), "tick end")
        for at in TICKS
    )
    label = f'<text class="label" transform="translate(-50 {side / 2:.0f}) rotate(-90)">{escape(y_label)}</text>'
    diagonal = f'<line class="ideal" x1="0" y1="{side}" x2="{side}" y2="0"/>'
    marks = "".join(_draw_bin(one, side, max_count) for one in bins)
    values = "; ".join(f"{one.bin}: {phrases.format_percent(one.observed)} of {one.n}" for one in bins)
    count_label = draw_text(-8, COUNT_Y, "n", "count end")
    content = grid + _draw_share_axis(side, x_label) + label + count_label + diagonal + marks
    return render_svg(name, "Reliability diagram", values, content, size=(side, side))


def draw_sharpness(bins: Sequence[CalibrationBin]) -> str:
    """Return the SVG of the histogram of stated confidences."""
    max_count, width, bars = max(one.n for one in bins), PLOT_WIDTH / BIN_COUNT, ""
    for one in bins:
        left, height = one.low * PLOT_WIDTH, PLOT_HEIGHT * one.n / max_count
        top = PLOT_HEIGHT - height
        bars += f'<rect class="bar" x="{left + 2:.1f}" y="{top:.1f}" width="{width - 4:.1f}" height="{height:.1f}"/>'
        bars += draw_text(left + width / 2, top - 4, f"{one.n:,}", "count")
    baseline = f'<line class="axis" x1="0" y1="{PLOT_HEIGHT}" x2="{PLOT_WIDTH}" y2="{PLOT_HEIGHT}"/>'
    values = "; ".join(f"{one.bin}: {one.n}" for one in bins)
    content = _draw_share_axis(PLOT_HEIGHT, CONFIDENCE_LABEL) + baseline + bars
    return render_svg("sharpness", "Decisions by stated confidence", values, content, size=(PLOT_WIDTH, PLOT_HEIGHT))


def draw_trend(windows: Sequence[TrendWindow]) -> str:
    """Return the SVG of the Brier score and the bias of each window of consecutive reviews, in order of time."""
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
    ends = draw_text(0, PLOT_HEIGHT + 18, f"{windows[0].start:%Y-%m-%d}", "tick start") + draw_text(
        PLOT_WIDTH, PLOT_HEIGHT + 18, f"{windows[-1].end:%Y-%m-%d}", "tick end"
    )
    scale = "".join(draw_text(-8, height(value) + 4, f"{value:.2f}", "tick end") for value in marks)
    lines = line("brier", [window.brier for window in windows]) + line("bias", [window.bias for window in windows])
    values = "; ".join(
        f"{one.start:%Y-%m-%d}: Brier {one.brier:.3f}, bias {phrases.format_signed_number(one.bias)}" for one in windows
    )
    content = zero + scale + ends + lines
    return render_svg("trend", "Brier score and bias over time", values, content, size=(PLOT_WIDTH, PLOT_HEIGHT))


def _draw_bin(score_bin: CalibrationBin, side: int, max_count: int) -> str:
    x, y = score_bin.mean_forecast * side, side - score_bin.observed * side
    bottom, top = (side - end * side for end in score_bin.wilson95)
    radius = MIN_RADIUS + (MAX_RADIUS - MIN_RADIUS) * (score_bin.n / max_count) ** 0.5
    return (
        f'<path class="reach" d="M{x:.1f} {top:.1f}V{bottom:.1f}M{x - 4:.1f} {top:.1f}h8M{x - 4:.1f} {bottom:.1f}h8"/>'
        f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
        + draw_text((score_bin.low + 0.5 / BIN_COUNT) * side, COUNT_Y, f"{score_bin.n:,}", "count")
    )


def _draw_share_axis(height: int, label: str) -> str:
    """Draw the tick labels and the label of the x axis below a plot of the given height."""
    ticks = (draw_text(at * PLOT_WIDTH, height + 18, phrases.format_percent(at), "tick") for at in TICKS)
    return "".join(ticks) + draw_text(PLOT_WIDTH / 2, height + 38, label, "label")


def draw_text(x: float, y: float, text: str, kind: str) -> str:
    """Return an SVG text element at a position; `kind` are its CSS classes."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def render_svg(
    name: str,
    title: str,
    description: str,
    content: str,
    *,
    size: tuple[float, float],
    margins: tuple[int, int, int, int] = (TOP, RIGHT, BOTTOM, LEFT),
) -> str:
    """Return the SVG of a plot of the given width and height, with a title and a text for screen readers.

    `name` is the prefix of ids, unique in the page; `margins` are those at the top, right, bottom and left.
    """
    (width, height), (top, right, bottom, left) = size, margins
    return (
        f'<svg class="chart" viewBox="{-left} {-top} {left + width + right:.0f} {top + height + bottom:.0f}" role="img"'
        f' aria-labelledby="{name}-title {name}-values">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-values">{escape(description)}</desc>{content}</svg>'
    )


DAILY_WIDTH, DAILY_HEIGHT = 400, 130
MAX_SERIES = 8  # colours; the last one stands for all other series
SPARK_WIDTH, SPARK_HEIGHT = 240, 56
SPARK_MARGINS = (6, 6, 8, 44)  # at the top, right, bottom and left
BAR_HEIGHT = 10
OTHER_SERIES = "other"


def draw_days(name: str, title: str, counts: Mapping[str, Mapping[date, int]], days: Sequence[date]) -> str:
    """Return the SVG of a stacked bar for each day, with a legend. `counts` are the numbers by series and by day.

    The largest series have a colour each; the others are drawn as one series. `name` is the prefix of the ids.
    """
    series = _largest_series(counts)
    totals = [sum(one.get(day, 0) for one in series.values()) for day in days]
    highest = max(*totals, 1)
    width = DAILY_WIDTH / len(days)
    bars = "".join(_draw_day(series, day, (at * width, width), highest) for at, day in enumerate(days))
    grid = "".join(
        f'<path class="grid" d="M0 {DAILY_HEIGHT * (1 - share):.0f}H{DAILY_WIDTH}"/>'
        + draw_text(-8, DAILY_HEIGHT * (1 - share) + 4, f"{highest * share:,.0f}", "tick end")
        for share in (0.0, 1.0)
    )
    ends = draw_text(0, DAILY_HEIGHT + 18, f"{days[0]:%Y-%m-%d}", "tick start") + draw_text(
        DAILY_WIDTH, DAILY_HEIGHT + 18, f"{days[-1]:%Y-%m-%d}", "tick end"
    )
    values = "; ".join(f"{key}: {sum(one.values()):,}" for key, one in series.items())
    chart = render_svg(name, title, values or "no data", grid + bars + ends, size=(DAILY_WIDTH, DAILY_HEIGHT))
    return f"<figure>{chart}{_render_legend(series)}</figure>"


def list_days(first: date, last: date) -> list[date]:
    """Return all days from `first` to `last`."""
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def draw_metric(
    name: str,
    title: str,
    values: Sequence[float | None],
    target: tuple[float | None, float | None],
    *,
    format_tick: Callable[[float], str],
) -> str:
    """Return the SVG of a metric over time: a line over the band of its `target` range (above, below).

    `values` are those of consecutive points, None where unknown. `format_tick` formats the labels.
    """
    known = [value for value in values if value is not None]
    bounds = [value for value in target if value is not None]
    highest = 1.1 * max([*known, *bounds], default=1.0) or 1.0

    def height(value: float) -> float:
        return SPARK_HEIGHT * (1 - value / highest)

    distance = SPARK_WIDTH / max(len(values) - 1, 1)  # between two points
    points = [(at * distance, height(value)) for at, value in enumerate(values) if value is not None]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle class="value" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points)
    above, below = target
    top, bottom = height(highest if below is None else below), height(above or 0.0)
    band = f'<rect class="target" x="0" y="{top:.1f}" width="{SPARK_WIDTH}" height="{bottom - top:.1f}"/>'
    axis = f'<path class="grid" d="M0 {SPARK_HEIGHT}H{SPARK_WIDTH}"/>'
    ticks = "".join(draw_text(-6, height(value) + 4, format_tick(value), "tick end") for value in (0.0, *bounds))
    content = f'{band}{axis}{ticks}<polyline class="value" points="{line}"/>{dots}'
    size = (SPARK_WIDTH, SPARK_HEIGHT)
    return render_svg(name, title, _describe_values(known), content, size=size, margins=SPARK_MARGINS)


def draw_target_bar(value: float, target: tuple[float | None, float | None]) -> str:
    """Return the SVG of a bar for a metric that has one value, with a mark at the end of its target range."""
    bound = next(end for end in target if end is not None)
    return draw_share(100 * value / bound, 200, mark=100)


def draw_share(used: float, ceiling: float, *, mark: float | None = None) -> str:
    """Return the SVG of a bar that is filled to `used` of `ceiling`, with a line at `mark`, such as a target.

    The bar is hidden from screen readers, because the numbers stand beside it.
    """
    ceiling = max(ceiling, used, 1)
    filled = f'<rect class="bar" width="{100 * used / ceiling:.1f}" height="{BAR_HEIGHT}"/>'
    line = "" if mark is None else f'<path class="mark" d="M{100 * min(mark / ceiling, 1):.1f} 0v{BAR_HEIGHT}"/>'
    track = f'<rect class="track" width="100" height="{BAR_HEIGHT}"/>'
    box = f'viewBox="0 0 100 {BAR_HEIGHT}" preserveAspectRatio="none"'
    return f'<svg class="chart share" {box} aria-hidden="true">{track}{filled}{line}</svg>'


def _largest_series(counts: Mapping[str, Mapping[date, int]]) -> dict[str, dict[date, int]]:
    ordered = sorted(counts, key=lambda one: -sum(counts[one].values()))
    shown = ordered if len(ordered) <= MAX_SERIES else ordered[: MAX_SERIES - 1]
    series = {one: dict(counts[one]) for one in shown}
    for one in ordered[len(shown) :]:
        rest = series.setdefault(OTHER_SERIES, {})
        for day, number in counts[one].items():
            rest[day] = rest.get(day, 0) + number
    return series


def _draw_day(series: Mapping[str, Mapping[date, int]], day: date, column: tuple[float, float], highest: int) -> str:
    left, width = column
    gap = min(2.0, width / 4)
    bars, bottom = "", float(DAILY_HEIGHT)
    for number, (name, counts) in enumerate(series.items()):
        count = counts.get(day, 0)
        if count:
            height = DAILY_HEIGHT * count / highest
            bottom -= height
            bars += (
                f'<rect class="series-{number}" x="{left + gap / 2:.1f}" y="{bottom:.1f}" width="{width - gap:.1f}"'
                f' height="{height:.1f}"><title>{day:%Y-%m-%d} {escape(name)}: {count:,}</title></rect>'
            )
    return bars


def _render_legend(series: Mapping[str, Mapping[date, int]]) -> str:
    items = (
        f'<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="series-{number}" width="10" height="10"/></svg>'
        f"{escape(name.replace('_', ' ').lower())} {sum(counts.values()):,}</li>"
        for number, (name, counts) in enumerate(series.items())
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _describe_values(known: Sequence[float]) -> str:
    return f"from {known[0]:.3g} to {known[-1]:.3g}" if known else "no data"
