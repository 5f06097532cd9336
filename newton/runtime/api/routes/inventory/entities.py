"""Endpoints of entities, which are people and things, and of their relations."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.field_types import CleanText
from newton.heart.entities.entity_store import MAX_DEPTH
from newton.operations.results import ItemList
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, Limit, RequestModel, with_example
from newton.runtime.api.idempotency import AdminAction
from newton.runtime.tools.memory_views import EntityDetail, EntityMergeResult, to_entity_detail, to_merge_result
from newton.runtime.tools.views import EntityInfo, RelationInfo, to_entity_info, to_relation_info
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1", tags=["memories"])


class MergeEntityRequest(RequestModel):
    """The entity that stays, and the token of the preview."""

    model_config = with_example(into="Robert Smith", token="3f9c51aa7d20b1e4")

    into: CleanText = Field(max_length=200, description="A name of the entity that stays.")
    token: str | None = Field(
        None, max_length=100, description="The token of the preview; without it, nothing is changed."
    )


@router.get("/entities")
async def list_entities(caller: ReadAccess, limit: Limit = 20) -> ItemList[EntityInfo]:
    """List the people and things that are mentioned most."""
    found = await caller.newton.entities(ORIGIN).list_entities(limit=limit)
    return ItemList(items=[to_entity_info(*pair) for pair in found])


@router.get("/entities/{name:path}/relations")
async def list_relations(
    name: str,
    caller: ReadAccess,
    depth: Annotated[int, Query(ge=1, le=MAX_DEPTH, description="Maximum distance from the entity, in relations.")] = 1,
) -> ItemList[RelationInfo]:
    """List the relations around one entity, nearest first."""
    found = await caller.newton.entities(ORIGIN).find_related_entities(name, depth=depth)
    return ItemList(items=[to_relation_info(one) for one in found])


@router.post("/entities/{name:path}/merge", response_model=EntityMergeResult)
async def merge_entity(name: str, body: MergeEntityRequest, act: AdminAction) -> Response:
    """Merge a person or thing into another one that is the same: names, facts, relations and mentions become its own.

    Without `token`, nothing is changed: the response is a preview with the token that confirms the merge. A merge
    cannot be undone.
    """
    if body.token is None:
        preview = to_merge_result(*await act.caller.newton.entities(ORIGIN).plan_merge(name, body.into), is_done=False)
        return Response(preview.model_dump_json(), media_type="application/json")
    token = body.token

    async def work(newton: AgentServices) -> EntityMergeResult:
        return to_merge_result(await newton.entities(ORIGIN).merge(name, body.into, token=token), token, is_done=True)

    return await act.run_once(work)


# after the routes that begin with it, because a name may contain a slash
@router.get("/entities/{name:path}")
async def get_entity(name: str, caller: ReadAccess, limit: Limit = 20) -> EntityDetail:
    """Return one entity with its aliases, properties and relations, and the memories that mention it."""
    return to_entity_detail(await caller.newton.entities(ORIGIN).get(name, limit=limit))
