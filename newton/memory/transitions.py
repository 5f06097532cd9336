"""The one way a memory changes its state: a step that is still due is taken and written down with its reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id
from newton.memory.memory import Teller

SQL = load("newton.memory", "transitions.sql")

END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)  # as of then everything is as it is


@dataclass(frozen=True, slots=True)
class Step:
    """One change that is due. `releases` lifts the quarantine; then the state may stay as it is."""

    memory_id: UUID
    event: str
    before: str
    after: str
    because: str
    releases: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One change that was made. `origin` says by what."""

    at: datetime
    event: str
    from_state: str
    to_state: str
    because: str
    origin: str


async def move(tx: Tx, steps: Sequence[Step], *, ctx: Teller) -> set[UUID]:
    """Takes the steps, at most one for each memory, and returns whose were taken.

    A memory that has left the state meanwhile stays where it is: who comes second changes nothing.
    """
    if not steps:
        return set()
    rows = await SQL["apply_transitions"].all(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[step.memory_id for step in steps],
        transition_ids=[new_id() for _ in steps],
        events=[step.event for step in steps],
        from_states=[step.before for step in steps],
        to_states=[step.after for step in steps],
        reasons=[step.because for step in steps],
        releases=[step.releases for step in steps],
        now=ctx.now,
        origin=ctx.origin,
    )
    return {row["memory_id"] for row in rows}


async def history(tx: Tx, *, agent_id: UUID, memory_id: UUID) -> list[Transition]:
    """Every change of a memory's state, the oldest first."""
    rows = await SQL["list_transitions"].all(tx, agent_id=agent_id, memory_id=memory_id)
    return [Transition(**row) for row in rows]


class Changed(NamedTuple):
    """A step that was taken, and the words of the memory that took it."""

    step: Step
    micro: str


async def changed_since(tx: Tx, moment: datetime, *, agent_id: UUID, origin: str) -> list[Changed]:
    """What became of memories from a moment on by whoever goes by that name, the oldest change first."""
    rows = await SQL["list_changed_since"].all(tx, agent_id=agent_id, origin=origin, since=moment)
    return [Changed(Step(*step), micro) for *step, micro in rows]
