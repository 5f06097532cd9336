"""Command `newton entities`: known people and things (entities) and their relations."""

from typing import Annotated

from cyclopts import Parameter

from newton.errors import InputError
from newton.heart.entities.entity_store import MAX_DEPTH
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, LimitOption, check_session_name, load_settings
from newton.runtime.cli.printing import say


async def show_entities(
    name: Annotated[
        str | None, Parameter(help="Name of an entity; if omitted, the most mentioned entities are listed.")
    ] = None,
    *,
    depth: Annotated[int, Parameter(help="Maximum number of relations on the way from NAME to another entity.")] = 1,
    session: Annotated[str | None, Parameter(help="List what this session mentions; not together with NAME.")] = None,
    limit: LimitOption = 20,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List the most mentioned people and things (entities), those that a session mentions, or the relations of one.

    Example: newton entities "Ana Berg" --depth 2
    """
    if not 1 <= depth <= MAX_DEPTH or limit < 1:
        raise InputError(
            "The depth or the limit is out of range.", hint=f"Give a depth from 1 to {MAX_DEPTH} and a limit from 1."
        )
    if name is not None and session is not None:
        raise InputError("A name and a session cannot be combined.", hint="Give only one of them.")
    ref = check_session_name(session)
    async with open_agent(load_settings(agent)) as newton:
        service = newton.entities("cli")
        if name is None:
            entities = await (
                service.list_session_entities(ref, limit=limit) if ref else service.list_entities(limit=limit)
            )
            items = [
                {"memory_id": str(e.memory_id), "name": e.name, "mentions": e.mentions, "salience": round(salience, 3)}
                for e, salience in entities
            ]
            lines = [
                f"{short_id(e.memory_id)}  {salience:.2f}  {e.name} ({formatting.pluralize(e.mentions, 'mention')})"
                for e, salience in entities
            ]
        else:
            related = (await service.find_related_entities(name, depth=depth))[:limit]
            items = [r.relation._asdict() | {"depth": r.depth} for r in related]
            lines = [f"{r.weight:.2f}  {r.source} {r.type} {r.target}" for r in (one.relation for one in related)]
    if json:
        formatting.print_json(
            [{key: v if isinstance(v, int | float) else str(v) for key, v in item.items()} for item in items]
        )
        return
    say(
        "\n".join(lines)
        or "No entities or relations are known. `newton jobs run lifecycle` finds them in stored texts."
    )
