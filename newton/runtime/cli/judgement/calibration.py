"""`newton calibration`: how far the stated confidence can be trusted."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.brain.calibration.filters import filter_decisions
from newton.brain.calibration.json_format import to_json
from newton.brain.calibration.report import build_calibration as computed
from newton.brain.draft import ReviewedDecision
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, StartTime, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.reports import calibration_text, html_page
from newton.settings import Settings


async def show_calibration(
    *,
    category: Annotated[str | None, Parameter(help="Only decisions of this category.")] = None,
    since: Annotated[
        datetime | None,
        StartTime,
        Parameter(help="Only decisions made from then on: a day, or words such as 'last month'."),
    ] = None,
    html: Annotated[Path | None, Parameter(help="Write a page with plots to this file.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show how far the stated confidence can be trusted: Brier score, reliability, bias, trend, correction.

    Computed from decisions whose outcome is known, and from nothing else.

    Example: newton calibration --since 2026-01-01 --html calibration.html
    """
    chosen, start = load_settings(agent), since
    whole = computed(filter_decisions(await _list_reviewed_decisions(chosen), category=category, since=start))
    if html is not None:
        formatting.write_page(html, html_page.render_calibration(whole, agent=chosen.agent))
    if json:
        formatting.print_json(to_json(whole))
    elif html is None:
        say(calibration_text.render_calibration(whole))


async def _list_reviewed_decisions(chosen: Settings) -> Sequence[ReviewedDecision]:
    """Every decision of the agent whose outcome is known."""
    async with open_newton(chosen) as newton:
        return await newton.decisions("cli").list_reviewed_decisions()
