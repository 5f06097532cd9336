"""Leases that allow one turn and one compaction per session at a time; unanswered calls; fingerprints."""

from collections.abc import Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.providers.chat import ToolCall

SQL = load("newton.dialogue", "leases.sql")

LeasePurpose = Literal["turn", "compaction"]


class MessageFingerprint(NamedTuple):
    """A message found by its fingerprint."""

    session_id: UUID
    position: int
    fingerprint: str


async def acquire(
    tx: Tx, holder: UUID, purpose: LeasePurpose, *, agent_id: UUID, session_id: UUID, seconds: float
) -> bool:
    """Acquire or extend the lease; return False if another holder has the lease."""
    key = {"agent_id": agent_id, "session_id": session_id, "purpose": purpose, "holder": holder}
    return await SQL["acquire"].fetch_one(tx, **key, seconds=seconds) is not None


async def renew(
    tx: Tx, holder: UUID, purpose: LeasePurpose, *, agent_id: UUID, session_id: UUID, seconds: float
) -> bool:
    """Extend the lease; return False if it was released or acquired by another holder."""
    key = {"agent_id": agent_id, "session_id": session_id, "purpose": purpose, "holder": holder}
    return await SQL["renew"].fetch_one(tx, **key, seconds=seconds) is not None


async def release(tx: Tx, holder: UUID, purpose: LeasePurpose, *, agent_id: UUID, session_id: UUID) -> None:
    """Release the lease if this holder has it."""
    await SQL["release"].execute(tx, agent_id=agent_id, session_id=session_id, purpose=purpose, holder=holder)


async def list_open_calls(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[ToolCall]:
    """Return the session's unanswered tool calls, in order."""
    rows = await SQL["list_open_calls"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return [ToolCall(*row) for row in rows]


async def find_by_fingerprint(
    tx: Tx, fingerprints: Sequence[str], *, agent_id: UUID, ref: str
) -> list[MessageFingerprint]:
    """Return the messages with these fingerprints in session `ref` and in sessions named `ref~…`."""
    query = SQL["find_by_fingerprint"]
    rows = await query.fetch_all(tx, agent_id=agent_id, ref=ref, fingerprints=list(fingerprints))
    return [MessageFingerprint(*row) for row in rows]
