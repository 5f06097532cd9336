"""`newton entities`: who and what there is, and how it belongs together."""

from typing import Annotated

from cyclopts import Parameter

from newton.errors import InputError
from newton.heart.entities import DEEPEST
from newton.memory.lookup import short
from newton.runtime.cli import show
from newton.runtime.cli.options import Agent, AsJson, settings
from newton.runtime.cli.printing import say
from newton.runtime.opening import opened


async def entities(
    name: str | None = None,
    *,
    depth: Annotated[int, Parameter(help="How many steps to go along relations.")] = 1,
    limit: Annotated[int, Parameter(help="The most to show.")] = 20,
    agent: Agent = None,
    json: AsJson = False,
) -> None:
    """List who and what is named most, or show what belongs to one of them. They are found by name, without a model.

    Example: newton entities "Ana Berg" --depth 2

    Parameters
    ----------
    name:
        The name of one.
    """
    if not 1 <= depth <= DEEPEST or limit < 1:
        raise InputError("That reaches nothing.", hint=f"Give a depth from 1 to {DEEPEST} and a limit of 1 or more.")
    async with opened(settings(agent)) as newton:
        people = newton.acquaintance()
        if name is None:
            known = await people.listed(most=limit)
            lines = [
                {"memory_id": str(e.memory_id), "name": e.name, "mentions": e.mentions, "salience": round(salience, 3)}
                for e, salience in known
            ]
            told = [f"{short(e.memory_id)}  {salience:.2f}  {e.name} ({e.mentions} mentions)" for e, salience in known]
        else:
            reached = (await people.around(name, depth=depth))[:limit]
            lines = [r.relation._asdict() | {"depth": r.depth} for r in reached]
            told = [
                f"{r.relation.weight:.2f}  {r.relation.source} {r.relation.type} {r.relation.target}" for r in reached
            ]
    if json:
        show.as_json([{key: v if isinstance(v, int | float) else str(v) for key, v in line.items()} for line in lines])
        return
    say("\n".join(told) or "Nothing is known of that yet. `newton jobs run lifecycle` reads what is there for names.")
