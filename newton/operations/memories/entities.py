"""Operations on entities, which are the people and things that memories name, and their relations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import CleanText, Ref
from newton.heart.entities.entity_changes import EntityMergePlan
from newton.heart.entities.entity_lookup import EntityRecord
from newton.heart.entities.entity_store import MAX_DEPTH, EntityRelation, EntitySummary
from newton.memory.lookup import short_id
from newton.memory.representations import one_line
from newton.memory.source_marks import describe_source
from newton.operations.declaration import operation
from newton.operations.fields import Limit, PlanToken, SessionName
from newton.operations.results import ItemList
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MAX_SHOWN_RELATIONS = 10
EntityName = Annotated[CleanText, Field(max_length=200, description="A name of the person or thing.", examples=["Ana"])]
Depth = Annotated[
    int, Field(ge=1, le=MAX_DEPTH, description="Maximum number of relations on the way to another person or thing.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedEntity:
    """The ids of the entity that stayed and of the merged one, and how many mentions and facts moved."""

    entity_id: UUID
    merged_id: UUID
    mentions: int
    facts: int


def _format_entity(entity: EntitySummary) -> str:
    mentions = pluralize(entity.mentions, "mention")
    return f"{short_id(entity.memory_id)}  {entity.salience:.2f}  {entity.name} ({mentions})"


def _format_relation(one: EntityRelation) -> str:
    notes = ", ".join(filter(None, (describe_source(one.trust), "" if one.is_current else "past")))
    return f"{one.weight:.2f}  {one.source} {one.type} {one.target}{f' ({notes})' if notes else ''}"


def _format_record(entity: EntityRecord) -> str:
    aliases = f", also {', '.join(entity.aliases)}" if entity.aliases else ""
    lines = [
        f"{entity.name} ({entity.type}){aliases}: {pluralize(entity.mentions, 'mention')}",
        *(f"  {key}: {value}" for key, value in entity.properties.items()),
        *map(_format_relation, entity.relations),
        *(f"{short_id(one.memory_id)}  {one.kind:<10} {one_line(one.text)}" for one in entity.mentioned_in),
    ]
    return "\n".join(lines)


@operation(
    "GET /v1/entities",
    "reads",
    name="entities",
    command="entities list",
    text=_format_entity,
    empty="No entities are known. `newton jobs run lifecycle` finds them in stored texts.",
)
async def list_entities(
    caller: "OperationCaller",
    *,
    session: Annotated[Ref | None, Field(description="Only what this session mentions. Default: all.")] = None,
    limit: Limit = 20,
) -> ItemList[EntitySummary]:
    """List the people and things (entities) that are mentioned most, or those that a session mentions.

    Example: newton entities list
    """
    if session is None:
        return ItemList(items=await caller.entities.list_entities(limit=limit))
    return ItemList(items=await caller.entities.list_session_entities(session, limit=limit))


@operation(
    "GET /v1/sessions/{session:path}/entities",
    "reads",
    command="sessions entities",
    text=_format_entity,
    empty="No entities are known in the session.",
    absent={"mcp": "`entities` with a session lists them."},
)
async def session_entities(
    caller: "OperationCaller", session: SessionName, *, limit: Limit = 20
) -> ItemList[EntitySummary]:
    """List the people and things (entities) that a session mentions, with the number of their mentions in it.

    Example: newton sessions entities s
    """
    return ItemList(items=await caller.entities.list_session_entities(session, limit=limit))


@operation(
    "GET /v1/entities/{name:path}/relations",
    "reads",
    name="relations",
    command="entities relations",
    text=_format_relation,
    absent={"mcp": "`entity` lists them."},
)
async def list_relations(caller: "OperationCaller", name: EntityName, *, depth: Depth = 1) -> ItemList[EntityRelation]:
    """List the relations around a person or thing (entity), nearest first.

    Example: newton entities relations "Robert Smith" --depth 2
    """
    return ItemList(items=await caller.entities.find_relations(name, depth=depth))


def _format_merge(result: EntityMergePlan | MergedEntity) -> str:
    if isinstance(result, MergedEntity):
        return f"Merged: {pluralize(result.mentions, 'mention')} and {pluralize(result.facts, 'fact')} moved."
    lines = [
        f"To be merged: {result.merged} into {result.kept} ({result.type}).",
        f"  Names: {', '.join([result.kept, *result.aliases])}",
        f"  {pluralize(result.mentions, 'mention')} and {pluralize(result.facts, 'fact')} move.",
        *_format_relations("move", result.moved),
        *_format_relations("are known already", result.known),
        *_format_relations("relate both and are deleted", result.between),
        "A merge cannot be undone.",
    ]
    return "\n".join(lines)


def _format_relations(effect: str, relations: Sequence[EntityRelation]) -> list[str]:
    if not relations:
        return []
    shown = [f"    {one.source} {one.type} {one.target}" for one in relations[:MAX_SHOWN_RELATIONS]]
    more = [f"    and {len(relations) - MAX_SHOWN_RELATIONS} more"] if len(relations) > MAX_SHOWN_RELATIONS else []
    return [f"  Relations that {effect}: {len(relations)}", *shown, *more]


@operation(
    "POST /v1/entities/{name:path}/merge",
    "destroys",
    act="govern",
    command="entities merge",
    text=_format_merge,
    absent={
        "mcp": "Only a person may do this; a model may confirm, supersede or retract facts.",
        "chat": "Run the command in a terminal beside the chat.",
    },
)
async def merge_entity(
    caller: "OperationCaller",
    name: Annotated[EntityName, Field(description="A name of the entity that becomes a part of the other one.")],
    into: Annotated[EntityName, Field(description="A name of the entity that stays.")],
    *,
    token: PlanToken = None,
) -> EntityMergePlan | MergedEntity:
    """Merge a person or thing (entity) into another one that is the same. A merge cannot be undone.

    Without a token, the result is a preview. The entity that stays keeps its name; all names of the other one become
    aliases of it, so both are found by each name. Facts keep the name that they state.

    Example: newton entities merge "Bob" "Robert Smith"
    """
    if token is None:
        return await caller.entities.plan_merge(name, into)
    plan = await caller.entities.merge(name, into, token=token)
    return MergedEntity(entity_id=plan.kept_id, merged_id=plan.merged_id, mentions=plan.mentions, facts=plan.facts)


# after the routes that begin with it, because a name may contain a slash
@operation("GET /v1/entities/{name:path}", "reads", name="entity", command="entities show", text=_format_record)
async def show_entity(
    caller: "OperationCaller",
    name: EntityName,
    *,
    depth: Depth = 1,
    limit: Annotated[Limit, Field(description="Maximum number of memories that mention it.")] = 20,
) -> EntityRecord:
    """Show a person or thing (entity): its names, properties and relations, and the latest memories that mention it.

    Example: newton entities show "Robert Smith" --depth 2
    """
    return await caller.entities.get(name, depth=depth, limit=limit)
