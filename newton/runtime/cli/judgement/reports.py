"""Commands `newton calibration` and `newton metrics`: reports as text, JSON or an HTML page.

The daemon renders a page, and this process writes the file. The other modules of a report are loaded without a daemon.
"""

from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.runtime.cli.daemon_requests import connect_daemon
from newton.runtime.cli.options import AgentOption, JsonOption, StartTime, load_settings
from newton.runtime.cli.printing import say, to_json
from newton.runtime.cli.private_files import write_page
from newton.settings import Settings

PageOption = Annotated[Path | None, Parameter("--html", help="Write the report as an HTML page to this file.")]


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
    path = "/v1/calibration/relevance" if relevance else "/v1/calibration"
    filters = {} if relevance else {"category": category, "since": since}
    if html is not None and await _write_page_of_daemon(settings, html, path, json=json, **filters):
        return
    module = import_module("newton.runtime.cli.judgement.calibration")
    if relevance:
        await module.print_relevance(settings, html, json=json)
    else:
        await module.print_calibration(settings, html, json=json, category=category, since=since)


async def show_metrics(
    *,
    days: Annotated[int, Parameter(help="Length of the period in days.")] = 7,
    html: PageOption = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show quality metrics of the contexts: relevance, budget use, rebuilds, share of items used in replies, speed.

    Each metric is shown with its target and its sample size.

    Example: newton metrics --days 30 --html metrics.html
    """
    settings = load_settings(agent)
    if html is not None and await _write_page_of_daemon(settings, html, "/v1/metrics", json=json, days=days):
        return
    await import_module("newton.runtime.cli.judgement.metrics").print_metrics(settings, html, json=json, days=days)


async def _write_page_of_daemon(settings: Settings, file: Path, path: str, *, json: bool, **filters: object) -> bool:
    """Write the page of a report that the daemon renders and, if `json`, print the report.

    Return False if no daemon runs with these settings.
    """
    async with connect_daemon(settings) as daemon:
        if daemon is None:
            return False
        write_page(file, await daemon.get_page(path, **filters))
        if json:
            say(to_json(await daemon.get(path, **filters)))
        return True
