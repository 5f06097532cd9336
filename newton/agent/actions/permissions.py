"""Permissions to call tools of servers: their store, and which one holds for a call."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from newton.agent.actions.external_tools import ApprovalAnswer, ExternalTool
from newton.agent.scope import AgentScope
from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, NotFoundError
from newton.ids import new_id

SQL = load("newton.agent.actions", "permissions.sql")

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
    """Return whether the permissions of one tool allow a call in a session: allowed, denied, changed or unknown. Pure.

    A prohibition comes before any permission. `changed` means that the tool had another description, schema or server
    when it was allowed; `fingerprint` is the hash of these now.
    """
    applicable = [one for one in permissions if one.session_id in (None, session_id)]
    if any(one.verdict == "deny" for one in applicable):
        return "denied"
    if any(one.fingerprint == fingerprint for one in applicable):
        return "allowed"
    return "changed" if applicable else "unknown"


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


LIST_HINT = "`newton permissions` lists the permissions."


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionService:
    """Permissions of one agent to call tools of servers. Only a person gives them; no tool of a model does."""

    scope: AgentScope

    async def list_permissions(self) -> list[ToolPermission]:
        """Return all permissions and prohibitions of the agent."""
        async with self.scope.transaction() as tx:
            return await list_permissions(tx, agent_id=self.scope.agent_id)

    async def judge(self, tool: ExternalTool, *, session_id: UUID | None) -> Judgement:
        """Return whether a call is permitted: allowed, denied, changed (the allowed tool was another) or unknown.

        A read of a trusted server is permitted if it is as the agent first saw it; its first call stores that.
        """
        async with self.scope.transaction() as tx:
            known = await find_permissions(tx, tool.server, tool.name, agent_id=self.scope.agent_id)
            judgement = judge(known, tool.fingerprint, session_id=session_id)
            if judgement == "unknown" and tool.runs_freely and not known:
                await self._allow_in(tx, tool, session_id=None, source="trust")
                return "allowed"
            return "changed" if judgement == "unknown" and tool.change else judgement

    async def allow(self, tool: ExternalTool, *, session_id: UUID | None = None) -> UUID:
        """Permit calls of a tool as it is now, in a session or, without one, in all; return the permission's id."""
        async with self.scope.transaction() as tx:
            return await self._allow_in(tx, tool, session_id=session_id, source="person")

    async def deny(self, server: str, tool: str) -> UUID:
        """Prohibit all calls of a tool, also after it has changed; return the id of the prohibition."""
        permission = self._create(server, tool, "deny", None, None, "person")
        async with self.scope.transaction() as tx:
            permission_id = await set_permission(tx, permission, agent_id=self.scope.agent_id)
            self.scope.publish("permission.denied", {"permission_id": str(permission_id)})
        return permission_id

    async def store_answer(self, tool: ExternalTool, answer: ApprovalAnswer, *, session_id: UUID | None) -> bool:
        """Store what a person answered to the question about a call; return whether it may be made."""
        match answer:
            case "session":
                await self.allow(tool, session_id=session_id)
            case "always":
                await self.allow(tool)
            case "never":
                await self.deny(tool.server, tool.name)
            case _:
                pass
        return answer in ("once", "session", "always")

    async def use_up(self, tool: ExternalTool) -> bool:
        """Delete the permission of a person for one call; return False if there is none, or it is used up."""
        key = {"server": tool.server, "tool": tool.name, "fingerprint": tool.fingerprint}
        async with self.scope.transaction() as tx:
            row = await SQL["use_permission"].fetch_one(tx, agent_id=self.scope.agent_id, **key)
            if row is not None:
                self.scope.publish("permission.used", {"permission_id": str(row["permission_id"])})
        return row is not None

    async def revoke(self, permission_ref: str) -> ToolPermission:
        """Delete a permission or prohibition, by its id, the end of its id, or `SERVER TOOL` if that has only one.

        Raises NotFoundError if there is none, and ConflictError if there are several.
        """
        async with self.scope.transaction() as tx:
            listed = await list_permissions(tx, agent_id=self.scope.agent_id)
            permission = _find(listed, permission_ref)
            await delete_permission(tx, permission.permission_id, agent_id=self.scope.agent_id)
            self.scope.publish("permission.revoked", {"permission_id": str(permission.permission_id)})
        return permission

    async def _allow_in(self, tx: Tx, tool: ExternalTool, *, session_id: UUID | None, source: PermissionSource) -> UUID:
        permission = self._create(tool.server, tool.name, "allow", tool.fingerprint, session_id, source)
        permission_id = await set_permission(tx, permission, agent_id=self.scope.agent_id)
        self.scope.publish("permission.allowed", {"permission_id": str(permission_id)})
        return permission_id

    def _create(
        self,
        server: str,
        tool: str,
        verdict: Verdict,
        fingerprint: bytes | None,
        session_id: UUID | None,
        source: PermissionSource,
    ) -> ToolPermission:
        return ToolPermission(
            permission_id=new_id(),
            server=server,
            tool=tool,
            verdict=verdict,
            fingerprint=fingerprint,
            session_id=session_id,
            session=None,
            source=source,
            created_at=self.scope.now(),
        )


def _find(permissions: list[ToolPermission], permission_ref: str) -> ToolPermission:
    ref = permission_ref.strip().lower()
    names = tuple(ref.split())
    found = [
        one
        for one in permissions
        if (len(ref) >= 4 and one.permission_id.hex.endswith(ref.replace("-", "")))
        or names == (one.server.lower(), one.tool.lower())
    ]
    if not found:
        raise NotFoundError(f"There is no permission {permission_ref!r}.", hint=LIST_HINT)
    if len(found) > 1:
        raise ConflictError(f"{permission_ref!r} names {len(found)} permissions.", hint=f"Give an id. {LIST_HINT}")
    return found[0]
