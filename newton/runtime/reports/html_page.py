"""The calibration report as an HTML page without scripts, and functions that build such pages."""

from collections.abc import Iterable, Sequence
from html import escape

from newton.brain.calibration.report import CalibrationGroup, CalibrationReport
from newton.brain.calibration.trend import CalibrationTrend
from newton.runtime.reports import phrases, svg
from newton.runtime.reports.chart_style import CHART_STYLE

STYLE = """
:root { color-scheme: light dark; --page: #fbfbf9; --ink: #1d2228; --soft: #5b6570; --line: #d9dcdf;
  --main: #1f5fa8; --other: #b3480e; --card: #ffffff }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --ink: #e6e8ea; --soft: #a0a9b2; --line: #343a41;
  --main: #7db4f2; --other: #f0a26b; --card: #1b1f24 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 3rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 0 0 .25rem } h2 { font-size: 1.05rem; margin: 0 0 .5rem }
p { margin: .25rem 0 .75rem; overflow-wrap: anywhere } .soft { color: var(--soft); font-size: .875rem }
.cards { columns: 2 26rem; column-gap: 1rem; margin-top: 1rem }
section { break-inside: avoid; margin-bottom: 1rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; padding: 1rem; min-width: 0 }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .5rem .25rem 0; text-align: left; border-bottom: 1px solid var(--line);
  vertical-align: top } tr:last-child > * { border-bottom: 0 }
th { font-weight: 600 } td.number, th.number { text-align: right } td.number { white-space: nowrap }
td:first-child { overflow-wrap: break-word; max-width: 14rem }
section > :last-child { margin-bottom: 0 }
ul { margin: .25rem 0; padding-left: 1.1rem } li { margin-bottom: .35rem; overflow-wrap: anywhere }
code { font-size: .85em } table + p { margin-top: .75rem } thead td { border-bottom: 1px solid var(--line) }
@media (max-width: 40rem) { .stack, .stack tbody, .stack tr, .stack td { display: block; width: 100% }
  .stack thead { position: absolute; left: -999rem }
  .stack tr { border-bottom: 1px solid var(--line); padding: .4rem 0 } .stack tr:last-child { border: 0 }
  .stack td, .stack td.number { border: 0; padding: .1rem 0; text-align: left; white-space: normal; max-width: none }
  .stack td:empty { display: none } .stack td { overflow-wrap: anywhere }
  .stack td[data-label]::before { content: attr(data-label) " "; color: var(--soft); margin-right: .3rem } }
"""


def render_calibration(report: CalibrationReport, *, agent: str) -> str:
    """Return the calibration report on the named agent as an HTML page."""
    return render_document(f"Calibration of {agent}", render_calibration_sections(report))


def render_document(title: str, content: str) -> str:
    """Return an HTML page with a title. `content` is HTML markup."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{CHART_STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{content}</main></body></html>\n"
    )


def render_calibration_sections(report: CalibrationReport) -> str:
    """Return the sections of the calibration report as HTML, without the page around them."""
    if report.scores is None or report.bias is None:
        return f"<p>{escape(phrases.NO_REVIEWED_DECISIONS)}</p>"
    bins = report.scores.bins
    reliability = _render_figure(
        svg.draw_reliability(bins),
        "Observed success rate by stated confidence, in bins of 10 percentage points with n decisions each; the bars"
        " are Wilson 95 % intervals. On the dashed line, the calibration is perfect.",
    )
    sharpness = _render_figure(svg.draw_sharpness(bins), "Number of reviewed decisions by stated confidence.")
    cards = [
        render_card("Reliability", reliability),
        render_card("Scores", render_table(("", "", ""), phrases.list_scores(report.scores), numeric_columns={1})),
        render_card("Sharpness", sharpness),
        render_card("Trend", _render_trend_section(report)),
        *(render_card(title, _render_groups(groups)) for title, groups in phrases.list_groups(report)),
        render_card("Correction", _render_correction(report)),
    ]
    bias = f"Bias (mean stated confidence minus success rate): {phrases.describe_bias(report.bias)}."
    head = f"<p>{escape(phrases.describe_sample(report.scores))} {escape(bias)}</p>"
    return f'{head}<div class="cards">{"".join(cards)}</div>'


def render_card(title: str, content: str) -> str:
    """Return an HTML section with a title. `content` is HTML markup."""
    return f'<section class="card"><h2>{escape(title)}</h2>{content}</section>'


def _render_figure(drawing: str, caption: str) -> str:
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def _render_trend_section(report: CalibrationReport) -> str:
    drift = phrases.describe_drift(report.trend.drift) if report.trend and report.trend.drift else None
    return render_trend(report.trend, report.n) + (f"<p><strong>{escape(drift)}</strong></p>" if drift else "")


def render_trend(trend: CalibrationTrend | None, n: int) -> str:
    """Return a plot of the Brier score and the bias over time; a note if `n` reviews are too few for a trend."""
    if trend is None:
        return f"<p>{escape(phrases.describe_missing_trend(n))}</p>"
    return (
        f"<figure>{svg.draw_trend(trend.windows)}<figcaption>"
        f'<span class="brier-key">━ Brier</span> {escape(phrases.describe_slope(trend.brier))}<br>'
        f'<span class="bias-key">╍ bias</span> {escape(phrases.describe_slope(trend.bias))}'
        "</figcaption></figure>"
    )


def _render_groups(groups: Sequence[CalibrationGroup]) -> str:
    rows = [
        (
            phrases.clip_name(group.name, max_chars=80),
            f"{group.n:,}",
            phrases.format_percent(group.base_rate),
            f"{group.brier:.3f}",
            phrases.format_signed_number(group.bias.size),
            phrases.describe_verdict(group.bias),
        )
        for group in groups
    ]
    return render_table(
        ("group", "n", "success rate", "Brier score", "bias", "at the 5 % level"), rows, numeric_columns={1, 2, 3, 4}
    )


def _render_correction(report: CalibrationReport) -> str:
    summary = f"<p>{escape(phrases.describe_recalibration(report))}</p>"
    if report.recalibration is None or report.recalibration.method == "none":
        return summary
    rows = phrases.list_corrections(report.recalibration)
    table = render_table(("stated", "corrected"), rows, numeric_columns={1})
    return f'{summary}{table}<p class="soft">The correction is shown beside the stated confidence.</p>'


def render_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numeric_columns: set[int]) -> str:
    """Return an HTML table of text cells. Columns with an index in `numeric_columns` are right-aligned.

    On a narrow screen each row becomes a block, in which every cell is preceded by the head of its column.
    """

    def render_cell(tag: str, attributes: str, text: str) -> str:
        return f"<{tag}{attributes}>{escape(text)}</{tag}>"

    classes = [' class="number"' if column in numeric_columns else "" for column in range(len(head))]
    labels = [f' data-label="{escape(name)}"' if name else "" for name in head]
    header = "".join(
        render_cell("th" if name else "td", f' scope="col"{kind}' if name else kind, name)
        for name, kind in zip(head, classes, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            render_cell("td", f"{kind}{label}", cell) for cell, kind, label in zip(row, classes, labels, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<table class="stack">{f"<thead><tr>{header}</tr></thead>" if any(head) else ""}<tbody>{body}</tbody></table>'
    )
