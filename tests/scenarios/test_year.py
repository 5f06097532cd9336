"""A year of life with the lifecycle: all states are reached, all changes legal, and nothing is done twice.

Planted and seen to fail here: `move` without `m.state = s.from_state` (two jobs take a step twice, and a change begins
where none ended); an episode archived whatever its age, or summarized again; a second pack that overwrites the whole
text, or none; a fact that is told to stay where it is; a retired censor that lives on; a fact that moves and is noted
as it was; a run that commits after `move` and before what follows from it. The lock of an attribute is held to by
`tests/db/test_succession_at_once.py`.
"""

import asyncio
import random
import zlib
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast
from uuid import UUID

import pytest

from bench.environment import vacuum_analyze
from newton.db.pool import Database, Tx
from newton.heart.lifecycle import engine
from newton.heart.lifecycle.engine import MAX_SUMMARIZED_CHARACTERS
from newton.memory import agents
from newton.memory.store import ALLOWED_TRANSITIONS
from tests.db.telling import on
from tests.scenarios.year import DAYS, Size, Year
from tests.support import NOON

QUICK = Size(facts=150, episodes=40)
HALF = Size(facts=75, episodes=20, procedures=25, censors=15)
WHOLE = Size(facts=600, episodes=150)
BEGINS = {"fact": "NEW", "episode": "ACTIVE", "procedure": "ACTIVE", "censor": "CREATED"}

# Everything that the lifecycle may change, the same for two agents who lived the same.
SEEN = """
select
    m.kind, m.micro, m.state, m.quarantined, m.full_text, f.is_current, c.compressed,
    array(
        select (t.changed_at, t.event, t.from_state, t.to_state, t.reason)::text
        from memory.transitions as t
        where t.agent_id = m.agent_id and t.memory_id = m.memory_id
        order by t.transition_id
    ) as changes
from memory.memories as m
left join heart.facts as f using (agent_id, memory_id)
left join memory.archived_texts as c using (agent_id, memory_id)
where m.agent_id = $1
order by m.kind, m.micro, m.created_at, m.memory_id
"""  # the hash of a fact told anew contains an id


class PowerError(Exception):
    """Power is lost."""


