"""`newton calibration`: how far the stated confidence can be trusted."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from newton.brain.calibration.narrowing import narrowed
from newton.brain.calibration.plain import plain
from newton.brain.calibration.report import calibration as computed
from newton.brain.choice import Judged
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, When, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened
from newton.runtime.plots import page, text
from newton.settings import Settings


async def calibration(
    *,
    category: Annotated[str | None, Parameter(help="Only decisions of this category.")] = None,
    since: Annotated[
        datetime | None, When, Parameter(help="Only decisions made from then on: a day, or words such as 'last month'.")
    ] = None,
    html: Annotated[Path | None, Parameter(help="Write a page with plots to this file.")] = None,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """Show how far the stated confidence can be trusted: Brier score, reliability, bias, trend, correction.

    Computed from decisions whose outcome is known, and from nothing else.

    Example: newton calibration --since 2026-01-01 --html calibration.html
    """
    chosen, start = settings(agent), since
    whole = computed(narrowed(await _judged(chosen), category=category, start=start))
    if html is not None:
        show.page(html, page.calibration(whole, of=chosen.agent))
    if json:
        show.as_json(plain(whole))
    elif html is None:
        say(text.calibration(whole))


async def _judged(chosen: Settings) -> Sequence[Judged]:
    """Every decision of the agent whose outcome is known."""
    async with opened(chosen) as newton:
        return await newton.deciding("cli").judged()
