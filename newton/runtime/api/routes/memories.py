"""Endpoints that store facts, process new memories and undo changes."""

from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from newton.agent.field_types import Timestamp
from newton.operations.results import ItemList
from newton.runtime.api.auth import WriteAccess
from newton.runtime.api.base_models import ORIGIN, RequestModel, ResponseModel
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.chat_backend.view_models import UndoneChangeView, to_undone_views
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/memories", tags=["memories"])


class ProcessPendingRequest(RequestModel):
    since: Timestamp = Field(description="The `started_at` from the response to the write request.")


class UndoChangesRequest(RequestModel):
    since: Timestamp = Field(description="The time before the first message whose changes are undone.")


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


@router.post("/undo", response_model=ItemList[UndoneChangeView])
async def undo_changes(body: UndoChangesRequest, act: WriteAction) -> Response:
    """Undo what messages have changed in the facts since the time `since`.

    Facts that they ended or hid hold again, those that a model learnt from them are retracted. Returns these changes,
    and those of the user's rules (`ruled`, `lifted`), which the routes of the identity undo.
    """

    async def work(newton: AgentServices) -> ItemList[UndoneChangeView]:
        return ItemList(items=to_undone_views(await newton.curation(ORIGIN).undo_changes(body.since)))

    return await act.run_once(work)
