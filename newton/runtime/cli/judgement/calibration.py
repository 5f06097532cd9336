"""The command `newton calibration`: the confidence stated in decisions, compared with their outcomes."""

from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from newton.brain.calibration.filters import filter_decisions
from newton.brain.calibration.json_format import to_json as calibration_to_json
from newton.brain.calibration.report import build_calibration
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, StartTime, load_settings
from newton.runtime.cli.printing import say, to_json
from newton.runtime.reports import calibration_text
from newton.runtime.reports import relevance as relevance_report


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
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Compare the confidence stated in decisions with their outcomes.

    The report has the Brier score, reliability, bias, trend and a correction of stated confidence. Only reviewed
    decisions are counted.

    Example: newton calibration --since 2026-01-01
    """
    async with open_agent(load_settings(agent)) as newton:
        if relevance:
            used = await newton.relevance_fitter().report()
            shown = to_json(relevance_report.report_to_json(used)) if json else relevance_report.render_report(used)
        else:
            reviewed = await newton.decisions("cli").list_reviewed_decisions()
            report = build_calibration(filter_decisions(reviewed, category=category, since=since))
            shown = to_json(calibration_to_json(report)) if json else calibration_text.render_calibration(report)
    say(shown)
