"""What was decided in a period and in the one before it, read back for the report of growth."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.brain import reading
from newton.brain.choice import Judged
from newton.brain.reading import Filter, Listed
from newton.brain.repeating import Made, Near, Repeats, Vector, Weighed, near_failures, repeats
from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.periods import Periods

SQL = load("newton.brain", "retrospect.sql")

MOST_OVERDUE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The decisions of a period: how many, how many waited for their outcome at its end past the date to look again,
    and what is known of mistakes that were made again."""

    made: int
    overdue: int
    repeats: Repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrospect:
    """Both periods. `judged` is the whole record up to now, in the order in which the decisions were made; `overdue`
    are those that wait the longest, at most MOST_OVERDUE."""

    judged: tuple[Judged, ...]
    now: Decided
    before: Decided
    overdue: tuple[Listed, ...]


async def retrospect(tx: Tx, periods: Periods, *, agent_id: UUID) -> Retrospect:
    """What was decided, and what became of it."""
    made = await _made(tx, periods, agent_id=agent_id)
    weighed = await _weighed(tx, made, near_failures(made, since=periods.before), agent_id=agent_id)
    now = [one for one in made if periods.current(one.decided_at)]
    before = [one for one in made if periods.former(one.decided_at)]
    due = await reading.listed(tx, Filter(due=True, most=MOST_OVERDUE), agent_id=agent_id, now=periods.now)
    late = [
        (await SQL["count_overdue"].all(tx, agent_id=agent_id, now=at))[0][0] for at in (periods.now, periods.start)
    ]
    judged = await reading.judged(tx, agent_id=agent_id)
    return Retrospect(
        judged=tuple(one for one in judged if one.reviewed_at <= periods.now),
        now=Decided(made=len(now), overdue=late[0], repeats=repeats(now, weighed)),
        before=Decided(made=len(before), overdue=late[1], repeats=repeats(before, weighed)),
        overdue=tuple(due),
    )


async def _made(tx: Tx, periods: Periods, *, agent_id: UUID) -> list[Made]:
    """Vectors are read by themselves: joined to a table that was just filled, they take many times as long."""
    rows = await SQL["list_decided"].all(tx, agent_id=agent_id, since=periods.before, now=periods.now)
    vectors = await _vectors(tx, [row["decision_id"] for row in rows], agent_id=agent_id)
    return [Made(**row, vector=vectors.get(row["decision_id"])) for row in rows]


async def _vectors(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID) -> dict[UUID, Vector]:
    model = await SQL["find_main_model"].one(tx, agent_id=agent_id)
    if model is None:
        return {}
    rows = await SQL["list_vectors"].all(tx, agent_id=agent_id, model_id=model["model_id"], memory_ids=memory_ids)
    return {row["memory_id"]: row["embedding"].to_numpy().astype("float32") for row in rows}


async def _weighed(tx: Tx, made: Sequence[Made], near: Sequence[Near], *, agent_id: UUID) -> list[Weighed]:
    rows = await SQL["assess_pairs"].all(
        tx,
        agent_id=agent_id,
        decision_ids=[pair.decision_id for pair in near],
        failed_ids=[pair.failed_id for pair in near],
    )
    known = {one.decision_id: one for one in made}
    return [
        Weighed(
            near=pair,
            decided_at=known[pair.decision_id].decided_at,
            outcome=known[pair.decision_id].outcome,
            description=row["description"],
            failed=row["failed"],
            sharing=row["sharing"],
            answered=row["answered"],
            shown=row["shown"],
        )
        for pair, row in zip(near, rows, strict=True)
    ]
