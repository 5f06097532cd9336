"""Command `newton growth`: report on how the agent developed, compared with the period before."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.agent.growth.rules import assess
from newton.errors import InputError
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, StartTime, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.cli.private_files import write_page
from newton.runtime.reports import growth as growth_report


async def report_growth(
    *,
    weeks: Annotated[int | None, Parameter(help="Length of the period in weeks (default: 1).")] = None,
    since: Annotated[
        datetime | None,
        StartTime,
        Parameter(help="Start of the period, instead of --weeks: a day, a time or words such as 'last month'."),
    ] = None,
    html: Annotated[Path | None, Parameter(help="Write the report as an HTML page to this file.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Report how the agent developed: decisions, repeated mistakes, prohibitions, procedures, facts.

    Each metric is shown with its value in the period before and its sample size.

    Example: newton growth --weeks 4 --html growth.html
    """
    if weeks is not None and since is not None:
        raise InputError("--weeks and --since exclude each other.", hint="Give --weeks or --since.")
    settings = load_settings(agent)
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
