"""The queue: claimed by one, ended by who holds it, noted once a slot whatever the clock does.

Planted and seen to fail here: `finish` without the epoch; `note_due` without its look at later slots (a clock that is
set back doubles what has run); the live index without `running` (a slow job runs beside itself).
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from newton.db.pool import Database, Tx
from newton.dialogue import sessions
from newton.memory import agents
from newton.runtime.jobs import queue
from newton.runtime.jobs.claims import (
    claim_runs,
    enqueue_due,
    list_agent_queues,
    mark_dead,
    release_runs,
    renew_leases,
)
from newton.runtime.jobs.job_settings import build_schedules
from newton.runtime.jobs.queue import (
    MAX_ATTEMPTS,
    ClaimedRun,
    JobFailure,
    JobOutcome,
    JobRun,
    LeaseLostError,
    RunResult,
)
from newton.runtime.jobs.triggers import daily, every_minutes
from tests.support import NOON

LEASE = timedelta(seconds=10)
TEN = {"ten": every_minutes(10)}
DONE = JobOutcome(reason="it was due", result={})


def after(**parts: float) -> datetime:
    return NOON + timedelta(**parts)


async def claimed(db: Database, holder: str, moment: datetime, *, most: int = 100) -> list[ClaimedRun]:
    return await claim_runs(db, holder, ["ten", "day", "other"], limit=most, lease=LEASE, moment=moment)


async def entries(db: Database, agent: UUID) -> dict[str, JobRun]:
    async with db.transaction(agent) as tx:
        return await queue.latest_runs(tx, agent_id=agent)


async def asked(db: Database, agent: UUID, name: str = "ten", moment: datetime = NOON) -> UUID:
    async with db.transaction(agent) as tx:
        return await queue.enqueue(tx, name, agent_id=agent, moment=moment)


def writing(agent: UUID, ref: str) -> JobOutcome:
    """An outcome that begins a session, which is to be seen if and only if the run was ended by it."""

    async def write(tx: Tx) -> RunResult:
        await sessions.ensure_session(tx, agent_id=agent, ref=ref, now=NOON)
        return {"written": 1}

    return JobOutcome(reason="it was due", write=write)


async def written(db: Database, agent: UUID) -> Sequence[str]:
    async with db.transaction(agent) as tx:
        return [row["ref"] for row in await tx.fetch("select ref from dialogue.sessions order by ref")]


async def test_what_is_due_is_noted_for_every_agent_by_whoever_comes_and_once(db: Database, agent: UUID) -> None:
    # R6
    await agents.get_or_create_agent(db, "ben", now=NOON)
    await asyncio.gather(*(enqueue_due(db, TEN, moment=after(minutes=5)) for _ in range(3)))
    both = await claimed(db, "one", after(minutes=5))
    assert [(one.agent, one.slot, one.epoch, one.attempts) for one in sorted(both, key=lambda one: one.agent)] == [
        ("ana", NOON, 1, 1),
        ("ben", NOON, 1, 1),
    ]
    assert await claimed(db, "two", after(minutes=5)) == []


async def test_two_who_claim_at_once_never_get_the_same(db: Database) -> None:
    # R6
    for n in range(20):
        await asked(db, await agents.get_or_create_agent(db, f"agent-{n}", now=NOON))
    got = await asyncio.gather(*(claimed(db, f"worker {n}", NOON, most=7) for n in range(3)))
    assert sorted(len(one) for one in got) == [6, 7, 7]
    assert len({one.job_id for some in got for one in some}) == 20


async def test_missed_slots_are_one(db: Database, agent: UUID) -> None:
    # R7: of the days on which nobody looked, one run
    await enqueue_due(db, {"day": daily(3)}, moment=after(days=9))
    (one,) = await claimed(db, "one", after(days=9))
    assert one.slot == daily(3).last_slot(after(days=9))
    await queue.finish(db, one, DONE, moment=after(days=9))
    await enqueue_due(db, {"day": daily(3)}, moment=after(days=9, minutes=1))
    assert await claimed(db, "one", after(days=9, minutes=1)) == []


async def test_a_job_waits_or_runs_once_however_long_it_takes(db: Database, agent: UUID) -> None:
    await enqueue_due(db, TEN, moment=NOON)
    (one,) = await claimed(db, "one", NOON)
    await renew_leases(db, "one", [one], lease=LEASE, moment=after(seconds=600))
    await enqueue_due(db, TEN, moment=after(seconds=601))
    assert await claimed(db, "two", after(seconds=602)) == []
    assert await asked(db, agent) == one.job_id, "who asks for it gets the run that is at work"
    await queue.finish(db, one, DONE, moment=after(seconds=601))
    await enqueue_due(db, TEN, moment=after(seconds=603))
    (two,) = await claimed(db, "two", after(seconds=603))
    assert two.slot == after(minutes=10)


@pytest.mark.parametrize("seed", range(4))
async def test_a_clock_that_leaps_neither_doubles_nor_skips(db: Database, agent: UUID, seed: int) -> None:
    # R7
    dice, now, high = random.Random(seed), NOON, NOON
    ran: list[datetime] = []
    for _ in range(60):
        leap = dice.choice([0, 0, 0, 0, -1, 1]) * timedelta(hours=dice.uniform(0, 1.5))
        now += leap + timedelta(minutes=dice.uniform(0, 25))
        high = max(high, now)
        await enqueue_due(db, TEN, moment=now)
        for one in await claimed(db, "one", now):
            ran.append(one.slot)
            await queue.finish(db, one, dice.choice([DONE, JobOutcome(reason="nothing to do")]), moment=now)
        if dice.random() < 0.2:
            async with db.transaction(agent) as tx:
                await queue.delete_old_runs(tx, agent_id=agent, before=now + timedelta(days=1))
        assert ran[-1] == TEN["ten"].last_slot(high), "the last slot that has come has run"
    assert len(set(ran)) == len(ran) and ran == sorted(ran)


async def test_a_time_of_the_settings_runs_once_when_summer_time_ends_and_the_clock_is_set_back(
    db: Database, agent: UUID
) -> None:
    # R7
    table = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "jitter": 60}
    schedules = {"remind": build_schedules({"remind": table})["remind"]}
    first, second = datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 26, 1, 30, tzinfo=UTC)
    ran: list[datetime] = []
    # the hour comes twice on the 25th, and then somebody sets the clock back by half an hour
    for now in (first, first.replace(hour=1), first.replace(minute=59), first.replace(hour=12), second):
        moment = now + timedelta(minutes=2)
        await enqueue_due(db, schedules, moment=moment)
        for run in await claim_runs(db, "one", ["remind"], limit=5, lease=timedelta(seconds=10), moment=moment):
            ran.append(run.slot)
            await queue.finish(db, run, DONE, moment=moment)
    assert ran == [first, second]


async def test_a_clock_that_was_wrong_by_years_does_not_stop_the_schedule(db: Database, agent: UUID) -> None:
    # R7
    for moment in (after(days=4_000), after(minutes=20)):
        await enqueue_due(db, TEN, moment=moment)
        (one,) = await claimed(db, "one", moment)
        await queue.finish(db, one, DONE, moment=moment)
        assert one.slot == TEN["ten"].last_slot(moment)


async def test_who_was_taken_over_writes_nothing(db: Database, agent: UUID) -> None:
    # R6
    await asked(db, agent)
    (old,) = await claimed(db, "one", NOON)
    assert await claimed(db, "two", after(seconds=9)) == [], "the lease holds"
    (new,) = await claimed(db, "one", after(seconds=10))
    assert (new.holder, new.epoch) == (old.holder, old.epoch + 1), "the same process may be the one that takes over"
    with pytest.raises(LeaseLostError):
        await queue.finish(db, old, writing(agent, "old"))
    assert await queue.fail(db, old, JobFailure("late", LEASE)) is None
    assert await written(db, agent) == []
    ended = await queue.finish(db, new, writing(agent, "new"))
    assert await written(db, agent) == ["new"] and ended.result == {"written": 1}
    with pytest.raises(LeaseLostError):
        await queue.finish(db, new, writing(agent, "twice"))
    assert await written(db, agent) == ["new"]


async def test_a_lease_that_is_over_is_still_good_as_long_as_nobody_has_taken_it(db: Database, agent: UUID) -> None:
    await asked(db, agent)
    (one,) = await claimed(db, "one", NOON)
    assert await renew_leases(db, "one", [one], lease=LEASE, moment=after(seconds=60)) == {one.job_id: 1}
    assert await claimed(db, "two", after(seconds=69)) == []
    assert await renew_leases(db, "two", [one], lease=LEASE) == {}
    await queue.finish(db, one, DONE)
    assert await renew_leases(db, "one", [one], lease=LEASE) == {}


async def test_what_is_given_back_is_due_at_once_and_was_not_tried(db: Database, agent: UUID) -> None:
    # R12
    await asked(db, agent)
    (one,) = await claimed(db, "one", NOON)
    await release_runs(db, "two", moment=NOON)
    assert (await entries(db, agent))["ten"].state == "running"
    await release_runs(db, "one", moment=NOON)
    (again,) = await claimed(db, "two", NOON)
    assert again.attempts == 1
    with pytest.raises(LeaseLostError):
        await queue.finish(db, one, DONE)


async def test_a_run_that_fails_eight_times_is_given_up_until_somebody_asks_for_it(db: Database, agent: UUID) -> None:
    # R9
    await asked(db, agent)
    now, states = NOON, list[str | None]()
    for n in range(MAX_ATTEMPTS):
        (bad,) = await claimed(db, "one", now)
        assert bad.attempts == n + 1
        states.append(await queue.fail(db, bad, JobFailure(f"broken {n}", timedelta(minutes=1)), moment=now))
        assert await claimed(db, "one", now + timedelta(seconds=59)) == [], "it waits"
        now += timedelta(minutes=1)
    assert states == ["queued"] * 7 + ["dead"]
    async with db.transaction(agent) as tx:
        (given_up,) = await queue.list_dead(tx, agent_id=agent)
        assert (given_up.name, given_up.error, given_up.attempts) == ("ten", "broken 7", 8)
        assert await queue.retry_dead(tx, "other", agent_id=agent) == []
        assert await queue.retry_dead(tx, None, agent_id=agent, moment=now) == ["ten"]
        assert await queue.list_dead(tx, agent_id=agent) == []
    (again,) = await claimed(db, "one", now)
    assert again.attempts == 1
    await queue.finish(db, again, DONE, moment=now)
    assert (await entries(db, agent))["ten"].error is None


async def test_what_takes_its_holder_down_each_time_is_given_up(db: Database, agent: UUID) -> None:
    # R2
    await asked(db, agent)
    now = NOON
    for _ in range(MAX_ATTEMPTS):
        assert len(await claimed(db, "one", now)) == 1
        now += LEASE
    await mark_dead(db, moment=now)
    assert await claimed(db, "one", now) == []
    entry = (await entries(db, agent))["ten"]
    assert entry.state == "dead" and entry.error == "the worker stopped during every attempt"


async def test_of_runs_that_found_nothing_to_do_the_last_is_kept(db: Database, agent: UUID) -> None:
    for n in range(4):
        await enqueue_due(db, TEN, moment=after(minutes=10 * n))
        (one,) = await claimed(db, "one", after(minutes=10 * n))
        await queue.finish(db, one, DONE if n == 1 else JobOutcome(reason="nothing"), moment=after(minutes=10 * n))
    async with db.transaction(agent) as tx:
        slots = [row["slot"] for row in await tx.fetch("select slot from runtime.jobs order by slot")]
        assert slots == [after(minutes=10), after(minutes=30)]
        assert await queue.delete_old_runs(tx, agent_id=agent, before=after(days=99)) == 1, (
            "the last of a job is always kept"
        )


async def test_the_runs_of_a_job_are_listed_latest_first_and_bounded(db: Database, agent: UUID) -> None:
    for n in range(5):
        await enqueue_due(db, TEN, moment=after(minutes=10 * n))
        (one,) = await claimed(db, "one", after(minutes=10 * n))
        await queue.finish(db, one, JobOutcome(reason=f"run {n}", result={"n": n}), moment=after(minutes=10 * n))
    async with db.transaction(agent) as tx:
        assert [one.reason for one in await queue.list_runs(tx, "ten", agent_id=agent, limit=2)] == ["run 4", "run 3"]
        assert await queue.list_runs(tx, "day", agent_id=agent, limit=2) == []
        assert await queue.delete_old_runs(tx, agent_id=agent, before=NOON, max_runs=3) == 2
        kept = [one.reason for one in await queue.list_runs(tx, "ten", agent_id=agent, limit=9)]
    assert kept == ["run 4", "run 3", "run 2"]


async def test_the_worker_sees_the_queue_and_names_and_nothing_else(db: Database, agent: UUID) -> None:
    # S1
    await asked(db, agent)
    ben = await agents.get_or_create_agent(db, "ben", now=NOON)
    assert [(one.name, one.live, one.dead) for one in await list_agent_queues(db)] == [("ana", 1, 0), ("ben", 0, 0)]
    async with db.worker_transaction() as tx:
        assert await tx.fetchval("select current_user::text = runtime.worker_role()")
    async with db.transaction(ben) as tx:
        assert await queue.latest_runs(tx, agent_id=agent) == {}


async def test_a_jitter_delays_each_agent_by_its_own_time_within_the_limit(db: Database, agent: UUID) -> None:
    # R7
    others = [await agents.get_or_create_agent(db, f"agent-{n}", now=NOON) for n in range(5)]
    schedules = {"ten": replace(every_minutes(10), jitter_seconds=300)}
    for _ in range(2):
        await enqueue_due(db, schedules, moment=NOON)
    delays = set[timedelta]()
    for one in (agent, *others):
        async with db.transaction(one) as tx:
            (run,) = await tx.fetch("select slot, due_at from runtime.jobs")
        assert run["slot"] == NOON and timedelta() <= run["due_at"] - NOON <= timedelta(seconds=300)
        delays.add(run["due_at"] - NOON)
    assert len(delays) > 1, "agents do not run at the same moment"
