"""What became of contexts: which of their items the reply used, and how the decisions made upon them turned out."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np
from asyncpg import Record

from newton.cognition.fitting import Case
from newton.cognition.score import NEUTRALS
from newton.cognition.trace import Kept, read_trace, unpacked
from newton.cognition.usage import used_of
from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.cognition", "experience.sql")

MOST_CONTEXTS = 1_000
UPON = timedelta(hours=1)  # so long after a context a decision is taken to rest on it
WEIGHTS = {"success": 2.0, "failure": 0.5}  # what an answer counts upon which a decision went well, or badly


@dataclass(frozen=True, slots=True)
class _Answered:
    """A context with its reply, as it is kept. `names` are those of the features."""

    row: Record
    names: Sequence[str]
    shown: Sequence[Kept]


def _answered(row: Record) -> _Answered:
    trace = read_trace(row["trace"], said=row["input"])
    candidates, _ = unpacked(trace, row["memory_ids"], row["candidates"])
    return _Answered(row, trace.features, [kept for kept in candidates if kept.detail])


async def cases(tx: Tx, *, agent_id: UUID, profile: str, features: Sequence[str]) -> list[Case]:
    """The latest contexts by that profile that a model answered, of which something was used and something was not."""
    rows = await SQL["list_answered"].all(tx, agent_id=agent_id, profile=profile, max_rows=MOST_CONTEXTS)
    answered = [_answered(row) for row in rows]
    known = {kept.memory_id for one in answered for kept in one.shown}
    forms = {r["memory_id"]: r for r in await SQL["list_forms"].all(tx, agent_id=agent_id, memory_ids=list(known))}
    made = [_case(one, forms, features) for one in answered]
    judged = [(r["decided_at"], r["outcome"]) for r in await SQL["list_reviewed_decisions"].all(tx, agent_id=agent_id)]
    return [case for case in weighed(made, judged) if case.telling]


async def most_used(tx: Tx, *, agent_id: UUID) -> str | None:
    """The profile by which most contexts were made that a model answered; None when there is no such context."""
    row = await SQL["find_most_used_profile"].one(tx, agent_id=agent_id)
    return row["profile"] if row else None


def weighed(made: Sequence[Case], judged: Sequence[tuple[datetime, str]]) -> list[Case]:
    """The cases in the order of time; the last one before a decision counts by how that turned out. Pure."""
    ordered = sorted(made, key=lambda case: case.at)
    times = [case.at for case in ordered]
    for decided_at, outcome in judged:
        place = bisect_right(times, decided_at) - 1
        if place >= 0 and decided_at - times[place] <= UPON:
            ordered[place] = replace(ordered[place], weight=WEIGHTS.get(outcome, 1.0))
    return ordered


def _case(one: _Answered, forms: Mapping[UUID, Record], features: Sequence[str]) -> Case:
    texts = {
        kept.memory_id: forms[kept.memory_id]["micro" if kept.detail == "micro" else "summary"]
        for kept in one.shown
        if kept.memory_id in forms
    }
    used = used_of(one.row["reply"], texts, given=one.row["input"])
    rows = [dict(zip(one.names, kept.features, strict=True)) for kept in one.shown]
    table = [[given.get(name, NEUTRALS[name]) for name in features] for given in rows]
    return Case(
        at=one.row["created_at"],
        session_id=one.row["session_id"],
        features=np.array(table, dtype=np.float64).reshape(-1, len(features)),
        used=np.array([kept.memory_id in used for kept in one.shown], dtype=np.bool_),
    )
