"""Every job on a mind that has lived: it says why, does it once, and keeps no word of anybody."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.errors import ConflictError
from newton.runtime.bootstrap import open_newton
from newton.runtime.jobs import queue
from newton.runtime.jobs.queue import JobOutcome
from newton.runtime.jobs.schedule import JOBS
from newton.runtime.wiring import AgentServices
from newton.settings import load
from tests.db.world import live
from tests.support import NOON, teller

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
