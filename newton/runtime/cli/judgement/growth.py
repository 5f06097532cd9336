"""`newton growth`: how the agent has grown, beside the period before."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.agent.growth.rules import assess
from newton.errors import InputError
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, StartTime, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.reports import growth as shown


async def report_growth(
    *,
    weeks: Annotated[int | None, Parameter(help="How many weeks; 1, if nothing is given.")] = None,
    since: Annotated[
        datetime | None, StartTime, Parameter(help="From then on instead: a day, or words such as 'last month'.")
    ] = None,
    html: Annotated[Path | None, Parameter(help="Write the report as a page to this file.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Report how the agent has grown: decisions and mistakes made again, censors, procedures, facts.

    Each figure stands beside the same figure of the period before, with what it is computed from.

    Example: newton growth --weeks 4 --html growth.html
    """
    if weeks is not None and since is not None:
        raise InputError("Both --weeks and --since are given.", hint="Give one of them.")
    chosen = load_settings(agent)
    async with open_newton(chosen) as newton:
        growing = newton.growth()
        found = await (
            growing.report_weeks(1 if weeks is None else weeks) if since is None else growing.report_since(since)
        )
    said = assess(found)
    if html is not None:
        formatting.write_page(html, shown.render_html(found, said, agent=chosen.agent))
    if json:
        formatting.print_json(shown.report_to_json(found, said))
    elif html is None:
        say(shown.render_markdown(found, said, agent=chosen.agent))
