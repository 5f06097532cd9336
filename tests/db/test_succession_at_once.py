"""Many who write at once: one value holds, none is lost, and nothing else is touched.

Planted and seen to fail: without the lock (`SQL["lock_keys"].run` not called) transactions that come second do not
see the first one's value, and the constraint `facts_single_value_excl` refuses them at commit with
ExclusionViolationError: nothing wrong is stored, but what they told is lost. Without lock and constraint two values
hold until somebody tells the next.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import Context
from uuid import UUID

import asyncpg
import pytest

from newton.db.pool import Database, Tx
from newton.errors import ConflictError, NotFoundError
from newton.heart.facts.attributes import set_cardinality
from newton.heart.facts.fact_store import NewFact, confirm, retract, supersede
from newton.heart.lifecycle import engine
from newton.memory import agents, store
from newton.memory.forgetting import forget
from newton.memory.memory import Trust
from newton.memory.store import MemoryConfirmation
from tests.cluster import count_lock_waits
from tests.db.telling import holding, known, on, says, states, tell
from tests.support import NOON, until

pytestmark = pytest.mark.slow

PEOPLE = [f"p{number}" for number in range(12)]


@pytest.fixture
async def crowd(dsn: str) -> AsyncIterator[Database]:
    """Room for many who write at once."""
    database = await Database.open(dsn, size=16)
    yield database
    await database.close()


@pytest.fixture
async def onlooker(dsn: str) -> AsyncIterator[Tx]:
    """A connection that sees what the others wait for."""
    connection = await asyncpg.connect(dsn)
    yield connection
    await connection.close()


async def waiting(onlooker: Tx, *, many: int = 1) -> bool:
    """Whether so many transactions of this database wait for another."""
    await onlooker.execute("select pg_stat_clear_snapshot()")
    return await count_lock_waits(onlooker) == many


async def refused(asked: Awaitable[None]) -> str:
    """The words of the refusal."""
    with pytest.raises(ConflictError) as refusal:
        await asked
    return str(refusal.value)


async def test_what_is_told_while_it_is_deleted_is_stored_anew(crowd: Database, onlooker: Tx, agent: UUID) -> None:
    # S002-16
    async with crowd.transaction(agent) as tx:
        await tell(tx, says("Oslo"), ctx=on(0, agent, trust="agent"))
        known_id = await known(tx, "Oslo", agent)

    async def retell() -> object:
        async with crowd.transaction(agent) as tx:
            return await tell(tx, says("Oslo", 1), ctx=on(1, agent))

    async with crowd.transaction(agent) as tx:
        # as the ruling on a deletion does
        await tx.fetch("select 1 from memory.memories where memory_id = $1 for no key update", known_id)
        telling = asyncio.create_task(retell(), context=Context())
        await until(lambda: waiting(onlooker))
        await forget(tx, [known_id], derived=False, reason="asked for", ctx=on(1, agent))
    assert await telling == ["new"]
    async with crowd.transaction(agent) as tx:
        assert await holding(tx, agent) == {"Oslo"}


async def test_of_fifty_values_told_at_once_the_newest_holds_and_none_is_lost(crowd: Database, agent: UUID) -> None:
    # S002-16
    async def learn(number: int) -> None:
        async with crowd.transaction(agent) as tx:
            liked = says(f"tea{number}", number, attribute="likes")
            await tell(tx, says(f"city{number}", number), liked, ctx=on(99, agent))
        async with crowd.transaction(agent) as tx:
            cities = {value for value in await holding(tx, agent) if value.startswith("city")}
            assert len(cities) == 1, "one at any time, and not only in the end"

    async with crowd.transaction(agent) as tx:
        await tell(
            tx, says("home", 0.5), says("milk", attribute="likes"), says("Rome", subject="Ben"), ctx=on(1, agent)
        )
    await asyncio.gather(*map(learn, range(50)))
    async with crowd.transaction(agent) as tx:
        found = await states(tx, agent)
        assert await holding(tx, agent) == {"city49", "Rome", "milk", *(f"tea{number}" for number in range(50))}
    assert len(found) == 103
    assert sum(state == "SUPERSEDED" for state in found.values()) == 50
    assert await engine.run_lifecycle(crowd, on(99, agent)) == []


async def test_of_fifty_who_put_theirs_in_the_place_of_one_fact_each_does_and_no_other_is_touched(
    crowd: Database, agent: UUID
) -> None:
    async def replace(number: int) -> None:
        async with crowd.transaction(agent) as tx:
            await tell(tx, says(f"tea{number}", 1, attribute="likes"), ctx=on(1, agent))
            await supersede(tx, milk, by_fact=await known(tx, f"tea{number}", agent), ctx=on(1, agent))

    async with crowd.transaction(agent) as tx:
        await tell(tx, says("milk", attribute="likes"), says("water", attribute="likes"), ctx=on(0, agent))
        milk = await known(tx, "milk", agent)
    await asyncio.gather(*map(replace, range(50)))
    async with crowd.transaction(agent) as tx:
        found = await states(tx, agent)
        assert await tx.fetchval("select count(*) from memory.links where other_id = $1", milk) == 50
        assert await tx.fetchval("select count(*) from memory.transitions") == 1
    assert {value for value, state in found.items() if state != "NEW"} == {"milk"}


async def test_two_who_would_close_a_circle_at_once_do_not(db: Database, agent: UUID, onlooker: Tx) -> None:
    async def second() -> None:
        async with db.transaction(agent) as tx:
            await supersede(tx, tea, by_fact=milk, ctx=on(1, agent))

    async with db.transaction(agent) as tx:
        await tell(tx, says("tea", attribute="likes"), says("milk", attribute="likes"), ctx=on(0, agent))
        tea, milk = await known(tx, "tea", agent), await known(tx, "milk", agent)
    async with asyncio.TaskGroup() as tasks, db.transaction(agent) as tx:
        await supersede(tx, milk, by_fact=tea, ctx=on(1, agent))
        other = tasks.create_task(refused(second()), context=Context())
        await until(lambda: waiting(onlooker))
    assert "already supersedes" in other.result()
    async with db.transaction(agent) as tx:
        assert await holding(tx, agent) == {"tea"}


async def release(tx: Tx, agent: UUID) -> None:
    assert await confirm(tx, await known(tx, "Bergen", agent), ref="c", source="s", ctx=on(9, agent))


async def take_back(tx: Tx, agent: UUID) -> None:
    await retract(tx, await known(tx, "Bergen", agent), ctx=on(9, agent))


@pytest.mark.parametrize(("trust", "change"), [("tool", release), ("user", take_back)])
async def test_who_changes_what_is_known_of_an_attribute_waits_for_who_writes_a_value_of_it(
    db: Database, agent: UUID, onlooker: Tx, trust: Trust, change: Callable[[Tx, UUID], Awaitable[None]]
) -> None:
    async def second() -> None:
        async with db.transaction(agent) as tx:
            await change(tx, agent)

    async with db.transaction(agent) as tx:
        await tell(tx, says("Oslo"), ctx=on(0, agent))
        await tell(tx, says("Bergen", 5), ctx=on(5, agent, trust=trust))
    async with asyncio.TaskGroup() as tasks, db.transaction(agent) as tx:
        await tell(tx, says("Rome", 9), ctx=on(9, agent))
        tasks.create_task(second(), context=Context())
        await until(lambda: waiting(onlooker))
    async with db.transaction(agent) as tx:
        assert await holding(tx, agent) == {"Rome"}
        assert (await states(tx, agent))["Oslo"] == "SUPERSEDED"


# --- the daily job beside those who learn ---


async def test_the_daily_job_restores_nothing_beside_a_value_that_is_being_written(
    db: Database, agent: UUID, onlooker: Tx
) -> None:
    async with db.transaction(agent) as tx:
        await tell(tx, says("Oslo"), says("Bergen", 1, until=9), ctx=on(1, agent))
    async with asyncio.TaskGroup() as tasks, db.transaction(agent) as tx:
        await tell(tx, says("Rome", 9), ctx=on(9, agent))
        job = tasks.create_task(engine.run_lifecycle(db, on(9, agent)), context=Context())
        await until(lambda: waiting(onlooker))
    assert job.result() == []
    async with db.transaction(agent) as tx:
        assert await holding(tx, agent) == {"Rome"}


async def test_the_daily_job_sees_a_value_that_came_after_it_began(
    db: Database, agent: UUID, onlooker: Tx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BATCH", 1)
    async with db.transaction(agent) as tx:
        await tell(tx, says("Oslo", until=9), says("Rome", subject="Ben"), ctx=on(0, agent))
        oslo = await known(tx, "Oslo", agent)
    async with asyncio.TaskGroup() as tasks, onlooker.transaction():
        await onlooker.execute("select from memory.memories where memory_id = $1 for update", oslo)
        job = tasks.create_task(engine.run_lifecycle(db, on(9, agent)))
        await until(lambda: waiting(onlooker))  # its first batch is Ana's; it knows of Ben's what was there before
        async with db.transaction(agent) as tx:
            await tell(tx, says("Paris", 1, subject="Ben"), ctx=on(1, agent))
    assert [step.memory_id for step in job.result()] == [oslo]
    async with db.transaction(agent) as tx:
        assert await holding(tx, agent) == {"Paris"}


async def test_two_daily_jobs_at_once_take_each_step_once(db: Database, agent: UUID, onlooker: Tx) -> None:
    async with db.transaction(agent) as tx:
        await tell(tx, says("tea", attribute="likes"), ctx=on(0, agent, trust="tool"))
        await tell(tx, says("tea", 1, attribute="likes"), ctx=on(1, agent, trust="agent"))
        await tell(tx, says("milk", attribute="likes", until=9), ctx=on(1, agent))
        ids = [await known(tx, value, agent) for value in ("tea", "milk")]
        unseen = MemoryConfirmation(memory_id=ids[0], ref="unseen", source="unseen")
        await store.confirm(tx, [unseen], ctx=on(2, agent))
    async with asyncio.TaskGroup() as tasks, onlooker.transaction():
        await onlooker.execute("select from memory.memories where memory_id = any($1) for update", ids)
        jobs = [tasks.create_task(engine.run_lifecycle(db, on(9, agent)), context=Context()) for _ in range(2)]
        await until(lambda: waiting(onlooker, many=2))
    steps = [step for job in jobs for step in job.result()]
    assert sorted(step.memory_id for step in steps) == sorted(ids)
    async with db.transaction(agent) as tx:
        made = await tx.fetch(
            "select event from memory.transitions where changed_at = $1 order by event", on(9, agent).now
        )
    assert [row["event"] for row in made] == ["expired", "released"]


async def test_values_of_an_attribute_are_reviewed_together_however_small_the_batch(
    db: Database, agent: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BATCH", 1)
    async with db.transaction(agent) as tx:
        for number, (city, single) in enumerate([("Oslo", True), ("Bergen", False), ("Rome", True), ("Paris", True)]):
            await set_cardinality(tx, "lives in", agent_id=agent, single=single)
            await tell(tx, says(city, number, until=9 if city == "Paris" else None), ctx=on(3, agent))
    assert await engine.run_lifecycle(db, on(4, agent)) == []
    due = await engine.run_lifecycle(db, on(9, agent), dry_run=True)
    assert [step.event for step in due] == ["restored", "expired"]
    assert await engine.run_lifecycle(db, on(9, agent)) == due
    async with db.transaction(agent) as tx:
        assert await holding(tx, agent) == {"Bergen", "Rome"}


# --- nothing else is touched ---


@pytest.mark.slow
async def test_a_thousand_supersessions_retire_what_they_are_of_and_nothing_else(tx: Tx) -> None:
    # S002-16
    chosen = random.Random(7)
    latest: dict[tuple[str, str], tuple[int, str]] = {}
    liked: defaultdict[str, list[str]] = defaultdict(list)
    gone: set[str] = set()
    for number in range(110):
        told: list[NewFact] = []
        for part in range(12):
            key = chosen.choice(PEOPLE), chosen.choice(["lives in", "works at", "lives in", "works at", "likes"])
            value, moment = f"v{number}.{part}", chosen.randrange(1_000)
            told.append(says(value, moment, subject=key[0], attribute=key[1]))
            if key[1] == "likes":
                liked[key[0]].append(value)
            else:
                older, latest[key] = sorted([latest.get(key, (-1, "")), (moment, value)], key=lambda of: of[0])
                gone |= {older[1]} - {""}
        await tell(tx, *told, ctx=on(1_000))
        person = chosen.choice(PEOPLE)
        if len(liked[person]) > 1:
            old, new = liked[person].pop(0), liked[person][-1]
            await supersede(tx, await known(tx, f" {old}"), by_fact=await known(tx, f" {new}"), ctx=on(1_000))
            gone.add(old)
    found = await states(tx)
    assert {value for value, state in found.items() if state == "SUPERSEDED"} == gone
    assert len(found) == 1_320
    assert len(gone) > 1_000


async def test_what_one_agent_learns_moves_nothing_of_another(db: Database, agent: UUID) -> None:
    ben = await agents.get_or_create_agent(db, "ben", now=NOON)

    async def learn(agent_id: UUID, number: int) -> None:
        async with db.transaction(agent_id) as tx:
            await tell(tx, says(f"city{number}", number), ctx=on(99, agent_id))

    await asyncio.gather(*(learn(agent_id, number) for number in range(10) for agent_id in (agent, ben)))
    async with db.transaction(ben) as tx:
        await retract(tx, await known(tx, "city9", ben), ctx=on(99, ben))
    await engine.run_lifecycle(db, on(100, ben))
    async with db.transaction(agent) as tx:
        assert await holding(tx, agent) == {"city9"}
        assert await holding(tx, ben) == set()
        hers = await known(tx, "city9", agent)
    async with db.transaction(ben) as tx:
        assert await holding(tx, ben) == {"city8"}
        with pytest.raises(NotFoundError):
            await retract(tx, hers, ctx=on(99, ben))
