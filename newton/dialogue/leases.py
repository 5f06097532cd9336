"""One turn of a session at a time, and one that makes it shorter, whichever process it is; and what a turn that was cut
off has left open."""

from collections.abc import Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.providers.chat import ToolCall

SQL = load("newton.dialogue", "leases.sql")

LeasePurpose = Literal["turn", "compaction"]


class MessageFingerprint(NamedTuple):
    """A line that was found by its sign."""

    session_id: UUID
    position: int
    fingerprint: str


async def acquire(
    tx: Tx, holder: UUID, purpose: LeasePurpose, *, agent_id: UUID, session_id: UUID, seconds: float
) -> bool:
    """Whether the holder alone may do it, from now on for so many seconds; asking again keeps the right."""
    of = {"agent_id": agent_id, "session_id": session_id}
    row = await SQL["acquire"].fetch_one(tx, **of, purpose=purpose, holder=holder, seconds=seconds)
    return row is not None


async def renew(
    tx: Tx, holder: UUID, purpose: LeasePurpose, *, agent_id: UUID, session_id: UUID, seconds: float
) -> bool:
    """Whether the holder has the right still, from now on for so many seconds: it was neither released, nor taken by
    another."""
    of = {"agent_id": agent_id, "session_id": session_id}
    row = await SQL["renew"].fetch_one(tx, **of, purpose=purpose, holder=holder, seconds=seconds)
    return row is not None


async def release(tx: Tx, holder: UUID, purpose: LeasePurpose, *, agent_id: UUID, session_id: UUID) -> None:
    of = {"agent_id": agent_id, "session_id": session_id}
    await SQL["release"].execute(tx, **of, purpose=purpose, holder=holder)


async def list_open_calls(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[ToolCall]:
    """The calls of a session that nobody has answered, in their order."""
    return [
        ToolCall(*row) for row in await SQL["list_open_calls"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    ]


async def find_by_fingerprint(
    tx: Tx, fingerprints: Sequence[str], *, agent_id: UUID, ref: str
) -> list[MessageFingerprint]:
    """The lines with these signs in the session `ref` and in those whose names begin with it and `~`."""
    return [
        MessageFingerprint(*row)
        for row in await SQL["find_by_fingerprint"].fetch_all(
            tx, agent_id=agent_id, ref=ref, fingerprints=list(fingerprints)
        )
    ]
