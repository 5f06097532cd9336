"""How well contexts served an agent in a period, read back in one unit of work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.clock import Clock
from newton.cognition.metrics import Context, Facts, Item, Metrics, Period, Turn, metrics
from newton.cognition.trace import Kept, Trace, read_trace, unpacked
from newton.cognition.usage import used_of
from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import InputError
from newton.heart import retrospect
from newton.memory.periods import Periods

SQL = load("newton.cognition", "metrics.sql")

MOST_DAYS = 3_650
FORGOTTEN = "[forgotten]"  # what stands where a line of dialogue was


class _Loaded(NamedTuple):
    """What a stored context was, and the memories that stood in it."""

    trace: Trace
    items: Sequence[Kept]


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
    cost = await SQL["sum_turn_tokens"].one(tx, **between)
    assert cost is not None
    facts = await retrospect.learnt(tx, periods, agent_id=agent_id)
    return Period(
        since=periods.start,
        until=periods.now,
        turns=await _turns(tx, await SQL["list_turns"].all(tx, **between), agent_id=agent_id),
        made=_by_day(await SQL["count_created"].all(tx, **between)),
        facts=Facts(facts.known, facts.confirmed),
        cost=cost["tokens"],
    )


async def _turns(tx: Tx, rows: Sequence[Record], *, agent_id: UUID) -> list[Turn]:
    loaded = [_loaded(row) if row["bundle_id"] else None for row in rows]
    known = {kept.memory_id for one in loaded if one for kept in one.items}
    forms = {
        row["memory_id"]: row for row in await SQL["list_forms"].all(tx, agent_id=agent_id, memory_ids=list(known))
    }
    return [_turn(row, one, forms) for row, one in zip(rows, loaded, strict=True)]


def _loaded(row: Record) -> _Loaded | None:
    """None for a bundle that another version of Newton has written."""
    try:
        trace = read_trace(row["trace"], said=row["made_for"])
        candidates, _ = unpacked(trace, row["memory_ids"], row["candidates"])
    except (ValueError, LookupError):
        return None
    return _Loaded(trace, [kept for kept in candidates if kept.detail])


def _turn(row: Record, loaded: _Loaded | None, forms: Mapping[UUID, Record]) -> Turn:
    by_model = row["answered_by"] == "model"
    return Turn(
        at=row["at"],
        session_id=row["session_id"],
        opening=row["opening"],
        how=row["how"],
        by_model=by_model,
        telling=by_model and FORGOTTEN not in (row["reply"], row["input"]),
        context=loaded and _context(row, loaded, forms),
    )


def _context(row: Record, loaded: _Loaded, forms: Mapping[UUID, Record]) -> Context:
    shown = [kept for kept in loaded.items if kept.memory_id in forms]
    texts = {kept.memory_id: str(forms[kept.memory_id][kept.detail or "summary"]) for kept in shown}
    refs = {memory_id: forms[memory_id]["ref"] for memory_id in texts}
    used = used_of(row["reply"], texts, given=row["input"], refs=refs)
    similarity, cosine = (loaded.trace.features.index(name) for name in ("similarity", "cosine"))
    return Context(
        bundle_id=row["bundle_id"],
        frame=row["frame"],
        forced=loaded.trace.frame.forced,
        profile=row["profile"],
        budget=row["budget"],
        tokens=row["tokens"],
        ms=sum(loaded.trace.timings_ms.values()),
        items=tuple(Item(kept.features[similarity], kept.features[cosine], kept.memory_id in used) for kept in shown),
    )


def _by_day(rows: Sequence[Record]) -> Mapping[date, Mapping[str, int]]:
    days: dict[date, dict[str, int]] = {}
    for row in rows:
        days.setdefault(row["day"], {})[row["kind"]] = row["memories"]
    return days
