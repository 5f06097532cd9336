"""Leases that allow one turn and one compaction per session at a time; and lookups of messages for a turn."""

from collections.abc import Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.log import AncestorRange
from newton.providers.chat import ToolCall

SQL = load("newton.dialogue", "leases.sql")

LeasePurpose = Literal["turn", "compaction"]


class MessageFingerprint(NamedTuple):
    """A message with its fingerprint, a hash of the message and all messages before it."""

    session_id: UUID
    position: int
    fingerprint: str


class TurnStart(NamedTuple):
    """The tool calls of a session that have no result, in order, and the sessions from which a branch continues."""

    open_calls: Sequence[ToolCall]
    ancestors: Sequence[AncestorRange]


async def acquire(
    tx: Tx, holder: UUID, purpose: LeasePurpose, *, agent_id: UUID, session_id: UUID, seconds: float
) -> bool:
    """Acquire the lease, or extend it if `holder` has it. Return False if another holder has it."""
    key = {"agent_id": agent_id, "session_id": session_id, "purpose": purpose, "holder": holder}
    return await SQL["acquire"].fetch_one(tx, **key, seconds=seconds) is not None


async def renew(
    tx: Tx, holder: UUID, purpose: LeasePurpose, *, agent_id: UUID, session_id: UUID, seconds: float
) -> bool:
    """Extend the lease. Return False if it was released, or another holder has acquired it."""
    key = {"agent_id": agent_id, "session_id": session_id, "purpose": purpose, "holder": holder}
    return await SQL["renew"].fetch_one(tx, **key, seconds=seconds) is not None


async def release(tx: Tx, holder: UUID, purpose: LeasePurpose, *, agent_id: UUID, session_id: UUID) -> bool:
    """Release the lease. Return False if `holder` does not have it."""
    key = {"agent_id": agent_id, "session_id": session_id, "purpose": purpose, "holder": holder}
    return await SQL["release"].fetch_one(tx, **key) is not None


async def read_turn_start(tx: Tx, *, agent_id: UUID, session_id: UUID) -> TurnStart:
    """Return what a turn of a session begins with."""
    rows = await SQL["read_turn_start"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return TurnStart(
        open_calls=[ToolCall(*row[:3]) for row in rows if row["ancestor_id"] is None],
        ancestors=[AncestorRange(*row[3:]) for row in rows if row["ancestor_id"] is not None],
    )


async def find_by_fingerprint(
    tx: Tx, fingerprints: Sequence[str], *, agent_id: UUID, ref: str
) -> list[MessageFingerprint]:
    """Return the messages of session `ref` and its branches (`ref~…`) with one of these fingerprints.

    A fingerprint is a hash of a message and all messages before it.
    """
    query = SQL["find_by_fingerprint"]
    rows = await query.fetch_all(tx, agent_id=agent_id, ref=ref, fingerprints=list(fingerprints))
    return [MessageFingerprint(*row) for row in rows]
