"""The report on the probability of an answer as HTML."""

from html import escape

from newton.agent.maintenance.relevance_fitter import RelevanceReport
from newton.brain.calibration.scores import CalibrationScores
from newton.operations.decisions.relevance_text import NOTHING_JUDGED, describe_sample, list_scores
from newton.runtime.reports import charts, html_sections


def render_sections(report: RelevanceReport) -> str:
    """Return the report as HTML sections, without the page around them."""
    if report.shipped is None:
        return f"<p>{escape(NOTHING_JUDGED)}</p>"
    head = ("", "shipped", "corrected") if report.corrected else ("", "shipped")
    rows = [row[: len(head)] for row in list_scores(report)]
    table = html_sections.render_table(head, rows, numeric_columns={1, 2})
    parts = [("of the shipped model", report.shipped), ("with the correction", report.corrected)]
    figures = [
        f"<figure>{_draw_reliability(scores, n)}"
        f"<figcaption>Share of the items that replies used by probability {escape(which)}.</figcaption></figure>"
        for n, (which, scores) in enumerate(parts)
        if scores
    ]
    cards = [html_sections.render_card("Relevance", figure) for figure in figures]
    cards.append(html_sections.render_card("Scores of relevance", table))
    return f'<p>{escape(describe_sample(report))}</p><div class="cards">{"".join(cards)}</div>'


def _draw_reliability(scores: CalibrationScores, number: int) -> str:
    name = f"relevance-{number}"
    return charts.draw_reliability(scores.bins, name=name, x_label="probability", y_label="share used by replies")
