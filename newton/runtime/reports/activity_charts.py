"""Charts of the dashboard: stacked bars by day, a metric over time with its target range, and bars of shares."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from html import escape

from newton.runtime.reports.charts import draw_text, render_svg

PLOT_WIDTH, PLOT_HEIGHT = 400, 130
MAX_SERIES = 8  # colours; the last one stands for all other series
SPARK_WIDTH, SPARK_HEIGHT = 240, 56
SPARK_MARGINS = (6, 6, 8, 44)  # at the top, right, bottom and left
BAR_HEIGHT = 10
OTHER_SERIES = "other"


def draw_days(name: str, title: str, counts: Mapping[str, Mapping[date, int]], days: Sequence[date]) -> str:
    """Draw a stacked bar for each day, with a legend. `counts` are the numbers by series and by day.

    The largest series have a colour each; the others are drawn as one series. `name` is the prefix of the ids.
    """
    series = _largest_series(counts)
    totals = [sum(one.get(day, 0) for one in series.values()) for day in days]
    highest = max(*totals, 1)
    width = PLOT_WIDTH / len(days)
    bars = "".join(_draw_day(series, day, (at * width, width), highest) for at, day in enumerate(days))
    grid = "".join(
        f'<path class="grid" d="M0 {PLOT_HEIGHT * (1 - share):.0f}H{PLOT_WIDTH}"/>'
        + draw_text(-8, PLOT_HEIGHT * (1 - share) + 4, f"{highest * share:,.0f}", "tick end")
        for share in (0.0, 1.0)
    )
    ends = draw_text(0, PLOT_HEIGHT + 18, f"{days[0]:%Y-%m-%d}", "tick start") + draw_text(
        PLOT_WIDTH, PLOT_HEIGHT + 18, f"{days[-1]:%Y-%m-%d}", "tick end"
    )
    values = "; ".join(f"{key}: {sum(one.values()):,}" for key, one in series.items())
    chart = render_svg(name, title, values or "no data", grid + bars + ends, size=(PLOT_WIDTH, PLOT_HEIGHT))
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
    """Draw a metric over time as a line, above its target range (above, below), whose ends are labelled."""
    known = [value for value in values if value is not None]
    bounds = [value for value in target if value is not None]
    highest = 1.1 * max([*known, *bounds], default=1.0) or 1.0

    def height(value: float) -> float:
        return SPARK_HEIGHT * (1 - value / highest)

    step = SPARK_WIDTH / max(len(values) - 1, 1)
    points = [(at * step, height(value)) for at, value in enumerate(values) if value is not None]
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
    """Draw a bar for a metric that has one value, with a mark at the end of its target range."""
    bound = next(end for end in target if end is not None)
    return draw_share(100 * value / bound, 200, mark=100)


def draw_share(used: float, ceiling: float, *, mark: float | None = None) -> str:
    """Draw a bar that is filled to `used` of `ceiling`, with a mark, such as the share of a layer.

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
    bars, bottom = "", float(PLOT_HEIGHT)
    for number, (name, counts) in enumerate(series.items()):
        count = counts.get(day, 0)
        if count:
            height = PLOT_HEIGHT * count / highest
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
