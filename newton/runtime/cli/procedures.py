"""`newton procedures`: how things are done, and how well that went."""

from typing import Annotated, Literal

from cyclopts import Parameter

from newton.heart.procedures import Listed
from newton.memory.lookup import short
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened

Name = Annotated[str, Parameter(help="The procedure's name.")]


async def list_(
    *,
    versions: Annotated[bool, Parameter(negative=(), help="Also the versions before the last.")] = False,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """List the procedures with their records.

    A record is the share of successes among the judged uses, and what so few leave certain (Wilson's bound, 95 %).

    Example: newton procedures list
    """
    async with opened(settings(agent)) as newton:
        known = await newton.practice("cli").listed()
    last = {procedure.name: procedure for procedure in known}
    listed = known if versions else list(last.values())
    if json:
        show.as_json([_plain(procedure) for procedure in listed])
        return
    for procedure in listed:
        say(_told(procedure))


async def show_(name: Name, *, agent: Agent = None) -> None:
    """Show a procedure with its three bands: goals, steps, details.

    Example: newton procedures show debugging
    """
    async with opened(settings(agent)) as newton:
        procedure = await newton.practice("cli").named(name)
    say(_told(procedure))
    say("\n".join(f"  goal   {goal}" for goal in procedure.goals))
    say("\n".join(f"  {place:>4}.  {step}" for place, step in enumerate(procedure.core, 1)))
    if procedure.details.strip():
        say(f"\n{procedure.details.strip()}")


async def used(
    name: Name,
    *,
    result: Annotated[Literal["success", "failure", "neutral"] | None, Parameter(help="How it went, if known.")] = None,
    agent: Agent = None,
) -> None:
    """Say that a procedure was followed, and how it went. After five uses its record decides how it is offered.

    Example: newton procedures used debugging --result success
    """
    async with opened(settings(agent)) as newton:
        await newton.practice("cli").used(name, result)
    say("Noted.")


async def judged(name: Name, result: Literal["success", "failure", "neutral"], *, agent: Agent = None) -> None:
    """Say how the last use of a procedure went that was not judged yet.

    Example: newton procedures judged debugging failure
    """
    async with opened(settings(agent)) as newton:
        await newton.practice("cli").judged(name, result)
    say("Noted.")


def _told(procedure: Listed) -> str:
    trials = procedure.successes + procedure.failures
    record = f"{procedure.effectiveness:.0%} of {trials}, at least {procedure.assured:.0%}" if trials else "no record"
    name = f"{procedure.name} v{procedure.version} ({procedure.domain})"
    head = f"{short(procedure.memory_id)}  {procedure.state:<11} {name} · {record}"
    return f"{head}\n          {procedure.description}"


def _plain(procedure: Listed) -> dict[str, object]:
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
        "assured": procedure.assured,
    }
