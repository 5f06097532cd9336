"""Endpoints of the permissions to call tools of servers. Only a person gives them, in a chat or at the command line."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response

from newton.operations.results import ItemList
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ResponseModel
from newton.runtime.api.idempotency import AdminAction
from newton.runtime.api.path_ids import PathId
from newton.runtime.tools.permission_views import ActionInfo, PermissionInfo, to_action_info, to_permission_info
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1", tags=["permissions"])


class RevokePermissionResponse(ResponseModel):
    """The id of the revoked permission."""

    permission_id: UUID


@router.get("/permissions")
async def list_permissions(caller: ReadAccess) -> ItemList[PermissionInfo]:
    """List which tools of servers the agent may call without asking, and which it may not call."""
    listed = await caller.newton.permissions(ORIGIN).list_permissions()
    return ItemList(items=list(map(to_permission_info, listed)))


@router.delete("/permissions/{permission_id}", response_model=RevokePermissionResponse)
async def revoke_permission(permission_id: PathId, act: AdminAction) -> Response:
    """Revoke a permission or a prohibition: the next call of the tool needs a permission again."""

    async def work(newton: AgentServices) -> RevokePermissionResponse:
        revoked = await newton.permissions(ORIGIN).revoke(permission_id)
        return RevokePermissionResponse(permission_id=revoked.permission_id)

    return await act.run_once(work)


@router.get("/actions")
async def list_actions(
    caller: ReadAccess, limit: Annotated[int, Query(ge=1, le=1_000, description="Maximum number of calls.")] = 100
) -> ItemList[ActionInfo]:
    """List the latest calls of tools of servers, the latest first."""
    listed = await caller.newton.actions(ORIGIN).list_actions(limit)
    return ItemList(items=list(map(to_action_info, listed)))
