"""Store of the answers of persons to the question whether a tool may be called."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.agent.actions", "permission_store.sql")

Verdict = Literal["allow", "deny"]
PermissionSource = Literal["person", "trust"]
Judgement = Literal["allowed", "denied", "changed", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPermission:
    """A permission or a prohibition to call a tool.

    It applies to all sessions if `session_id` is None; `session` is the name of the session. `fingerprint` is that of
    the tool when it was allowed; None for a prohibition, which applies to all versions of the tool. The source is
    `trust` if no person was asked, because the tool only reads and its server is trusted.
    """

    permission_id: UUID
    server: str
    tool: str
    verdict: Verdict
    fingerprint: Annotated[bytes | None, Field(exclude=True)] = None
    session_id: Annotated[UUID | None, Field(exclude=True)] = None
    session: str | None
    source: PermissionSource
    created_at: datetime


def judge(permissions: Sequence[ToolPermission], fingerprint: bytes, *, session_id: UUID | None) -> Judgement:
    """Return what the permissions of one tool say about a call in a session. Pure.

    A prohibition comes before any permission. The result is `changed` if the tool had another description, schema or
    server when it was allowed.
    """
    own = [one for one in permissions if one.session_id in (None, session_id)]
    if any(one.verdict == "deny" for one in own):
        return "denied"
    if any(one.fingerprint == fingerprint for one in own):
        return "allowed"
    return "changed" if own else "unknown"


async def list_permissions(tx: Tx, *, agent_id: UUID) -> list[ToolPermission]:
    return [ToolPermission(**row) for row in await SQL["list_permissions"].fetch_all(tx, agent_id=agent_id)]


async def find_permissions(tx: Tx, server: str, tool: str, *, agent_id: UUID) -> list[ToolPermission]:
    """Return the permissions of one tool, of all sessions."""
    rows = await SQL["find_permissions"].fetch_all(tx, agent_id=agent_id, server=server, tool=tool)
    return [ToolPermission(**row) for row in rows]


async def set_permission(tx: Tx, permission: ToolPermission, *, agent_id: UUID) -> UUID:
    """Store a permission in place of an earlier one for the same tool and session; return its id.

    A permission or prohibition for all sessions replaces those of single sessions.
    """
    fields = ("permission_id", "server", "tool", "verdict", "fingerprint", "session_id", "source", "created_at")
    if permission.session_id is None:
        names = {"server": permission.server, "tool": permission.tool}
        await SQL["delete_session_permissions"].execute(tx, agent_id=agent_id, **names)
    row = await SQL["set_permission"].fetch_one(
        tx, agent_id=agent_id, **{name: getattr(permission, name) for name in fields}
    )
    assert row is not None, "an insertion with RETURNING has a row"
    return row["permission_id"]


async def delete_permission(tx: Tx, permission_id: UUID, *, agent_id: UUID) -> bool:
    """Delete a permission; return False if there is none with this id."""
    row = await SQL["delete_permission"].fetch_one(tx, agent_id=agent_id, permission_id=permission_id)
    return row is not None
