"""Store of the calls of tools of servers: when, with which permission, and with which outcome. It holds no texts."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.agent.actions", "action_store.sql")

PermissionBasis = Literal["read", "once", "session", "always"]
ActionOutcome = Literal["success", "failure", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAction:
    """A call of a tool that ended. `permission` says how it was permitted: as a read, once, for the session or always.

    Of an `interrupted` call it is not known what the tool did: the turn was stopped before the tool answered.
    """

    action_id: UUID
    session_id: UUID
    server: str
    tool: str
    arguments_hash: Annotated[bytes, Field(exclude=True)] = b""
    permission: PermissionBasis
    outcome: ActionOutcome
    started_at: datetime
    finished_at: datetime


async def insert_action(tx: Tx, action: ToolAction, *, agent_id: UUID) -> None:
    await SQL["insert_action"].execute(tx, agent_id=agent_id, **asdict(action))


async def list_recent_actions(
    tx: Tx, server: str, tool: str, *, agent_id: UUID, since: datetime, limit: int
) -> Sequence[ToolAction]:
    """Return the calls of one tool that succeeded or failed at `since` or later, at most `limit`, the latest first."""
    arguments = {"server": server, "tool": tool, "since": since, "limit": limit}
    rows = await SQL["list_recent_actions"].fetch_all(tx, agent_id=agent_id, **arguments)
    return [ToolAction(**row) for row in rows]


async def list_actions(tx: Tx, *, agent_id: UUID, limit: int) -> Sequence[ToolAction]:
    """Return the latest calls of all tools, at most `limit`, the latest first."""
    return [ToolAction(**row) for row in await SQL["list_actions"].fetch_all(tx, agent_id=agent_id, limit=limit)]
