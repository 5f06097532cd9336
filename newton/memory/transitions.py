"""State transitions of memories: applied if still due, and recorded with their reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id
from newton.memory.memory import WriteContext

SQL = load("newton.memory", "transitions.sql")

END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)  # as `moment`: the current state


@dataclass(frozen=True, slots=True)
class PlannedTransition:
    """A transition that is due. With `releases` it also ends the quarantine, and the state may stay the same."""

    memory_id: UUID
    event: str
    from_state: str
    to_state: str
    reason: str
    releases: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionRecord:
    """A transition that was applied. `origin` is the interface or job that applied it."""

    at: datetime
    event: str
    from_state: str
    to_state: str
    reason: str
    origin: str


async def apply_transitions(tx: Tx, planned: Sequence[PlannedTransition], *, ctx: WriteContext) -> set[UUID]:
    """Apply the transitions, at most one for each memory, and return the ids of the changed memories.

    A memory that is no longer in `from_state` is skipped."""
    if not planned:
        return set()
    rows = await SQL["apply_transitions"].fetch_all(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[step.memory_id for step in planned],
        transition_ids=[new_id() for _ in planned],
        events=[step.event for step in planned],
        from_states=[step.from_state for step in planned],
        to_states=[step.to_state for step in planned],
        reasons=[step.reason for step in planned],
        releases=[step.releases for step in planned],
        now=ctx.now,
        origin=ctx.origin,
    )
    return {row["memory_id"] for row in rows}


async def list_transitions(tx: Tx, *, agent_id: UUID, memory_id: UUID) -> list[TransitionRecord]:
    """Return the transitions of a memory, the oldest first."""
    rows = await SQL["list_transitions"].fetch_all(tx, agent_id=agent_id, memory_id=memory_id)
    return [TransitionRecord(**row) for row in rows]


class AppliedTransition(NamedTuple):
    """A transition that was applied, and the micro form of its memory."""

    transition: PlannedTransition
    micro: str


async def list_applied_since(tx: Tx, moment: datetime, *, agent_id: UUID, origin: str) -> list[AppliedTransition]:
    """Return the transitions that `origin` applied from `moment` on, the oldest first."""
    rows = await SQL["list_changed_since"].fetch_all(tx, agent_id=agent_id, origin=origin, since=moment)
    return [AppliedTransition(PlannedTransition(*step), micro) for *step, micro in rows]
