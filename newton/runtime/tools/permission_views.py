"""View models of permissions and calls of tools of servers, for the command line and for HTTP."""

from datetime import datetime
from uuid import UUID

from newton.agent.actions.action_store import ActionOutcome, PermissionBasis, ToolAction
from newton.agent.actions.permission_store import PermissionSource, ToolPermission, Verdict
from newton.runtime.tools.views import ViewModel


class PermissionInfo(ViewModel):
    """A permission (`allow`) or prohibition (`deny`) to call a tool of a server.

    It holds in one session, or in all if `session` is null. The source is `trust` if nobody was asked, because the tool
    reads and its server is trusted.
    """

    permission_id: UUID
    server: str
    tool: str
    verdict: Verdict
    session: str | None
    source: PermissionSource
    created_at: datetime


class ActionInfo(ViewModel):
    """A finished call of a tool of a server.

    `permission` says how it was permitted: a read of a trusted server, or the answer of a person. The text of the call
    is in an event of the session.
    """

    action_id: UUID
    session_id: UUID
    server: str
    tool: str
    permission: PermissionBasis
    outcome: ActionOutcome
    started_at: datetime
    finished_at: datetime


def to_permission_info(permission: ToolPermission) -> PermissionInfo:
    return PermissionInfo.from_source(permission)


def to_action_info(action: ToolAction) -> ActionInfo:
    return ActionInfo.from_source(action)
