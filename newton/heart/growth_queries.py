"""Counts of memory activity in a period and in the period before it, for the growth report."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.times.time_expressions import ReportPeriods

SQL = load("newton.heart", "growth_queries.sql")


class CensorCounts(NamedTuple):
    """The counts of censor matches and of false positives in a period and in the period before it."""

    met: int
    false_positives: int
    met_before: int
    false_positives_before: int


class ProcedureCounts(NamedTuple):
    """A procedure with the counts of its uses in a period and in the period before it.

    `uses` also counts uses that neither succeeded nor failed.
    """

    name: str
    uses: int
    successes: int
    failures: int
    uses_before: int
    successes_before: int
    failures_before: int


class FactGrowthCounts(NamedTuple):
    """The counts of facts known at the end of a period, and learnt and confirmed in it.

    Fields whose name ends in "before" count the same for the period before.
    """

    known: int
    learnt: int
    confirmed: int
    known_before: int
    learnt_before: int
    confirmed_before: int


class EpisodeCounts(NamedTuple):
    """The counts of episodes created in a period and in the period before it."""

    episodes: int
    episodes_before: int


class MemoryStateChange(NamedTuple):
    """A notable change of the state of a censor, procedure or fact.

    `name` is the name of a procedure, otherwise the shortest form of the memory.
    """

    at: datetime
    kind: Literal["censor", "procedure", "fact"]
    state: str
    memory_id: UUID
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryGrowth:
    """The counts for a period and for the period before it, and the state changes in both, oldest first."""

    censors: CensorCounts
    procedures: tuple[ProcedureCounts, ...]
    facts: FactGrowthCounts
    episodes: EpisodeCounts
    state_changes: tuple[MemoryStateChange, ...]


async def read_growth(tx: Tx, periods: ReportPeriods, *, agent_id: UUID) -> MemoryGrowth:
    """Return the counts of censors, procedures, facts and episodes, and the state changes, of both periods."""
    both = {"agent_id": agent_id, **periods._asdict()}
    (censors,) = await SQL["count_censor_activations"].fetch_all(tx, **both)
    (episodes,) = await SQL["count_episodes"].fetch_all(tx, **both)
    uses = await SQL["count_procedure_uses"].fetch_all(tx, **both)
    changes = await SQL["list_state_changes"].fetch_all(tx, agent_id=agent_id, before=periods.before, now=periods.now)
    return MemoryGrowth(
        censors=CensorCounts(*censors),
        procedures=tuple(ProcedureCounts(*row) for row in uses),
        facts=await count_facts(tx, periods, agent_id=agent_id),
        episodes=EpisodeCounts(*episodes),
        state_changes=tuple(MemoryStateChange(*row) for row in changes),
    )


async def count_facts(tx: Tx, periods: ReportPeriods, *, agent_id: UUID) -> FactGrowthCounts:
    """Return the counts of facts for both periods."""
    (row,) = await SQL["count_facts"].fetch_all(tx, agent_id=agent_id, **periods._asdict())
    return FactGrowthCounts(*row)
