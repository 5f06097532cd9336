"""What the worker and its jobs do with the queue."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from newton.db.pool import Database
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.errors import ConflictError, ProviderError
from newton.memory import agents
from newton.runtime.bootstrap import open_newton
from newton.runtime.jobs import queue
from newton.runtime.jobs.claims import claim_run, claim_runs
from newton.runtime.jobs.queue import ClaimedRun, JobOutcome, JobRun, LeaseLostError
from newton.runtime.jobs.schedule import JOBS
from newton.runtime.jobs.triggers import every_minutes
from newton.runtime.jobs.worker import JobWorker, RunFunction, WorkerTimings
from newton.runtime.wiring import AgentServices
from newton.settings import load
from tests.db.world import live
from tests.support import NOON, teller, until

WEEK = {"week": every_minutes(60 * 24 * 7)}
PACE = WorkerTimings(lease=5, renew=0.02, poll=0.02, tick=0.05, reconnect=0.05, drain=0.1)
CUT = """
select count(pg_terminate_backend(pid))
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""
DONE = JobOutcome(reason="it was due", result={})


@dataclass(slots=True)
class Held:
    """A run that goes on until it is told to end."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    broken_off: bool = False

    async def run(self, claimed: ClaimedRun) -> JobOutcome:
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.broken_off = True
            raise
        return DONE


@asynccontextmanager
async def at_work(db: Database, run: RunFunction, pace: WorkerTimings = PACE) -> AsyncGenerator[JobWorker]:
    stop, worker = asyncio.Event(), JobWorker(db, run, pace)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.work(WEEK, stop))
        try:
            yield worker
        finally:
            stop.set()


async def entry(db: Database, agent: UUID) -> JobRun | None:
    async with db.transaction(agent) as tx:
        return (await queue.latest_runs(tx, agent_id=agent)).get("week")


async def reaches(db: Database, agent: UUID, state: str) -> JobRun:
    async def there() -> bool:
        now = await entry(db, agent)
        return now is not None and now.state == state and (state != "queued" or now.error is not None)

    await until(there)
    found = await entry(db, agent)
    assert found
    return found


async def test_what_is_due_is_done_once_and_says_why(db: Database, agent: UUID) -> None:
    # R6
    ran: list[str] = []

    async def run(claimed: ClaimedRun) -> JobOutcome:
        ran.append(claimed.agent)
        return JobOutcome(reason="it was due", result={"things": 2})

    async with at_work(db, run), at_work(db, run):
        done = await reaches(db, agent, "done")
    assert ran == ["ana"]
    assert (done.reason, done.result, done.error, done.attempts) == ("it was due", {"things": 2}, None, 1)
    assert done.duration is not None and done.duration >= timedelta()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ProviderError("The model does not answer.", hint="Wait."), "The model does not answer."),
        (ValueError("Ana said that she is ill"), "ValueError at test_worker.py:"),
        (TimeoutError(), "the run timed out"),
    ],
)
async def test_what_fails_waits_for_its_next_attempt_and_the_worker_goes_on(
    db: Database, agent: UUID, error: Exception, said: str
) -> None:
    # S7: of a failure that nobody expected no words are kept
    async def run(claimed: ClaimedRun) -> JobOutcome:
        raise error

    async with at_work(db, run) as worker:
        failed = await reaches(db, agent, "queued")
        assert failed.error is not None and failed.error.startswith(said) and "ill" not in failed.error
        assert failed.attempts == 1
        with pytest.raises(type(error)):
            await JobWorker(db, run, PACE).run_once(agent_id=agent, job_id=failed.job_id)
        worker.run = Held().run
        failed = await reaches(db, agent, "queued")
    assert failed.attempts == 2


async def test_a_run_that_takes_longer_than_its_lease_is_kept(db: Database, agent: UUID) -> None:
    held = Held()
    async with at_work(db, held.run, replace(PACE, lease=0.2)):
        await held.begun.wait()
        async with db.transaction(agent) as tx:
            first = await tx.fetchval("select leased_until from runtime.jobs")

        async def renewed() -> bool:
            async with db.transaction(agent) as tx:
                return await tx.fetchval(
                    "select leased_until > $1::timestamptz + interval '0.3 second' from runtime.jobs", first
                )

        await until(renewed)
        held.go.set()
        done = await reaches(db, agent, "done")
    assert done.attempts == 1


async def test_a_run_that_another_has_taken_over_is_broken_off(db: Database, agent: UUID) -> None:
    # R6
    held = Held()
    async with at_work(db, held.run, replace(PACE, renew=0.01)) as worker:
        await held.begun.wait()
        async with db.transaction(agent) as tx:
            late = await tx.fetchval("select leased_until from runtime.jobs") + timedelta(
                hours=1
            )  # it is renewed meanwhile
        week: list[ClaimedRun] = []
        while not week:  # a claim passes over a run that is being renewed at that moment
            week = await claim_runs(db, "another", ["week"], limit=9, lease=timedelta(seconds=60), moment=late)

        async def dropped() -> bool:
            return not worker.running

        await until(dropped)
        assert held.broken_off and week[0].epoch == 2
        with pytest.raises(ConflictError, match="already runs the job"):
            await JobWorker(db, held.run, PACE).run_once(agent_id=agent, job_id=week[0].job_id)
    now = await entry(db, agent)
    assert now is not None and now.state == "running", "it is the other's to end"


async def test_whoever_stops_ends_what_is_quick_and_gives_back_what_is_not(db: Database, agent: UUID) -> None:
    # R12
    held = Held()
    async with at_work(db, held.run):
        await held.begun.wait()
    back = await entry(db, agent)
    assert back is not None and (back.state, back.attempts, back.error) == ("queued", 0, None)
    assert held.broken_off
    quick = Held()
    async with at_work(db, quick.run, replace(PACE, drain=5)) as worker:
        await quick.begun.wait()
        asyncio.get_running_loop().call_later(0.05, quick.go.set)
    assert not quick.broken_off and not worker.running
    ended = await entry(db, agent)
    assert ended is not None and ended.state == "done"


@pytest.mark.fault
async def test_a_lost_database_is_waited_for_and_found_again(clone: str) -> None:
    # R3
    owner, own = await asyncpg.connect(clone), await Database.open(clone, size=2)
    await agents.get_or_create_agent(own, "ana", now=NOON)
    held = Held()

    async def done() -> bool:
        return await owner.fetchval("select state = 'done' from runtime.jobs")

    async with at_work(own, held.run):
        await held.begun.wait()
        for _ in range(5):
            await owner.fetchval(CUT)
        held.go.set()
        await until(done)
    assert await owner.fetchval("select attempts <= 2 and error is null from runtime.jobs")
    await own.close()
    await owner.close()


async def test_doing_a_run_at_once_says_what_came_of_it_or_gives_it_back(db: Database, agent: UUID) -> None:
    async with db.transaction(agent) as tx:
        job_id = await queue.enqueue(tx, "week", agent_id=agent)
    held = Held()
    doing = asyncio.create_task(JobWorker(db, held.run, PACE).run_once(agent_id=agent, job_id=job_id))
    await held.begun.wait()
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    back = await entry(db, agent)
    assert back is not None and (back.state, back.attempts) == ("queued", 0)
    held.go.set()
    assert await JobWorker(db, held.run, PACE).run_once(agent_id=agent, job_id=job_id) == DONE
    assert issubclass(LeaseLostError, ConflictError)
    assert await claim_run(db, "x", agent_id=agent, job_id=job_id, lease=timedelta(seconds=1)) is None


WORDS = ("kettle", "cup", "tea", "mira", "priya", "redis", "oslo")


@pytest.fixture
async def newton(dsn: str, tmp_path: Path) -> AsyncIterator[AgentServices]:
    given = {"agent": "ana", "database_url": dsn, "embedding_provider": "none", "data_dir": tmp_path}
    async with open_newton(load(given, {}), on_new_agent=lambda _: None) as made:
        yield made


async def done(newton: AgentServices, name: str) -> JobOutcome:
    """The outcome with what it writes, as the worker ends it; only the queue is left out."""
    outcome = await JOBS[name].run(newton)
    if outcome.write is None:
        return outcome
    async with newton.scope.transaction() as tx:
        return JobOutcome(reason=outcome.reason, result=await outcome.write(tx))


async def test_every_job_says_why_and_the_second_time_finds_little_to_do(newton: AgentServices) -> None:
    # S002-16, S002-17, S002-18, S002-20, S002-21
    await live(newton.scope.db, "ana")
    said = {name: await done(newton, name) for name in JOBS}
    assert all(outcome.reason for outcome in said.values())
    told = json.dumps([[outcome.reason, outcome.result] for outcome in said.values()]).lower()
    assert [word for word in WORDS if word in told] == [], "no word of a memory is kept in the queue"
    again = {name: await done(newton, name) for name in JOBS}
    # a report, a proof, the figures of what was let go of, and a warning that stands until the tables are vacuumed
    always = {"verify", "retain", "check-vacuum"}
    assert {name for name, outcome in again.items() if outcome.result} <= always
    assert again["retain"].result == {"contexts": 0, "sessions": 0, "prompts": 0, "runs": 0}


async def test_sessions_that_their_doors_left_behind_get_their_summaries(newton: AgentServices) -> None:
    agent_id = newton.scope.agent_id
    async with newton.scope.db.transaction(agent_id) as tx:
        for ref, lines in (("long", 14), ("short", 3)):
            session_id = await sessions.ensure_session(tx, agent_id=agent_id, ref=ref, now=NOON)
            said = [
                Message(
                    role="user", content=f"We keep the {n} th boat in shed {n}.", said_at=NOON + timedelta(minutes=n)
                )
                for n in range(lines)
            ]
            await sessions.append(tx, said, session_id=session_id, ctx=teller(agent_id))
    first, second = await done(newton, "summarize"), await done(newton, "summarize")
    assert (first.result, second.result) == ({"sessions": 1}, None)


async def test_a_broken_ledger_is_a_failure_that_nothing_mends(newton: AgentServices, dsn: str) -> None:
    # R5
    await live(newton.scope.db, "ana")
    assert (await done(newton, "verify")).result
    owner = await asyncpg.connect(dsn, server_settings={"session_replication_role": "replica"})
    await owner.execute("update brain.decision_records set origin = 'elsewhere'")
    await owner.close()
    with pytest.raises(ConflictError, match="damaged at record 1"):
        await done(newton, "verify")


async def test_old_runs_go_and_the_last_of_each_job_stays(newton: AgentServices) -> None:
    async with newton.scope.transaction() as tx:
        for days in (100, 50, 40):
            await queue.enqueue(
                tx, "embed", agent_id=newton.scope.agent_id, moment=newton.scope.now() - timedelta(days=days)
            )
            await tx.execute(
                "update runtime.jobs set state = 'done', finished_at = slot, result = '{}' where state = 'queued'"
            )
    assert (await done(newton, "retain")).result == {"contexts": 0, "sessions": 0, "prompts": 0, "runs": 2}
