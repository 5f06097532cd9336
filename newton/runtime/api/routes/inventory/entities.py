"""Endpoints of entities, which are people and things, and of their relations."""

from typing import Annotated

from fastapi import APIRouter, Query

from newton.heart.entities.entity_store import MAX_DEPTH
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ItemList, Limit
from newton.runtime.tools.memory_views import EntityDetail, to_entity_detail
from newton.runtime.tools.views import EntityInfo, RelationInfo, to_entity_info, to_relation_info

router = APIRouter(prefix="/v1", tags=["memories"])


@router.get("/entities")
async def list_entities(caller: ReadAccess, limit: Limit = 20) -> ItemList[EntityInfo]:
    """List the people and things that are mentioned most."""
    found = await caller.newton.entities(ORIGIN).list_entities(limit=limit)
    return ItemList(items=[to_entity_info(*pair) for pair in found])


@router.get("/entities/{name}")
async def get_entity(name: str, caller: ReadAccess, limit: Limit = 20) -> EntityDetail:
    """Return one entity with its aliases, properties and relations, and the memories that mention it."""
    return to_entity_detail(await caller.newton.entities(ORIGIN).get(name, limit=limit))


@router.get("/entities/{name}/relations")
async def list_relations(
    name: str,
    caller: ReadAccess,
    depth: Annotated[int, Query(ge=1, le=MAX_DEPTH, description="Maximum distance from the entity, in relations.")] = 1,
) -> ItemList[RelationInfo]:
    """List the relations around one entity, nearest first."""
    found = await caller.newton.entities(ORIGIN).find_related_entities(name, depth=depth)
    return ItemList(items=[to_relation_info(one) for one in found])
