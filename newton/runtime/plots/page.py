"""A calibration as one HTML file that needs nothing else, and the parts of such a page. Pure.

No script, no font, no connection.
"""

from collections.abc import Iterable, Sequence
from html import escape

from newton.brain.calibration.report import UNNAMED, Calibration, Group
from newton.brain.calibration.trend import Trend
from newton.runtime.plots import svg, words

STYLE = """
:root { color-scheme: light dark; --page: #fbfbf9; --ink: #1d2228; --soft: #5b6570; --line: #d9dcdf;
  --main: #1f5fa8; --other: #b3480e; --card: #ffffff }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --ink: #e6e8ea; --soft: #a0a9b2; --line: #343a41;
  --main: #7db4f2; --other: #f0a26b; --card: #1b1f24 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 3rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 0 0 .25rem } h2 { font-size: 1.05rem; margin: 0 0 .5rem }
p { margin: .25rem 0 .75rem } .soft, figcaption { color: var(--soft); font-size: .875rem }
.cards { columns: 2 26rem; column-gap: 1rem; margin-top: 1rem }
section { break-inside: avoid; margin-bottom: 1rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; padding: 1rem; min-width: 0 }
.scroll { overflow-x: auto } figure { margin: 0 } svg { width: 100%; height: auto; display: block }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .5rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top } tr:last-child > * { border-bottom: 0 }
th { font-weight: 600 } td.number, th.number { text-align: right; white-space: nowrap }
td:first-child { overflow-wrap: break-word; max-width: 14rem }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; text-anchor: middle }
svg .end { text-anchor: end } svg .start { text-anchor: start } svg .label { font-size: 13px }
svg .count { font-size: 11px } svg .grid { stroke: var(--line); fill: none } svg .axis { stroke: var(--soft) }
svg .ideal { stroke: var(--soft); stroke-dasharray: 5 5 } svg .reach { stroke: var(--main); fill: none;
  stroke-width: 1.5 } svg .dot, svg .bar, svg circle.brier { fill: var(--main) }
svg polyline { fill: none; stroke-width: 2 } svg polyline.brier { stroke: var(--main) }
svg polyline.bias { stroke: var(--other); stroke-dasharray: 6 3 } svg circle.bias { fill: var(--other) }
ul { margin: .25rem 0; padding-left: 1.1rem } li { margin-bottom: .35rem; overflow-wrap: anywhere }
code { font-size: .85em } .scroll + p { margin-top: .75rem }
.brier-key { color: var(--main) } .bias-key { color: var(--other) }
"""
TITLES = {"category": "Categories", "stakes": "Stakes", "frame": "Frames", "reason": "Kinds of reason"}


def calibration(whole: Calibration, *, of: str) -> str:
    """The page about the agent `of`."""
    inside = f"<p>{escape(words.NOTHING)}</p>" if whole.scores is None else _sections(whole)
    return document(f"Calibration of {of}", inside)


def document(title: str, inside: str) -> str:
    """A whole page around what is markup already."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{inside}</main></body></html>\n"
    )


def _sections(whole: Calibration) -> str:
    if whole.scores is None or whole.bias is None:
        return ""
    cards = [
        card("Reliability", _figure(svg.reliability(whole.scores.bins), "Each dot is a bin, its bar Wilson's 95 % "
              "interval, its number how many decisions. On the broken line, what is stated comes true.")),
        card("Figures", table(("", "", ""), words.figures(whole.scores), numbers={1})),
        card("Sharpness", _figure(svg.sharpness(whole.scores.bins), "How often each confidence was stated.")),
        card("Trend", _trend(whole)),
        *(card(TITLES[name], _groups(groups)) for name, groups in whole.groups.items() if _telling(groups)),
        card("Correction", _correction(whole)),
    ]  # fmt: skip
    head = f"<p>{escape(words.judged(whole.scores))} Bias {escape(words.bias(whole.bias))}.</p>"
    return f'{head}<div class="cards">{"".join(cards)}</div>'


def card(title: str, inside: str) -> str:
    """A part of a page under its own title; the inside is markup already."""
    return f"<section><h2>{escape(title)}</h2>{inside}</section>"


def _figure(drawing: str, caption: str) -> str:
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def _trend(whole: Calibration) -> str:
    if whole.trend is None:
        return f"<p>{escape(words.trendless(whole.n))}</p>"
    drift = whole.trend.drift and words.drift(whole.trend.drift)
    return lines(whole.trend) + (f"<p><strong>{escape(drift)}</strong></p>" if drift else "")


def lines(of: Trend) -> str:
    """Brier score and bias over time, with their slopes."""
    return (
        f"<figure>{svg.trend(of.windows)}<figcaption>"
        f'<span class="brier-key">━ Brier</span> {escape(words.slope(of.brier))}<br>'
        f'<span class="bias-key">╍ bias</span> {escape(words.slope(of.bias))}'
        "</figcaption></figure>"
    )


def _telling(groups: Sequence[Group]) -> bool:
    return any(group.name != UNNAMED for group in groups)


def _groups(groups: Sequence[Group]) -> str:
    rows = [
        (
            words.named(group.name, most=80),
            f"{group.n:,}",
            words.percent(group.base_rate),
            f"{group.brier:.3f}",
            words.signed(group.bias.size),
            group.bias.verdict,
        )
        for group in groups
    ]
    return table(("", "n", "came true", "Brier", "bias", ""), rows, numbers={1, 2, 3, 4})


def _correction(whole: Calibration) -> str:
    told = f"<p>{escape(words.recalibration(whole))}</p>"
    if whole.recalibration is None or whole.recalibration.method == "none":
        return told
    rows = words.corrections(whole.recalibration)
    shown = table(("stated", "came true of such"), rows, numbers={0, 1})
    return f'{told}{shown}<p class="soft">Shown beside what was stated, never in its place.</p>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: set[int]) -> str:
    """Cells are text; those in the columns of `numbers` stand to the right."""

    def cells(row: Sequence[str], tag: str) -> str:
        kinds = (' class="number"' if place in numbers else "" for place in range(len(row)))
        return "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(row, kinds, strict=True))

    top = f"<thead><tr>{cells(head, 'th')}</tr></thead>" if any(head) else ""
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f'<div class="scroll"><table>{top}<tbody>{body}</tbody></table></div>'
