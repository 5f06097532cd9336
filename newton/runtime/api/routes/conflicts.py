"""Endpoints of conflicts between facts that may contradict each other."""

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import Field

from newton.agent.inputs import SettlementInput
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, Cursor, CursorPage, Limit, ResponseModel
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.api.path_ids import MemoryId
from newton.runtime.chat_backend.local import to_conflict_view
from newton.runtime.chat_backend.view_models import ConflictView
from newton.runtime.tools.conflict_page import list_conflict_page
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/conflicts", tags=["conflicts"])


class SettleResponse(ResponseModel):
    """The conflicts that were settled."""

    items: list[ConflictView] = Field(description="The settled conflicts, as they were before they were settled.")


class ConflictListResponse(CursorPage[ConflictView]):
    """One page of the open conflicts. `next` is the cursor for the next page; it is null on the last page."""

    count: int | None = Field(None, description="The number of all open conflicts; null after the first page.")


@router.get("")
async def list_conflicts(caller: ReadAccess, limit: Limit = 50, cursor: Cursor = None) -> ConflictListResponse:
    """List the open conflicts, newest first."""
    page = await list_conflict_page(caller.newton.conflicts(ORIGIN), limit=limit, cursor=cursor)
    return ConflictListResponse(items=list(map(to_conflict_view, page.pairs)), next=page.next, count=page.count)


@router.post("/{memory_id}/settle", response_model=SettleResponse)
async def settle_conflict(memory_id: MemoryId, body: SettlementInput, act: WriteAction) -> Response:
    """Settle the open conflicts of a fact: keep the newer, the older or both facts, or merge them."""

    async def work(newton: AgentServices) -> SettleResponse:
        pairs = await newton.conflicts(ORIGIN).settle(memory_id.hex, body.keep)
        return SettleResponse(items=list(map(to_conflict_view, pairs)))

    return await act.run_once(work)
