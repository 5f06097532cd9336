"""The endpoint that lists memories."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from newton.agent.memory_inputs import MAX_LIST_LIMIT, ListMemoriesInput
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN
from newton.runtime.tools.memory_views import (
    MemoryField,
    MemoryListResponse,
)
from newton.runtime.tools.memory_views import (
    list_memories as build_list,
)

router = APIRouter(prefix="/v1/memories", tags=["memories"])


class MemoryListQuery(ListMemoriesInput):
    """Filters, order and page of a list of memories."""

    limit: int = Field(50, ge=1, le=MAX_LIST_LIMIT, description="Maximum number of memories.")
    fields: tuple[MemoryField, ...] = Field((), description="The fields of each memory to return. Default: all.")


@router.get("", response_model_exclude_unset=True)
async def list_memories(caller: ReadAccess, query: Annotated[MemoryListQuery, Query()]) -> MemoryListResponse:
    """List memories, newest first, in pages. Filter by `states` to include quarantined and past memories."""
    return await build_list(caller.newton, ORIGIN, query, fields=query.fields)
