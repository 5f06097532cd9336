"""The report of `newton calibration`: the confidence stated in decisions, compared with their outcomes."""

from datetime import datetime
from pathlib import Path

from newton.brain.calibration.filters import filter_decisions
from newton.brain.calibration.json_format import to_json
from newton.brain.calibration.report import build_calibration
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.printing import say
from newton.runtime.cli.private_files import write_page
from newton.runtime.reports import calibration_text, html_page
from newton.runtime.reports import relevance as relevance_report
from newton.settings import Settings


async def print_calibration(
    settings: Settings, html: Path | None, *, json: bool, category: str | None, since: datetime | None
) -> None:
    """Print the calibration of an agent, or write it as an HTML page."""
    async with open_agent(settings) as newton:
        reviewed = await newton.decisions("cli").list_reviewed_decisions()
    report = build_calibration(filter_decisions(reviewed, category=category, since=since))
    if html is not None:
        write_page(html, html_page.render_calibration(report, agent=settings.agent))
    if json:
        formatting.print_json(to_json(report))
    elif html is None:
        say(calibration_text.render_calibration(report))


async def print_relevance(settings: Settings, html: Path | None, *, json: bool) -> None:
    """Print how well the relevance of memories agrees with their use in replies, or write it as an HTML page."""
    async with open_agent(settings) as newton:
        report = await newton.relevance_fitter().report()
    if html is not None:
        title, sections = f"Relevance of {settings.agent}", relevance_report.render_sections(report)
        write_page(html, html_page.render_document(title, sections))
    if json:
        formatting.print_json(relevance_report.report_to_json(report))
    elif html is None:
        say(relevance_report.render_report(report))
