"""Queries on the memories that the model was sent with earlier inputs of a session."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.cognition.session_context", "sent_memories.sql")


class ReplacedMemory(NamedTuple):
    """A fact that was sent and is not current any more, and the facts that took its place, the latest first."""

    memory_id: UUID
    text: str
    successor_ids: Sequence[UUID]
    successors: Sequence[str]

    @property
    def memory_ids(self) -> Sequence[UUID]:
        return (self.memory_id, *self.successor_ids)


async def list_replaced(
    tx: Tx, positions: Sequence[int], *, session_id: UUID, agent_id: UUID
) -> Sequence[ReplacedMemory]:
    """Return the facts that were sent with the inputs at these positions and have been replaced or withdrawn since."""
    rows = await SQL["list_replaced"].fetch_all(tx, agent_id=agent_id, session_id=session_id, positions=list(positions))
    return [ReplacedMemory(*row) for row in rows]
