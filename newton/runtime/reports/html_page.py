"""Calibration report as one self-contained HTML file without scripts, and the parts of such a page. Pure."""

from collections.abc import Iterable, Sequence
from html import escape

from newton.brain.calibration.report import UNNAMED, CalibrationGroup, CalibrationReport
from newton.brain.calibration.trend import CalibrationTrend
from newton.runtime.reports import phrases, svg

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
SECTION_TITLES = {"category": "Categories", "stakes": "Stakes", "frame": "Frames", "reason": "Kinds of reason"}


def render_calibration(report: CalibrationReport, *, agent: str) -> str:
    """Return the calibration page of `agent`."""
    inside = f"<p>{escape(phrases.NO_REVIEWED_DECISIONS)}</p>" if report.scores is None else _render_sections(report)
    return render_document(f"Calibration of {agent}", inside)


def render_document(title: str, content: str) -> str:
    """Return an HTML page; `content` is markup."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{content}</main></body></html>\n"
    )


def _render_sections(report: CalibrationReport) -> str:
    if report.scores is None or report.bias is None:
        return ""
    cards = [
        render_card("Reliability", _render_figure(svg.draw_reliability(report.scores.bins), "Each dot is a bin, "
            "its bar Wilson's 95 % "
              "interval, its number how many decisions. On the broken line, what is stated comes true.")),
        render_card("Figures", render_table(("", "", ""), phrases.list_scores(report.scores), numeric_columns={1})),
        render_card("Sharpness", _render_figure(svg.draw_sharpness(report.scores.bins), ("How often each "
            "confidence was stated."))),
        render_card("Trend", _render_trend_section(report)),
        *(
            render_card(SECTION_TITLES[name], _render_groups(groups))
            for name, groups in report.groups.items()
            if _has_named_groups(groups)
        ),
        render_card("Correction", _render_correction(report)),
    ]  # fmt: skip
    head = f"<p>{escape(phrases.describe_sample(report.scores))} Bias {escape(phrases.describe_bias(report.bias))}.</p>"
    return f'{head}<div class="cards">{"".join(cards)}</div>'


def render_card(title: str, content: str) -> str:
    """Return a titled section; `content` is markup."""
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def _render_figure(drawing: str, caption: str) -> str:
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def _render_trend_section(report: CalibrationReport) -> str:
    if report.trend is None:
        return f"<p>{escape(phrases.describe_missing_trend(report.n))}</p>"
    drift = report.trend.drift and phrases.describe_drift(report.trend.drift)
    return render_trend(report.trend) + (f"<p><strong>{escape(drift)}</strong></p>" if drift else "")


def render_trend(trend: CalibrationTrend) -> str:
    """Brier score and bias over time, with their slopes."""
    return (
        f"<figure>{svg.draw_trend(trend.windows)}<figcaption>"
        f'<span class="brier-key">━ Brier</span> {escape(phrases.describe_slope(trend.brier))}<br>'
        f'<span class="bias-key">╍ bias</span> {escape(phrases.describe_slope(trend.bias))}'
        "</figcaption></figure>"
    )


def _has_named_groups(groups: Sequence[CalibrationGroup]) -> bool:
    return any(group.name != UNNAMED for group in groups)


def _render_groups(groups: Sequence[CalibrationGroup]) -> str:
    rows = [
        (
            phrases.clip_name(group.name, max_chars=80),
            f"{group.n:,}",
            phrases.format_percent(group.base_rate),
            f"{group.brier:.3f}",
            phrases.format_signed_number(group.bias.size),
            group.bias.verdict,
        )
        for group in groups
    ]
    return render_table(("", "n", "came true", "Brier", "bias", ""), rows, numeric_columns={1, 2, 3, 4})


def _render_correction(report: CalibrationReport) -> str:
    told = f"<p>{escape(phrases.describe_recalibration(report))}</p>"
    if report.recalibration is None or report.recalibration.method == "none":
        return told
    rows = phrases.list_corrections(report.recalibration)
    shown = render_table(("stated", "came true of such"), rows, numeric_columns={0, 1})
    return f'{told}{shown}<p class="soft">Shown beside what was stated, never in its place.</p>'


def render_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numeric_columns: set[int]) -> str:
    """Return a table of text cells; `numeric_columns` are right-aligned."""

    def cells(row: Sequence[str], tag: str) -> str:
        kinds = (' class="number"' if place in numeric_columns else "" for place in range(len(row)))
        return "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(row, kinds, strict=True))

    top = f"<thead><tr>{cells(head, 'th')}</tr></thead>" if any(head) else ""
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f'<div class="scroll"><table>{top}<tbody>{body}</tbody></table></div>'
