"""Permissions to call tools of servers: list, give, refuse and revoke them."""

from dataclasses import dataclass
from uuid import UUID

from newton.agent.actions import permission_store
from newton.agent.actions.external_tools import ExternalTool
from newton.agent.actions.permission_store import Judgement, PermissionSource, ToolPermission
from newton.agent.scope import AgentScope
from newton.errors import ConflictError, NotFoundError
from newton.ids import new_id

LIST_HINT = "`newton permissions` lists the permissions."


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionService:
    """Permissions of one agent to call tools of servers. Only a person gives them; no tool of a model does."""

    scope: AgentScope

    async def list_permissions(self) -> list[ToolPermission]:
        async with self.scope.transaction() as tx:
            return await permission_store.list_permissions(tx, agent_id=self.scope.agent_id)

    async def judge(self, tool: ExternalTool, *, session_id: UUID | None) -> Judgement:
        """Return whether a call is permitted.

        A read of a trusted server is permitted. Its fingerprint is stored at the first call, so that a tool that is
        changed later needs the permission of a person.
        """
        async with self.scope.transaction() as tx:
            known = await permission_store.find_permissions(tx, tool.server, tool.name, agent_id=self.scope.agent_id)
            judgement = permission_store.judge(known, tool.fingerprint, session_id=session_id)
            if judgement == "unknown" and tool.runs_freely and not known:
                await self._allow_in(tx, tool, session_id=None, source="trust")
                return "allowed"
            return judgement

    async def allow(self, tool: ExternalTool, *, session_id: UUID | None = None) -> UUID:
        """Permit calls of a tool as it is now, in a session or, without one, in all; return the permission's id."""
        async with self.scope.transaction() as tx:
            return await self._allow_in(tx, tool, session_id=session_id, source="person")

    async def deny(self, server: str, tool: str) -> UUID:
        """Prohibit all calls of a tool, also after it has changed; return the id of the prohibition."""
        permission = self._create(server, tool, "deny", None, None, "person")
        async with self.scope.transaction() as tx:
            permission_id = await permission_store.set_permission(tx, permission, agent_id=self.scope.agent_id)
            self.scope.publish("permission.denied", {"permission_id": str(permission_id)})
        return permission_id

    async def revoke(self, permission_ref: str) -> ToolPermission:
        """Delete a permission or prohibition, by its id, the end of its id, or `SERVER TOOL` if that has only one.

        Raises NotFoundError if there is none, and ConflictError if there are several.
        """
        async with self.scope.transaction() as tx:
            listed = await permission_store.list_permissions(tx, agent_id=self.scope.agent_id)
            permission = _find(listed, permission_ref)
            await permission_store.delete_permission(tx, permission.permission_id, agent_id=self.scope.agent_id)
            self.scope.publish("permission.revoked", {"permission_id": str(permission.permission_id)})
        return permission

    async def _allow_in(
        self, tx: permission_store.Tx, tool: ExternalTool, *, session_id: UUID | None, source: PermissionSource
    ) -> UUID:
        permission = self._create(tool.server, tool.name, "allow", tool.fingerprint, session_id, source)
        permission_id = await permission_store.set_permission(tx, permission, agent_id=self.scope.agent_id)
        self.scope.publish("permission.allowed", {"permission_id": str(permission_id)})
        return permission_id

    def _create(
        self,
        server: str,
        tool: str,
        verdict: permission_store.Verdict,
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
