"""The page of the calibration: how well the stated confidence of decisions matches their outcomes."""

from markupsafe import Markup
from starlette.responses import Response

from newton.brain.calibration.report import build_calibration, filter_decisions
from newton.operations.decisions import calibration_phrases as phrases
from newton.runtime.api.base_models import ORIGIN
from newton.runtime.dashboard.page_request import PageRequest, PageTable
from newton.runtime.reports import html_sections
from newton.runtime.reports import relevance as relevance_report


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
        relevance=Markup(relevance_report.render_sections(await caller.newton.relevance_fitter().report())),
        advice=phrases.advise_on_calibration(report),
        categories=sorted({one.category for one in reviewed}),
        category=category,
    )


ROUTES: PageTable = (("GET", "/dashboard/calibration", show_calibration),)
