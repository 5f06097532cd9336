"""The report of `newton growth`: how the agent developed, compared with the period before."""

from datetime import datetime
from pathlib import Path

from newton.agent.growth.rules import assess
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.printing import say
from newton.runtime.cli.private_files import write_page
from newton.runtime.reports import growth as growth_report
from newton.settings import Settings


async def print_growth(
    settings: Settings, html: Path | None, *, json: bool, weeks: int | None, since: datetime | None
) -> None:
    """Print how an agent developed since a time, or in the last `weeks`; or write it as an HTML page."""
    async with open_agent(settings) as newton:
        service = newton.growth()
        if since is None:
            report = await service.report_weeks(1 if weeks is None else weeks)
        else:
            report = await service.report_since(since)
    assessment = assess(report)
    if html is not None:
        write_page(html, growth_report.render_html(report, assessment, agent=settings.agent))
    if json:
        formatting.print_json(growth_report.report_to_json(report, assessment))
    elif html is None:
        say(growth_report.render_markdown(report, assessment, agent=settings.agent))
