"""State transitions of memories: the allowed ones, and the applied ones, each recorded with its reason.

A constraint of the database and docs/lifecycle.md must agree with ALLOWED_TRANSITIONS.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product, starmap
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id
from newton.memory.lookup import MemoryMention
from newton.memory.memory import Kind, WriteContext

SQL = load("newton.memory", "transitions.sql")

END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)  # as `moment`: the current state


class AllowedTransition(NamedTuple):
    """A transition that is allowed: `event` may change a memory of `kind` from `from_state` to `to_state`."""

    kind: Kind
    from_state: str
    event: str
    to_state: str


def _expand(kind: Kind, from_states: str, events: str, to_states: str) -> Iterable[AllowedTransition]:
    """Return an allowed transition for every combination of these states and events, each given as a list of words."""
    return starmap(AllowedTransition, product([kind], from_states.split(), events.split(), to_states.split()))


CAPPED_KINDS: tuple[Kind, ...] = ("event", "entity", "relation", "passage")
REPLACED_KINDS: tuple[Kind, ...] = ("artifact", "item")

ALLOWED_TRANSITIONS: frozenset[AllowedTransition] = frozenset(
    transition
    for transitions in (
        _expand("fact", "NEW", "confirmed", "CONFIRMED"),
        _expand("fact", "NEW CONFIRMED", "established", "CORE"),
        _expand("fact", "CORE", "unmarked", "NEW CONFIRMED"),
        _expand("fact", "NEW CONFIRMED CORE", "superseded expired merged generalized", "SUPERSEDED"),
        _expand("fact", "NEW CONFIRMED CORE SUPERSEDED", "disproved", "INACTIVE"),
        _expand("fact", "SUPERSEDED", "restored", "NEW CONFIRMED CORE"),
        _expand("fact", "INACTIVE", "restored", "NEW"),
        _expand("fact", "NEW CONFIRMED SUPERSEDED", "released", "CONFIRMED CORE SUPERSEDED"),
        _expand("fact", "CORE", "released", "CORE SUPERSEDED"),
        _expand("episode", "ACTIVE", "summarized", "SUMMARIZED"),
        _expand("episode", "ACTIVE SUMMARIZED", "archived", "ARCHIVED"),
        _expand("procedure", "ACTIVE INEFFECTIVE", "proved", "EFFECTIVE"),
        _expand("procedure", "ACTIVE EFFECTIVE", "failed", "INEFFECTIVE"),
        _expand("procedure", "EFFECTIVE INEFFECTIVE", "reopened", "ACTIVE"),
        _expand("procedure", "ACTIVE EFFECTIVE INEFFECTIVE", "retired", "RETIRED"),
        _expand("procedure", "RETIRED", "restored", "ACTIVE EFFECTIVE INEFFECTIVE"),
        _expand("censor", "CREATED", "released", "CREATED"),
        _expand("censor", "CREATED", "triggered", "ACTIVE"),
        _expand("censor", "CREATED ACTIVE", "escalated tightened", "ESCALATED"),
        _expand("censor", "ESCALATED", "relaxed", "ACTIVE"),
        _expand("censor", "CREATED ACTIVE ESCALATED", "retired", "RETIRED"),
        _expand("passage", "ACTIVE", "replaced", "SUPERSEDED"),
        _expand("passage", "SUPERSEDED", "restored", "ACTIVE"),
        _expand("passage", "ACTIVE", "released", "ACTIVE"),
        *(_expand(kind, "ACTIVE", "replaced", "SUPERSEDED") for kind in REPLACED_KINDS),
        _expand("decision", "RECORDED", "done", "PENDING"),
        _expand("decision", "RECORDED PENDING", "reviewed", "REVIEWED"),
        _expand("procedure", "ACTIVE EFFECTIVE INEFFECTIVE", "archived", "ARCHIVED"),
        _expand("procedure", "ARCHIVED", "retired", "RETIRED"),
        *(_expand(kind, "ACTIVE", "archived", "ARCHIVED") for kind in CAPPED_KINDS),
        *(_expand(kind, "ARCHIVED", "restored", "ACTIVE") for kind in (*CAPPED_KINDS, "procedure")),
        _expand("passage", "ARCHIVED", "replaced", "SUPERSEDED"),
        _expand("passage", "ARCHIVED", "released", "ARCHIVED"),
    )
    for transition in transitions
)


@dataclass(frozen=True, slots=True)
class PlannedTransition:
    """A transition to be applied. With `releases` it also ends the quarantine, and the state may stay the same."""

    memory_id: UUID
    event: str
    from_state: str
    to_state: str
    reason: str
    releases: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionRecord:
    """A transition that was applied. `origin` is the interface or job that applied it.

    `replaced_by` is set on the last transition of a fact that was replaced: the fact that replaced it.
    """

    changed_at: datetime
    event: str
    from_state: str
    to_state: str
    reason: str
    origin: str
    replaced_by: MemoryMention | None = None


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
    """Return the transitions that were applied to a memory, the oldest first."""
    rows = await SQL["list_transitions"].fetch_all(tx, agent_id=agent_id, memory_id=memory_id)
    return [TransitionRecord(**row) for row in rows]


class AppliedTransition(NamedTuple):
    """A transition that was applied, and the shortest form of the memory."""

    transition: PlannedTransition
    micro: str


async def list_applied_since(tx: Tx, moment: datetime, *, agent_id: UUID, origin: str) -> list[AppliedTransition]:
    """Return the transitions that the interface or job `origin` has applied since `moment`, the oldest first."""
    rows = await SQL["list_changed_since"].fetch_all(tx, agent_id=agent_id, origin=origin, since=moment)
    return [AppliedTransition(PlannedTransition(*step), micro) for *step, micro in rows]
