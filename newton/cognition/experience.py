"""What became of contexts: which of their items the reply used, and how the decisions made upon them turned out."""

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypedDict, cast
from uuid import UUID

import numpy as np
from asyncpg import Record

from newton.cognition.fitting import Case
from newton.cognition.score import NEUTRALS
from newton.cognition.usage import used_of
from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.cognition", "experience.sql")

MOST_CONTEXTS = 1_000
UPON = timedelta(hours=1)  # so long after a context a decision is taken to rest on it
WEIGHTS = {"success": 2.0, "failure": 0.5}  # what an answer counts upon which a decision went well, or badly


class _Columns(TypedDict):
    """The candidates of a stored bundle: a column of values for each thing that is known of them."""

    memory_id: list[str]
    detail: list[str | None]
    features: dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class _Answered:
    """A context with its reply, as it is kept."""

    row: Record
    columns: _Columns

    @property
    def shown(self) -> list[int]:
        return [place for place, detail in enumerate(self.columns["detail"]) if detail]

    @property
    def memory_ids(self) -> list[UUID]:
        return [UUID(self.columns["memory_id"][place]) for place in self.shown]


async def cases(tx: Tx, *, agent_id: UUID, profile: str, features: Sequence[str]) -> list[Case]:
    """The latest contexts by that profile that a model answered, of which something was used and something was not."""
    rows = await SQL["answered"].all(tx, agent_id=agent_id, profile=profile, most=MOST_CONTEXTS)
    answered = [_Answered(row, cast("_Columns", json.loads(row["candidates"]))) for row in rows]
    known = {memory_id for one in answered for memory_id in one.memory_ids}
    forms = {r["memory_id"]: r for r in await SQL["forms"].all(tx, agent_id=agent_id, memory_ids=list(known))}
    made = [_case(one, forms, features) for one in answered]
    judged = [(r["decided_at"], r["outcome"]) for r in await SQL["judged"].all(tx, agent_id=agent_id)]
    return [case for case in weighed(made, judged) if case.telling]


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
        memory_id: forms[memory_id]["micro" if one.columns["detail"][place] == "micro" else "summary"]
        for place, memory_id in zip(one.shown, one.memory_ids, strict=True)
        if memory_id in forms
    }
    used = used_of(one.row["reply"], texts, given=one.row["input"])
    kept = one.columns["features"]
    table = [[kept[name][place] if name in kept else NEUTRALS[name] for name in features] for place in one.shown]
    return Case(
        at=one.row["created_at"],
        session_id=one.row["session_id"],
        features=np.array(table, dtype=np.float64).reshape(-1, len(features)),
        used=np.array([memory_id in used for memory_id in one.memory_ids], dtype=np.bool_),
    )
