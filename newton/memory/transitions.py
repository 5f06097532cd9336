"""The one way a memory changes its state: a step that is still due is taken and written down with its reason."""

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

END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)  # as of then everything is as it is


@dataclass(frozen=True, slots=True)
class PlannedTransition:
    """One change that is due. `releases` lifts the quarantine; then the state may stay as it is."""

    memory_id: UUID
    event: str
    from_state: str
    to_state: str
    reason: str
    releases: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionRecord:
    """One change that was made. `origin` says by what."""

    at: datetime
    event: str
    from_state: str
    to_state: str
    because: str
    origin: str


async def apply_transitions(tx: Tx, planned: Sequence[PlannedTransition], *, ctx: WriteContext) -> set[UUID]:
    """Takes the steps, at most one for each memory, and returns whose were taken.

    A memory that has left the state meanwhile stays where it is: who comes second changes nothing.
    """
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
    """Every change of a memory's state, the oldest first."""
    rows = await SQL["list_transitions"].fetch_all(tx, agent_id=agent_id, memory_id=memory_id)
    return [TransitionRecord(**row) for row in rows]


class AppliedTransition(NamedTuple):
    """A step that was taken, and the words of the memory that took it."""

    transition: PlannedTransition
    micro: str


async def list_applied_since(tx: Tx, moment: datetime, *, agent_id: UUID, origin: str) -> list[AppliedTransition]:
    """What became of memories from a moment on by whoever goes by that name, the oldest change first."""
    rows = await SQL["list_changed_since"].fetch_all(tx, agent_id=agent_id, origin=origin, since=moment)
    return [AppliedTransition(PlannedTransition(*step), micro) for *step, micro in rows]
