"""The calibration report as sections of a page of the dashboard, and functions that build such sections."""

from collections.abc import Iterable, Sequence
from html import escape

from newton.brain.calibration.report import CalibrationGroup, CalibrationReport, CalibrationTrend
from newton.operations.decisions import calibration_phrases as phrases
from newton.runtime.reports import charts


def render_calibration_sections(report: CalibrationReport) -> str:
    """Return the sections of the calibration report as HTML, without the page around them."""
    if report.scores is None or report.bias is None:
        return f"<p>{escape(phrases.NO_REVIEWED_DECISIONS)}</p>"
    bins = report.scores.bins
    reliability = _render_figure(
        charts.draw_reliability(bins),
        "Observed success rate by stated confidence, in bins of 10 percentage points with n decisions each; the bars"
        " are Wilson 95 % intervals. On the dashed line, the calibration is perfect.",
    )
    sharpness = _render_figure(charts.draw_sharpness(bins), "Number of reviewed decisions by stated confidence.")
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
    """Return the HTML of a plot of Brier score and bias over time, or of a note that `n` reviews are too few for it."""
    if trend is None:
        return f"<p>{escape(phrases.describe_missing_trend(n))}</p>"
    return (
        f"<figure>{charts.draw_trend(trend.windows)}<figcaption>"
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
