"""The page of the calibration: how well the confidence of decisions, and relevance, match what came of them."""

from html import escape

from markupsafe import Markup
from starlette.responses import Response

from newton.agent.maintenance.relevance_fitter import RelevanceReport
from newton.brain.calibration.report import build_calibration, filter_decisions
from newton.brain.calibration.scores import CalibrationScores
from newton.operations.decisions import calibration_phrases as phrases
from newton.operations.decisions.relevance_text import NOTHING_JUDGED, describe_sample, list_scores
from newton.runtime.api.base_models import ORIGIN
from newton.runtime.dashboard.page_request import PageRequest, PageTable
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
        f"<figure>{_draw_reliability(scores, number)}"
        f"<figcaption>Share of the items that replies used by probability {escape(which)}.</figcaption></figure>"
        for number, (which, scores) in enumerate(parts)
        if scores
    ]
    cards = [html_sections.render_card("Relevance", figure) for figure in figures]
    cards.append(html_sections.render_card("Scores of relevance", table))
    return f'<p>{escape(describe_sample(report))}</p><div class="cards">{"".join(cards)}</div>'


def _draw_reliability(scores: CalibrationScores, number: int) -> str:
    name = f"relevance-{number}"
    return charts.draw_reliability(scores.bins, name=name, x_label="probability", y_label="share used by replies")


async def show_calibration(page: PageRequest) -> Response:
    """Show the reliability diagram, the scores, the trend, and what would improve the calibration."""
    caller = await page.get_caller()
    caller.require_scope("read")
    reviewed = await caller.newton.decisions(ORIGIN).list_reviewed_decisions()
    category = page.query("category")
    report = build_calibration(filter_decisions(reviewed, category=category or None, since=None))
    return page.render(
        "calibration.html",
        sections=Markup(html_sections.render_calibration_sections(report)),
        relevance=Markup(render_sections(await caller.newton.relevance_fitter().report())),
        advice=phrases.advise_on_calibration(report),
        categories=sorted({one.category for one in reviewed}),
        category=category,
    )


ROUTES: PageTable = (("GET", "/dashboard/calibration", show_calibration),)
