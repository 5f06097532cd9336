"""Command `newton calibration`: comparison of the confidence stated in decisions with their outcomes."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.brain.calibration.filters import filter_decisions
from newton.brain.calibration.json_format import to_json
from newton.brain.calibration.report import build_calibration
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, StartTime, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.cli.private_files import write_page
from newton.runtime.reports import calibration_text, html_page
from newton.runtime.reports import relevance as relevance_report
from newton.settings import Settings


async def show_calibration(
    *,
    category: Annotated[str | None, Parameter(help="Only decisions of this category.")] = None,
    since: Annotated[
        datetime | None,
        StartTime,
        Parameter(help="Only decisions made since this day or time, or words such as 'last month'."),
    ] = None,
    relevance: Annotated[
        bool, Parameter(help="Compare the probability of memories to answer with what replies used instead.")
    ] = False,
    html: Annotated[Path | None, Parameter(help="Write an HTML page with plots to this file.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Compare the confidence stated in decisions with their outcomes.

    The report has the Brier score, reliability, bias, trend and a correction of stated confidence. Only reviewed
    decisions are counted.

    Example: newton calibration --since 2026-01-01 --html calibration.html
    """
    settings = load_settings(agent)
    if relevance:
        await _show_relevance(settings, html, json=json)
        return
    async with open_agent(settings) as newton:
        reviewed = await newton.decisions("cli").list_reviewed_decisions()
    report = build_calibration(filter_decisions(reviewed, category=category, since=since))
    if html is not None:
        write_page(html, html_page.render_calibration(report, agent=settings.agent))
    if json:
        formatting.print_json(to_json(report))
    elif html is None:
        say(calibration_text.render_calibration(report))


async def _show_relevance(settings: Settings, html: Path | None, *, json: bool) -> None:
    async with open_agent(settings) as newton:
        report = await newton.relevance_fitter().report()
    if html is not None:
        title, sections = f"Relevance of {settings.agent}", relevance_report.render_sections(report)
        write_page(html, html_page.render_document(title, sections))
    if json:
        formatting.print_json(relevance_report.report_to_json(report))
    elif html is None:
        say(relevance_report.render_report(report))
