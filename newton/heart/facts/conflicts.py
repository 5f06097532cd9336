"""Conflicts: pairs of current facts that may exclude each other, and decisions on such pairs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, NamedTuple
from uuid import UUID

from asyncpg import Record
from pydantic import Field

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError
from newton.heart import speakers
from newton.heart.facts import fact_store
from newton.heart.facts.fact_edits import merge_duplicates
from newton.heart.facts.fact_store import NewFact
from newton.heart.lifecycle.engine import LifecycleContext, review
from newton.memory import store
from newton.memory.memory import Trust
from newton.memory.store import LinkType

SQL = load("newton.heart.facts", "conflicts.sql")

MAX_CONFLICTS = 1_000

concerns_safety = speakers.concerns_safety  # a rule of whom it takes to replace a fact

# What a pair is: the newer fact replaces the older one, the newer one is wrong, both hold, or both say the same.
Settlement = Literal["newer", "older", "both", "same"]


@dataclass(frozen=True, slots=True)
class FactVersion:
    """One fact of a pair. `since` is the time of its last statement; `is_vouched` means that a person confirmed it."""

    memory_id: UUID
    text: str
    state: str
    trust: Trust
    since: datetime
    is_vouched: bool


class PairPosition(NamedTuple):
    """The place of a pair in the list of pairs, the newest first."""

    found_at: datetime
    first_id: UUID
    second_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class FactPair:
    """Two current facts that may contradict each other. `newer` is the one that was stated later.

    The stored link leads from the newer fact to the older one if `is_from_newer`.
    """

    found_at: datetime
    newer: FactVersion
    older: FactVersion
    link: Annotated[LinkType, Field(exclude=True)] = "contradicts"
    is_from_newer: Annotated[bool, Field(exclude=True)] = True

    @property
    def first_id(self) -> UUID:
        """The fact from which the link leads."""
        return self.newer.memory_id if self.is_from_newer else self.older.memory_id

    @property
    def second_id(self) -> UUID:
        """The fact to which the link leads."""
        return self.older.memory_id if self.is_from_newer else self.newer.memory_id

    @property
    def position(self) -> PairPosition:
        """Return the place of the pair in a list."""
        return PairPosition(self.found_at, self.first_id, self.second_id)

    @property
    def may_be_replaced(self) -> bool:
        """True if the newer fact may replace the older one without a decision by a person."""
        older = self.older
        return speakers.may_replace(
            self.newer.trust, older.text, state=older.state, trust=older.trust, is_vouched=older.is_vouched
        )


async def list_conflicts(
    tx: Tx,
    *,
    agent_id: UUID,
    memory_id: UUID | None = None,
    limit: int = MAX_CONFLICTS,
    after: PairPosition | None = None,
) -> list[FactPair]:
    """Return up to `limit` open conflicts after the place `after`, newest first; with `memory_id`, those of a fact."""
    place = after or (None, None, None)
    rows = await SQL["list_pairs"].fetch_all(
        tx,
        agent_id=agent_id,
        links=["contradicts"],
        decisions=["compatible"],
        memory_id=memory_id,
        max_rows=limit,
        last_found_at=place[0],
        last_first_id=place[1],
        last_second_id=place[2],
    )
    return [_to_pair(row) for row in rows]


async def count_conflicts(tx: Tx, *, agent_id: UUID) -> int:
    """Return the number of open conflicts."""
    row = await SQL["count_pairs"].fetch_one(tx, agent_id=agent_id, link="contradicts", decision="compatible")
    return row["number"] if row else 0


def _to_pair(row: Record) -> FactPair:
    newer, older = (
        FactVersion(*(row[f"{side}_{name}"] for name in ("id", "text", "state", "trust", "since", "is_vouched")))
        for side in ("newer", "older")
    )
    is_from_newer = row["first_id"] == newer.memory_id
    return FactPair(found_at=row["found_at"], newer=newer, older=older, link=row["link"], is_from_newer=is_from_newer)


async def settle(tx: Tx, pair: FactPair, settlement: Settlement, *, ctx: LifecycleContext) -> None:
    """Store the decision on a pair, and apply the state transitions that follow from it.

    `newer`: the newer fact supersedes the older one. `older`: the newer fact is wrong. `both`: they do not exclude each
    other. `same`: they are merged.
    """
    newer, older = pair.newer.memory_id, pair.older.memory_id
    if settlement == "newer":
        await fact_store.supersede(tx, older, by_fact=newer, ctx=ctx)
    elif settlement == "older":
        await fact_store.disprove(tx, newer, by_fact=older, ctx=ctx)
    elif settlement == "same":
        await merge_duplicates(tx, [(newer, older)], ctx=ctx)
    else:
        await store.add_links(tx, "compatible", [(pair.first_id, pair.second_id)], ctx=ctx)
        await review(tx, ctx, "fact", [newer, older])


async def contest(tx: Tx, older_id: UUID, newer: NewFact, *, ctx: LifecycleContext) -> UUID:
    """Store a fact beside one that it contradicts, so that both are unsettled; return the id of the stored fact.

    Raises ConflictError if both are one fact, or the stored one was retracted.
    """
    await fact_store.add_facts(tx, [newer], ctx=ctx)
    newer_id = await fact_store.find_fact_id(tx, newer, agent_id=ctx.agent_id)
    if newer_id == older_id:
        raise ConflictError("A fact cannot contradict itself.", hint="Give the text of another statement.")
    await fact_store.ensure_not_inactive(tx, newer_id, ctx=ctx)
    await store.add_links(tx, "contradicts", [(newer_id, older_id)], ctx=ctx)
    await review(tx, ctx, "fact", [newer_id, older_id])
    return newer_id
