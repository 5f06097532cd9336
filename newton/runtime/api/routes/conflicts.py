"""Endpoints of conflicts between facts that may contradict each other."""

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from newton.agent.inputs import SettlementInput
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ItemList, ResponseModel
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.api.path_ids import MemoryId
from newton.runtime.chat_backend.local import to_conflict_view
from newton.runtime.chat_backend.view_models import ConflictView
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/conflicts", tags=["conflicts"])


class SettleResponse(ResponseModel):
    """The conflicts that were settled."""

    items: list[ConflictView] = Field(description="The settled conflicts, as they were before they were settled.")


@router.get("")
async def list_conflicts(caller: ReadAccess) -> ItemList[ConflictView]:
    """List the open conflicts, newest first."""
    pairs = await caller.newton.conflicts(ORIGIN).list_conflicts()
    return ItemList(items=list(map(to_conflict_view, pairs)))


@router.post("/{memory_id}/settle", response_model=SettleResponse)
async def settle_conflict(memory_id: MemoryId, body: SettlementInput, act: WriteAction) -> Response:
    """Settle the open conflicts of a fact: keep the newer, the older or both facts, or merge them."""

    async def work(newton: AgentServices) -> SettleResponse:
        pairs = await newton.conflicts(ORIGIN).settle(memory_id.hex, body.keep)
        return SettleResponse(items=list(map(to_conflict_view, pairs)))

    return await act.run_once(work)
