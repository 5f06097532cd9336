"""Operations on permissions to call tools of servers. Only a person gives them, in a chat or at the command line."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.actions.action_store import ToolAction
from newton.agent.actions.permissions import ToolPermission, Verdict
from newton.memory.lookup import short_id
from newton.operations.declaration import Door, operation
from newton.operations.results import ItemList

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

VERDICTS: Mapping[Verdict, str] = {"allow": "allowed", "deny": "forbidden"}
FOR_PERSONS: Mapping[Door, str] = {"mcp": "Only a person may do this: an agent must not change its own rules."}
MAX_CALLS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedPermission:
    """The permission or prohibition that was revoked."""

    permission_id: UUID
    server: str
    tool: str
    verdict: Verdict


def _format_permission(permission: ToolPermission) -> str:
    scope = "" if permission.session is None else f" in the session {permission.session}"
    basis = " (a read of a trusted server)" if permission.source == "trust" else ""
    verdict = f"{VERDICTS[permission.verdict]}{scope}{basis} since {permission.created_at:%Y-%m-%d}"
    return f"{short_id(permission.permission_id)}  {permission.server} {permission.tool:<24} {verdict}"


def _format_action(action: ToolAction) -> str:
    call = f"{action.server} {action.tool:<24} {action.permission:<8} {action.outcome}"
    return f"{action.finished_at:%Y-%m-%d %H:%M}  {call}"


@operation(
    "GET /v1/permissions",
    "reads",
    name="permissions",
    command="permissions list",
    text=_format_permission,
    empty="No permissions. The chat asks before a tool of a server acts; `newton permissions allow` allows it before.",
    absent=FOR_PERSONS,
)
async def list_permissions(caller: "OperationCaller") -> ItemList[ToolPermission]:
    """List which tools of servers the agent may call without asking, and which it may not call.

    Example: newton permissions
    """
    return ItemList(items=await caller.permissions.list_permissions())


@operation(
    "DELETE /v1/permissions/{permission_id}",
    "destroys",
    act="govern",
    command="permissions revoke",
    text=lambda revoked: f"Revoked: {revoked.server} {revoked.tool} is no longer {VERDICTS[revoked.verdict]}.",
    absent=FOR_PERSONS,
)
async def revoke_permission(
    caller: "OperationCaller",
    permission_id: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            description="The id of the permission, the end of its id, or the server and the tool: 'SERVER TOOL'.",
            examples=["files write_file"],
        ),
    ],
) -> RevokedPermission:
    """Revoke a permission or a prohibition: the next call of the tool needs a permission again.

    Example: newton permissions revoke "files write_file"
    """
    one = await caller.permissions.revoke(permission_id)
    return RevokedPermission(permission_id=one.permission_id, server=one.server, tool=one.tool, verdict=one.verdict)


@operation(
    "GET /v1/actions",
    "reads",
    name="actions",
    command="permissions actions",
    text=_format_action,
    empty="No tool of a server was called.",
    absent=FOR_PERSONS,
)
async def list_actions(
    caller: "OperationCaller",
    *,
    limit: Annotated[int, Field(ge=1, le=MAX_CALLS, description="Maximum number of calls.")] = 100,
) -> ItemList[ToolAction]:
    """List the latest calls of tools of servers, with how each was permitted and how it ended. The latest comes first.

    Example: newton permissions actions --limit 50
    """
    return ItemList(items=await caller.newton.actions(caller.origin).list_actions(limit))
