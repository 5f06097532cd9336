"""Commands `newton entities`: known people and things (entities), their relations, and their merge."""

import shlex
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from newton.errors import InputError
from newton.heart.entities.entity_store import MAX_DEPTH
from newton.memory.lookup import short_id
from newton.runtime.cli import formatting
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.options import AgentOption, JsonOption, LimitOption, check_session_name, load_settings
from newton.runtime.cli.printing import say
from newton.runtime.tools.memory_views import (
    EntityDetail,
    EntityMergeResult,
    MergedRelation,
    to_entity_detail,
    to_merge_result,
)

MAX_SHOWN_RELATIONS = 10


async def list_entities(
    *,
    session: Annotated[str | None, Parameter(help="List what this session mentions.")] = None,
    limit: LimitOption = 20,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """List the most mentioned people and things (entities), or those that a session mentions.

    Example: newton entities --session default
    """
    _check_limit(limit)
    ref = check_session_name(session)
    async with open_agent(load_settings(agent)) as newton:
        service = newton.entities("cli")
        entities = await (
            service.list_session_entities(ref, limit=limit) if ref else service.list_entities(limit=limit)
        )
    if json:
        formatting.print_json(
            [
                {"memory_id": str(e.memory_id), "name": e.name, "mentions": e.mentions, "salience": round(salience, 3)}
                for e, salience in entities
            ]
        )
        return
    lines = [
        f"{short_id(e.memory_id)}  {salience:.2f}  {e.name} ({formatting.pluralize(e.mentions, 'mention')})"
        for e, salience in entities
    ]
    say("\n".join(lines) or "No entities are known. `newton jobs run lifecycle` finds them in stored texts.")


async def show_entity(
    name: Annotated[str, Parameter(help="A name of the entity.")],
    *,
    depth: Annotated[int, Parameter(help="Maximum number of relations on the way from NAME to another entity.")] = 1,
    limit: LimitOption = 20,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Show a person or thing (entity): its names, properties and relations, and the latest memories that mention it.

    Example: newton entities show "Ana Berg" --depth 2
    """
    _check_limit(limit)
    if not 1 <= depth <= MAX_DEPTH:
        raise InputError("The depth is out of range.", hint=f"Give a depth from 1 to {MAX_DEPTH}.")
    async with open_agent(load_settings(agent)) as newton:
        service = newton.entities("cli")
        entity = to_entity_detail(await service.get(name, limit=limit))
        related = (await service.find_related_entities(name, depth=depth))[:limit]
    if json:
        relations = [
            {
                key: value if isinstance(value, int | float) else str(value)
                for key, value in one.relation._asdict().items()
            }
            | {"depth": one.depth}
            for one in related
        ]
        formatting.print_json(entity.model_dump(mode="json") | {"relations": relations})
        return
    say(_format_entity(entity))
    say(
        "\n".join(
            f"{r.weight:.2f}  {r.source} {r.type} {r.target}{'' if r.is_current else ' (past)'}"
            for r in (one.relation for one in related)
        )
    )
    for one in entity.mentioned_in:
        say(f"{short_id(one.memory_id)}  {one.kind:<10} {one.text}")


async def merge_entity(
    name: Annotated[str, Parameter(help="A name of the entity that becomes a part of the other one.")],
    into: Annotated[str, Parameter(help="A name of the entity that stays.")],
    *,
    confirm: Annotated[str | None, Parameter(help="Code that the preview printed.")] = None,
    agent: AgentOption = None,
    json: JsonOption = False,
) -> None:
    """Merge two people or things (entities) that are the same one.

    The first call only lists what would change, and prints a code. Repeat the command with --confirm CODE to merge
    them. The entity that stays keeps its name; all names of the other one become aliases of it, so both are found by
    each name. Facts keep the name that they state. A merge cannot be undone.

    Example: newton entities merge "Bob" "Robert Smith"
    """
    async with open_agent(load_settings(agent)) as newton:
        service = newton.entities("cli")
        if confirm is None:
            result = to_merge_result(*await service.plan_merge(name, into), is_done=False)
        else:
            result = to_merge_result(await service.merge(name, into, token=confirm), confirm, is_done=True)
    if json:
        formatting.print_json(result.model_dump(mode="json"))
        return
    say(_format_merge(result))
    if not result.is_done:
        parts = ["newton", "entities", "merge", name, into, *(["--agent", agent] if agent else [])]
        say(f"A merge cannot be undone. To merge them, run `{shlex.join(parts)} --confirm {result.token}`.")


def _check_limit(limit: int) -> None:
    if limit < 1:
        raise InputError("The limit is out of range.", hint="Give a limit from 1.")


def _format_entity(entity: EntityDetail) -> str:
    aliases = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    properties = "".join(f"\n  {key}: {value}" for key, value in entity.properties.items())
    return f"{entity.name} ({entity.type}){aliases}: {formatting.pluralize(entity.mentions, 'mention')}{properties}"


def _format_merge(result: EntityMergeResult) -> str:
    verb = "Merged" if result.is_done else "To be merged"
    lines = [
        f"{verb}: {result.merged} into {result.kept} ({result.type}).",
        f"  Names: {', '.join([result.kept, *result.aliases])}",
        f"  {formatting.pluralize(result.mentions, 'mention')} and {formatting.pluralize(result.facts, 'fact')} move.",
        *_format_relations("move", result.moved),
        *_format_relations("are known already", result.known),
        *_format_relations("relate both and are deleted", result.between),
    ]
    return "\n".join(lines)


def _format_relations(effect: str, relations: Sequence[MergedRelation]) -> list[str]:
    if not relations:
        return []
    shown = [f"    {one.source} {one.type} {one.target}" for one in relations[:MAX_SHOWN_RELATIONS]]
    more = [f"    and {len(relations) - MAX_SHOWN_RELATIONS} more"] if len(relations) > MAX_SHOWN_RELATIONS else []
    return [f"  Relations that {effect}: {len(relations)}", *shown, *more]
