"""The endpoint that processes new memories."""

from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from newton.agent.field_types import Timestamp
from newton.operations.results import ItemList
from newton.runtime.api.auth import WriteAccess
from newton.runtime.api.base_models import ORIGIN, RequestModel, ResponseModel

router = APIRouter(prefix="/v1/memories", tags=["memories"])


class ProcessPendingRequest(RequestModel):
    since: Timestamp = Field(description="The `started_at` from the response to the write request.")


class ChangedMemory(ResponseModel):
    """A change of the state of a memory. `micro` is the shortest form of its text."""

    memory_id: UUID
    event: str
    from_state: str
    to_state: str
    reason: str
    micro: str


@router.post("/process")
async def process_memories(body: ProcessPendingRequest, caller: WriteAccess) -> ItemList[ChangedMemory]:
    """Index, embed and deduplicate new memories now, without waiting for a job.

    Returns the changes of states since the time `since`.
    """
    await caller.newton.maintenance(ORIGIN).process_pending(passages=True)
    changes = await caller.newton.curation(ORIGIN).list_changes(body.since)
    return ItemList(items=[ChangedMemory.from_source(step, micro=micro) for step, micro in changes])