class Brittle(Database):
    """Loses power after so many statements."""

    left: int | None = None

    @asynccontextmanager
    async def transaction(self, agent: UUID, *, snapshot: bool = False) -> AsyncGenerator[Tx]:
        async with super().transaction(agent, snapshot=snapshot) as tx:
            yield cast(Tx, _Counted(tx, self))

    def spend(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise PowerError


class _Counted:
    """A connection whose statements are counted."""

    def __init__(self, tx: Tx, owner: Brittle) -> None:
        self._tx, self._owner = tx, owner

    def __getattr__(self, name: str) -> object:
        call = getattr(self._tx, name)

        async def counted(*args: object) -> object:
            answer = await call(*args)
            self._owner.spend()
            return answer

        return counted if name in {"fetch", "fetchrow", "fetchval", "execute"} else call


@pytest.fixture
async def brittle(dsn: str) -> AsyncIterator[Brittle]:
    database = cast(Brittle, await Brittle.open(dsn, size=4))
    yield database
    await database.close()


async def seen(db: Database, agent: UUID) -> list[tuple[object, ...]]:
    async with db.transaction(agent) as tx:
        return [tuple(row) for row in await tx.fetch(SEEN, agent)]


async def survive(db: Brittle, agent: UUID, number: float, *, statements: int) -> int:
    """Runs the job, which loses power after so many statements; begins again if it did. Returns how often that was."""
    db.left = statements
    try:
        await engine.run_lifecycle(db, on(number, agent))
        return 0
    except PowerError:
        return 1
    finally:
        db.left = None


async def check_changes(db: Database, agent: UUID) -> None:
    """Every change is in the table and says why, and each begins where the one before it ended."""
    async with db.transaction(agent) as tx:
        changes = await tx.fetch(
            "select m.kind, m.memory_id, m.state, t.event, t.from_state, t.to_state, t.reason"
            " from memory.transitions as t join memory.memories as m using (agent_id, memory_id)"
            " order by t.memory_id, t.changed_at, t.transition_id"
        )
        every = await tx.fetch("select memory_id, kind, state from memory.memories")
    assert {(row["kind"], row["from_state"], row["event"], row["to_state"]) for row in changes} <= ALLOWED_TRANSITIONS
    assert all(row["reason"] for row in changes)
    now = {row["memory_id"]: BEGINS[row["kind"]] for row in every}
    for row in changes:
        assert row["from_state"] == now[row["memory_id"]], row
        now[row["memory_id"]] = row["to_state"]
    assert now == {row["memory_id"]: row["state"] for row in every}
    reached: defaultdict[str, set[str]] = defaultdict(set, {kind: {state} for kind, state in BEGINS.items()})
    for row in changes:
        reached[row["kind"]].add(row["to_state"])
    every_state = {
        kind: {s for c in ALLOWED_TRANSITIONS if c.kind == kind for s in (c.from_state, c.to_state)} for kind in BEGINS
    }
    every_state["procedure"] -= {"ARCHIVED"}  # a year of life stays far below the cap
    assert reached == every_state


async def check_texts(db: Database, agent: UUID, texts: Mapping[str, str]) -> None:
    """No word of an episode is lost, and each keeps as much at hand as its state says."""
    async with db.transaction(agent) as tx:
        rows = await tx.fetch(
            "select m.ref, m.state, m.full_text, c.compressed from memory.memories as m"
            " left join memory.archived_texts as c using (agent_id, memory_id) where m.kind = 'episode'"
        )
    assert {row["ref"] for row in rows} == texts.keys()
    for row in rows:
        text, cold = texts[row["ref"]], zlib.decompress(row["compressed"]).decode() if row["compressed"] else None
        match row["state"]:
            case "ACTIVE":
                assert (row["full_text"], cold) == (text, None)
            case "SUMMARIZED" if len(text) > MAX_SUMMARIZED_CHARACTERS:
                assert cold == text
                assert text.startswith(row["full_text"].removesuffix("…").rstrip())
            case "SUMMARIZED":
                assert (row["full_text"], cold) == (text, None)
            case _:
                assert (row["full_text"], cold) == (None, text)


async def check_facts(db: Database, agent: UUID, fewest: int) -> None:
    """What holds is what is current and not quarantined: of a single-valued attribute at most one is not contested."""
    async with db.transaction(agent) as tx:
        assert await tx.fetchval("select count(*) from heart.facts") >= fewest
        wrong = "f.is_current <> (m.state in ('NEW', 'CONFIRMED', 'CORE') and not m.quarantined)"
        join = "heart.facts as f join memory.memories as m using (agent_id, memory_id)"
        assert await tx.fetch(f"select m.full_text from {join} where {wrong}") == []
        many = (
            "select 1 from heart.facts where single_valued and is_current and not is_contested"
            " group by subject_key, attribute having count(*) > 1"
        )
        assert await tx.fetch(many) == []


async def check(db: Database, agent: UUID, year: Year) -> None:
    # S002-16, S002-17, S002-18, S002-19
    await check_changes(db, agent)
    await check_texts(db, agent, year.texts)
    await check_facts(db, agent, year.size.facts)


@pytest.mark.slow
async def test_a_year_reaches_every_state_and_no_day_does_anything_twice(db: Database, agent: UUID) -> None:
    year = Year(QUICK, seed=1)
    for number in range(DAYS):
        await year.happen(db, agent, number)
        if number % 3 == 0:
            await engine.run_lifecycle(db, on(number + 1, agent))
        if number % 15 == 0:
            before = await seen(db, agent)
            assert await engine.run_lifecycle(db, on(number + 1, agent)) == []
            assert await seen(db, agent) == before
    await check(db, agent, year)


@pytest.mark.fault
async def test_a_crash_after_any_statement_and_two_jobs_at_once_end_where_one_quiet_run_ends(
    brittle: Brittle, agent: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BATCH", 10)
    year, crashes = Year(HALF, seed=2), 0
    ben, carl = [await agents.get_or_create_agent(brittle, name, now=NOON) for name in ("ben", "carl")]
    for number in range(DAYS):
        for one in (agent, ben, carl):
            await year.happen(brittle, one, number)
        if number % 60 == 59:
            due = await engine.run_lifecycle(brittle, on(number + 1, agent), dry_run=True)
            assert len(await engine.run_lifecycle(brittle, on(number + 1, agent))) >= len(due) > 0
            statements = 0
            while await survive(brittle, ben, number + 1, statements=statements):
                statements += 1
            crashes += statements
            pair = await asyncio.gather(*(engine.run_lifecycle(brittle, on(number + 1, carl)) for _ in range(2)))
            assert {step.memory_id for step in pair[0]}.isdisjoint({step.memory_id for step in pair[1]})
            quiet = await seen(brittle, agent)
            assert await seen(brittle, ben) == quiet
            assert await seen(brittle, carl) == quiet
    assert crashes > 100
    await check(brittle, agent, year)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
async def test_a_whole_year_with_a_crash_every_third_day_is_like_one_without(
    brittle: Brittle, agent: UUID, dsn: str
) -> None:
    year, chosen, crashes = Year(WHOLE, seed=3), random.Random(4), 0
    ben = await agents.get_or_create_agent(brittle, "ben", now=NOON)
    for number in range(DAYS):
        for one in (agent, ben):
            await year.happen(brittle, one, number)
        if number % 3 and number != DAYS - 1:
            continue
        await engine.run_lifecycle(brittle, on(number + 1, agent))
        crashes += await survive(brittle, ben, number + 1, statements=chosen.randrange(16))
        await engine.run_lifecycle(brittle, on(number + 1, ben))
        assert await engine.run_lifecycle(brittle, on(number + 1, ben)) == []
        if number % 30 == 0:
            await vacuum_analyze(dsn)  # as the server does in its own time
    assert crashes > 30
    assert await seen(brittle, ben) == await seen(brittle, agent)
    await check(brittle, agent, year)
