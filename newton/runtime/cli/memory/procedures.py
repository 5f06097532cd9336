"""Commands `newton procedures`: list and show procedures, and record the outcomes of their uses."""

from typing import Annotated, Literal

from cyclopts import Parameter

from newton.heart.procedures import ProcedureVersion
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

ProcedureName = Annotated[str, Parameter(help="Name of the procedure.")]
Result = Literal["success", "failure", "neutral"]


async def list_procedures(
    *,
    versions: Annotated[bool, Parameter(negative=(), help="Also list earlier versions.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List the procedures (how something is done, in steps) with their track records.

    A track record is the success rate of the evaluated uses and its lower bound (Wilson score, 95 %).

    Example: newton procedures list
    """
    async with open_agent(load_settings(agent)) as newton:
        procedures = await newton.procedures("cli").list_procedures()
    if not versions:
        procedures = list({procedure.name: procedure for procedure in procedures}.values())
    if json:
        formatting.print_json([_procedure_to_json(procedure) for procedure in procedures])
        return
    for procedure in procedures:
        say(_format_procedure(procedure))


async def show_procedure(name: ProcedureName, *, agent: AgentOption = None) -> None:
    """Show the goals, steps and details of a procedure.

    Example: newton procedures show debugging
    """
    async with open_agent(load_settings(agent)) as newton:
        procedure = await newton.procedures("cli").get(name)
    say(_format_procedure(procedure))
    say("\n".join(f"  goal   {goal}" for goal in procedure.goals))
    say("\n".join(f"  {position:>4}.  {step}" for position, step in enumerate(procedure.core, 1)))
    if procedure.details.strip():
        say(f"\n{procedure.details.strip()}")


async def approve_procedure(name: ProcedureName, *, agent: AgentOption = None) -> None:
    """Approve a procedure that follows from what the agent did. It is in no context before.

    Example: newton procedures approve calling-files-write-file
    """
    async with open_agent(load_settings(agent)) as newton:
        is_approved = await newton.procedures("cli").approve(name)
    say(f"Approved {name}." if is_approved else f"{name} was not waiting for approval.")


async def dismiss_procedure(
    name: ProcedureName,
    *,
    reason: Annotated[str | None, Parameter(help="Why it is not wanted. The reason is recorded.")] = None,
    agent: AgentOption = None,
) -> None:
    """Dismiss a procedure that was proposed. It stays in the list as retired, and is not proposed again.

    Example: newton procedures dismiss calling-files-write-file --reason "the path was a mistake of mine"
    """
    async with open_agent(load_settings(agent)) as newton:
        is_dismissed = await newton.procedures("cli").dismiss(name, reason)
    say(f"Dismissed {name}." if is_dismissed else f"{name} was not waiting for approval.")


async def record_use(
    name: ProcedureName,
    *,
    result: Annotated[Result | None, Parameter(help="Outcome, if known.")] = None,
    agent: AgentOption = None,
) -> None:
    """Record a use of a procedure and its outcome. From five uses on, the success rate decides the procedure's state.

    Example: newton procedures record-use debugging --result success
    """
    async with open_agent(load_settings(agent)) as newton:
        await newton.procedures("cli").record_use(name, result)
    say("One use of the procedure is recorded.")


async def record_outcome(
    name: ProcedureName, result: Annotated[Result, Parameter(help="Outcome of the use.")], *, agent: AgentOption = None
) -> None:
    """Record the outcome of the latest use of a procedure that has no outcome yet.

    Example: newton procedures record-outcome debugging failure
    """
    async with open_agent(load_settings(agent)) as newton:
        await newton.procedures("cli").record_outcome(name, result)
    say("Outcome recorded.")


def _format_procedure(procedure: ProcedureVersion) -> str:
    record, uses = "no record", procedure.successes + procedure.failures
    if uses:
        record = f"{procedure.effectiveness:.0%} of {uses} succeeded, lower bound {procedure.lower_bound:.0%}"
    waiting = ", proposed" if procedure.is_proposed else ""
    name = f"{procedure.name} v{procedure.version} ({procedure.domain}{waiting})"
    return f"{short_id(procedure.memory_id)}  {procedure.state:<11} {name} · {record}\n{'':10}{procedure.description}"


def _procedure_to_json(procedure: ProcedureVersion) -> dict[str, object]:
    return {
        "memory_id": str(procedure.memory_id),
        "name": procedure.name,
        "version": procedure.version,
        "state": procedure.state,
        "proposed": procedure.is_proposed,
        "domain": procedure.domain,
        "description": procedure.description,
        "activations": procedure.activations,
        "successes": procedure.successes,
        "failures": procedure.failures,
        "success_rate": procedure.effectiveness,
        "success_rate_lower_bound": procedure.lower_bound,
    }
