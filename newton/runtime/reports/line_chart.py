"""Charts of several series as lines, as inline SVG with a legend."""

from collections.abc import Mapping, Sequence
from html import escape

from newton.runtime.reports.phrases import format_percent
from newton.runtime.reports.svg import PLOT_WIDTH, draw_text, render_svg

PLOT_HEIGHT = 200
COLOURS = 8  # of `CHART_STYLE`; further series have them again with dashes
STEP = 0.2  # between two grid lines


def draw_lines(name: str, title: str, series: Mapping[str, Sequence[float]], labels: Sequence[str]) -> str:
    """Draw series of shares from 0 to 1, one value for each label. `name` is the prefix of the ids.

    The vertical axis begins at the grid line below the lowest value.
    """
    low = min(value for values in series.values() for value in values)
    low = STEP * int(low / STEP + 1e-9)
    across = [PLOT_WIDTH * number / max(len(labels) - 1, 1) for number in range(len(labels))]

    def height(value: float) -> float:
        return PLOT_HEIGHT * (1 - (value - low) / (1 - low)) if low < 1 else 0.0

    marks = [low + STEP * number for number in range(round((1 - low) / STEP) + 1)]
    grid = "".join(
        f'<path class="grid" d="M0 {height(at):.1f}H{PLOT_WIDTH}"/>'
        + draw_text(-8, height(at) + 4, format_percent(at), "tick end")
        for at in marks
    )
    ends = {0: " start", len(labels) - 1: " end"} if len(labels) > 1 else {}
    ticks = "".join(
        draw_text(x, PLOT_HEIGHT + 18, label, f"tick{ends.get(number, '')}")
        for number, (x, label) in enumerate(zip(across, labels, strict=True))
    )
    lines = "".join(
        f'<polyline style="{_stroke(number)}" points="'
        + " ".join(f"{x:.1f},{height(value):.1f}" for x, value in zip(across, values, strict=True))
        + f'"><title>{escape(title_)}</title></polyline>'
        for number, (title_, values) in enumerate(series.items())
    )
    values = "; ".join(f"{key}: {', '.join(f'{value:.3f}' for value in own)}" for key, own in series.items())
    chart = render_svg(name, title, values, grid + ticks + lines, size=(PLOT_WIDTH, PLOT_HEIGHT))
    caption = f"<figcaption>{escape(title)}</figcaption>{_render_legend(series)}"
    return f'<figure style="max-width: 40rem">{chart}{caption}</figure>'


def _stroke(number: int) -> str:
    dashes = ";stroke-dasharray:5 3" if number >= COLOURS else ""
    return f"stroke:var(--series-{number % COLOURS}){dashes}"


def _render_legend(series: Mapping[str, Sequence[float]]) -> str:
    items = (
        '<li><svg class="chart" viewBox="0 0 10 10" aria-hidden="true" style="display:inline">'
        f'<path d="M0 5H10" style="{_stroke(number)};stroke-width:3"/></svg>{escape(title)}</li>'
        for number, title in enumerate(series)
    )
    return f'<ul class="legend">{"".join(items)}</ul>'
