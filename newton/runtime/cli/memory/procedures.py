"""`newton procedures`: how things are done, and how well that went."""

from typing import Annotated, Literal

from cyclopts import Parameter

from newton.heart.procedures import ProcedureVersion
from newton.memory.lookup import short_id
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say

ProcedureName = Annotated[str, Parameter(help="The procedure's name.")]


async def list_procedures(
    *,
    versions: Annotated[bool, Parameter(negative=(), help="Also the versions before the last.")] = False,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List the procedures with their records.

    A record is the share of successes among the judged uses, and what so few leave certain (Wilson's bound, 95 %).

    Example: newton procedures list
    """
    async with open_newton(load_settings(agent)) as newton:
        known = await newton.procedures("cli").list_procedures()
    last = {procedure.name: procedure for procedure in known}
    listed = known if versions else list(last.values())
    if json:
        formatting.print_json([_procedure_to_json(procedure) for procedure in listed])
        return
    for procedure in listed:
        say(_format_procedure(procedure))


async def show_procedure(name: ProcedureName, *, agent: AgentOption = None) -> None:
    """Show a procedure with its three bands: goals, steps, details.

    Example: newton procedures show debugging
    """
    async with open_newton(load_settings(agent)) as newton:
        procedure = await newton.procedures("cli").get(name)
    say(_format_procedure(procedure))
    say("\n".join(f"  goal   {goal}" for goal in procedure.goals))
    say("\n".join(f"  {place:>4}.  {step}" for place, step in enumerate(procedure.core, 1)))
    if procedure.details.strip():
        say(f"\n{procedure.details.strip()}")


async def record_use(
    name: ProcedureName,
    *,
    result: Annotated[Literal["success", "failure", "neutral"] | None, Parameter(help="How it went, if known.")] = None,
    agent: AgentOption = None,
) -> None:
    """Say that a procedure was followed, and how it went. After five uses its record decides how it is offered.

    Example: newton procedures record-use debugging --result success
    """
    async with open_newton(load_settings(agent)) as newton:
        await newton.procedures("cli").record_use(name, result)
    say("Noted.")


async def record_outcome(
    name: ProcedureName, result: Literal["success", "failure", "neutral"], *, agent: AgentOption = None
) -> None:
    """Say how the last use of a procedure went that was not judged yet.

    Example: newton procedures record-outcome debugging failure
    """
    async with open_newton(load_settings(agent)) as newton:
        await newton.procedures("cli").record_outcome(name, result)
    say("Noted.")


def _format_procedure(procedure: ProcedureVersion) -> str:
    trials = procedure.successes + procedure.failures
    record = (
        f"{procedure.effectiveness:.0%} of {trials}, at least {procedure.lower_bound:.0%}" if trials else "no record"
    )
    name = f"{procedure.name} v{procedure.version} ({procedure.domain})"
    head = f"{short_id(procedure.memory_id)}  {procedure.state:<11} {name} · {record}"
    return f"{head}\n          {procedure.description}"


def _procedure_to_json(procedure: ProcedureVersion) -> dict[str, object]:
    return {
        "memory_id": str(procedure.memory_id),
        "name": procedure.name,
        "version": procedure.version,
        "state": procedure.state,
        "domain": procedure.domain,
        "description": procedure.description,
        "activations": procedure.activations,
        "successes": procedure.successes,
        "failures": procedure.failures,
        "effectiveness": procedure.effectiveness,
        "assured": procedure.lower_bound,
    }
