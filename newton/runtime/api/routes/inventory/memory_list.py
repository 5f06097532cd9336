"""Endpoints that list memories, and change all memories that a filter selects."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.memory_inputs import MAX_LIST_LIMIT, BulkChangeInput, ListMemoriesInput
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, with_example
from newton.runtime.api.idempotency import AdminAction
from newton.runtime.tools.memory_views import (
    BulkChangeResponse,
    MemoryField,
    MemoryListResponse,
    to_bulk_result,
)
from newton.runtime.tools.memory_views import (
    list_memories as build_list,
)
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/memories", tags=["memories"])


class MemoryListQuery(ListMemoriesInput):
    """Filters, order and page of a list of memories."""

    limit: int = Field(50, ge=1, le=MAX_LIST_LIMIT, description="Maximum number of memories.")
    fields: tuple[MemoryField, ...] = Field((), description="The fields of each memory to return. Default: all.")


class BulkChangeRequest(BulkChangeInput):
    """A change of all memories that a filter selects."""

    model_config = with_example(action="set_importance", filter={"kinds": ["fact"], "subject": "Ana"}, importance=8)


@router.get("", response_model_exclude_unset=True)
async def list_memories(caller: ReadAccess, query: Annotated[MemoryListQuery, Query()]) -> MemoryListResponse:
    """List memories, newest first, in pages. Filter by `states` to include quarantined and past memories."""
    return await build_list(caller.newton, ORIGIN, query, fields=query.fields)


@router.post("/bulk", response_model=BulkChangeResponse)
async def change_memories(body: BulkChangeRequest, act: AdminAction) -> Response:
    """Forget, retract or edit all memories that a filter selects, at most 1,000, in one transaction.

    Without `token`, nothing is changed: the response is a preview with the token that confirms the change. The token is
    refused if one of the memories has changed since.
    """
    author = act.caller.author
    if body.token is None:
        preview = to_bulk_result(await act.caller.newton.bulk(ORIGIN, author).plan(body), is_done=False)
        return Response(preview.model_dump_json(), media_type="application/json")

    async def work(newton: AgentServices) -> BulkChangeResponse:
        return to_bulk_result(await newton.bulk(ORIGIN, author).carry_out(body), is_done=True)

    return await act.run_once(work)
