"""`newton entities`: who and what there is, and how it belongs together."""

from typing import Annotated

from cyclopts import Parameter

from newton.errors import InputError
from newton.heart.entities.entity_store import MAX_DEPTH
from newton.memory.lookup import short_id
from newton.runtime.bootstrap import open_newton
from newton.runtime.cli import formatting
from newton.runtime.cli.options import AgentOption, JsonOption, load_settings
from newton.runtime.cli.printing import say


async def show_entities(
    name: str | None = None,
    *,
    depth: Annotated[int, Parameter(help="How many steps to go along relations.")] = 1,
    limit: Annotated[int, Parameter(help="The most to show.")] = 20,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List who and what is named most, or show what belongs to one of them. They are found by name, without a model.

    Example: newton entities "Ana Berg" --depth 2

    Parameters
    ----------
    name:
        The name of one.
    """
    if not 1 <= depth <= MAX_DEPTH or limit < 1:
        raise InputError("That reaches nothing.", hint=f"Give a depth from 1 to {MAX_DEPTH} and a limit of 1 or more.")
    async with open_newton(load_settings(agent)) as newton:
        people = newton.entities("cli")
        if name is None:
            known = await people.list_entities(limit=limit)
            lines = [
                {"memory_id": str(e.memory_id), "name": e.name, "mentions": e.mentions, "salience": round(salience, 3)}
                for e, salience in known
            ]
            told = [
                f"{short_id(e.memory_id)}  {salience:.2f}  {e.name} ({e.mentions} mentions)" for e, salience in known
            ]
        else:
            reached = (await people.find_related_entities(name, depth=depth))[:limit]
            lines = [r.relation._asdict() | {"depth": r.depth} for r in reached]
            told = [
                f"{r.relation.weight:.2f}  {r.relation.source} {r.relation.type} {r.relation.target}" for r in reached
            ]
    if json:
        formatting.print_json(
            [{key: v if isinstance(v, int | float) else str(v) for key, v in line.items()} for line in lines]
        )
        return
    say("\n".join(told) or "Nothing is known of that yet. `newton jobs run lifecycle` reads what is there for names.")
