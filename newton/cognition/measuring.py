"""How well contexts served an agent in a period, read back in one unit of work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from uuid import UUID

from asyncpg import Record

from newton.clock import Clock
from newton.cognition.metrics import Context, Facts, Item, Metrics, Period, Turn, metrics
from newton.cognition.usage import used_of
from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import InputError
from newton.heart import retrospect
from newton.memory.periods import Periods

SQL = load("newton.cognition", "metrics.sql")

MOST_DAYS = 3_650
FORGOTTEN = "[forgotten]"  # what stands where a line of dialogue was


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """For one agent."""

    agent_id: UUID
    db: Database
    clock: Clock

    async def days(self, days: int = 7) -> Metrics:
        """The figures of the last days. Raises InputError for fewer than one."""
        if not 1 <= days <= MOST_DAYS:
            raise InputError(f"Metrics of {days} days are not possible.", hint="Give 1 or more, such as 7.")
        now = self.clock.now()
        periods = Periods(now - timedelta(days=2 * days), now - timedelta(days=days), now)
        async with self.db.work(self.agent_id) as tx:
            return metrics(await _period(tx, periods, agent_id=self.agent_id))


async def _period(tx: Tx, periods: Periods, *, agent_id: UUID) -> Period:
    between = {"agent_id": agent_id, "since": periods.start, "until": periods.now}
    cost = await SQL["cost"].one(tx, **between)
    assert cost is not None
    facts = await retrospect.learnt(tx, periods, agent_id=agent_id)
    return Period(
        since=periods.start,
        until=periods.now,
        turns=await _turns(tx, await SQL["served"].all(tx, **between), agent_id=agent_id),
        made=_by_day(await SQL["made"].all(tx, **between)),
        facts=Facts(facts.known, facts.confirmed),
        cost=cost["tokens"],
    )


async def _turns(tx: Tx, rows: Sequence[Record], *, agent_id: UUID) -> list[Turn]:
    bundle_ids = list({row["bundle_id"] for row in rows if row["bundle_id"]})
    loaded: dict[UUID, list[Record]] = {bundle_id: [] for bundle_id in bundle_ids}
    for item in await SQL["loaded"].all(tx, agent_id=agent_id, bundle_ids=bundle_ids):
        loaded[item["bundle_id"]].append(item)
    return [_turn(row, loaded.get(row["bundle_id"], ())) for row in rows]


def _turn(row: Record, loaded: Sequence[Record]) -> Turn:
    by_model = row["answered_by"] == "model"
    return Turn(
        at=row["at"],
        session_id=row["session_id"],
        opening=row["opening"],
        how=row["how"],
        by_model=by_model,
        telling=by_model and FORGOTTEN not in (row["reply"], row["input"]),
        context=_context(row, loaded) if row["bundle_id"] else None,
    )


def _context(row: Record, loaded: Sequence[Record]) -> Context:
    texts = {item["memory_id"]: item["text"] for item in loaded}
    refs = {item["memory_id"]: item["ref"] for item in loaded}
    used = used_of(row["reply"], texts, given=row["input"], refs=refs)
    return Context(
        bundle_id=row["bundle_id"],
        frame=row["frame"],
        forced=row["forced"],
        profile=row["profile"],
        budget=row["budget"],
        tokens=row["tokens"],
        ms=row["ms"] or 0.0,
        items=tuple(Item(item["similarity"], item["cosine"], item["memory_id"] in used) for item in loaded),
    )


def _by_day(rows: Sequence[Record]) -> Mapping[date, Mapping[str, int]]:
    days: dict[date, dict[str, int]] = {}
    for row in rows:
        days.setdefault(row["day"], {})[row["kind"]] = row["memories"]
    return days
