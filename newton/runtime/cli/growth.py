"""`newton growth`: how the agent has grown, beside the period before."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.agent.appraising import appraised
from newton.errors import InputError
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, When, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened
from newton.runtime.plots import growth as shown


async def growth(
    *,
    weeks: Annotated[int | None, Parameter(help="How many weeks; 1, if nothing is given.")] = None,
    since: Annotated[
        datetime | None, When, Parameter(help="From then on instead: a day, or words such as 'last month'.")
    ] = None,
    html: Annotated[Path | None, Parameter(help="Write the report as a page to this file.")] = None,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Report how the agent has grown: decisions and mistakes made again, censors, procedures, facts.

    Each figure stands beside the same figure of the period before, with what it is computed from.

    Example: newton growth --weeks 4 --html growth.html
    """
    if weeks is not None and since is not None:
        raise InputError("Both --weeks and --since are given.", hint="Give one of them.")
    chosen = settings(agent)
    async with opened(chosen) as newton:
        growing = newton.growing()
        found = await (growing.weekly(1 if weeks is None else weeks) if since is None else growing.since(since))
    said = appraised(found)
    if html is not None:
        show.page(html, shown.html(found, said, of=chosen.agent))
    if json:
        show.as_json(shown.plain(found, said))
    elif html is None:
        say(shown.markdown(found, said, of=chosen.agent))
