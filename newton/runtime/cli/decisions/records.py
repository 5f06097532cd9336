"""Command `newton decisions verify`, which starts a verifier in the caller's folder."""

from typing import Annotated

from cyclopts import Parameter

from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_context import require_own_process
from newton.runtime.cli.options import AgentOption, load_settings
from newton.runtime.cli.printing import say


async def verify_decision(
    decision: Annotated[
        str, Parameter(help="Id of the decision, or the end of the id as `newton decisions list` prints it.")
    ],
    *,
    agent: AgentOption = None,
) -> None:
    """Run the program that is configured as the verifier of the decision's category, and record the outcome.

    Example: newton decisions verify 3f9c2a71
    """
    require_own_process()
    async with open_agent(load_settings(agent)) as newton:
        outcome = await newton.decisions("cli").run_verifier(decision)
    say(f"Reviewed: {outcome}." if outcome else "The verifier reports no outcome; the decision stays open.")
