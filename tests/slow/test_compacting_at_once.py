"""Processes that append to one conversation and make it shorter at the same time, and some that are killed then."""

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from newton.agent.compaction.service import LEASE_SECONDS, MAX_ROUNDS, CompactionService
from newton.clock import SystemClock
from newton.db.pool import Database
from newton.dialogue import branches, log, sessions
from newton.dialogue.compaction import entry_store
from newton.dialogue.compaction.presets import CompactionPreset, parse_preset
from newton.dialogue.compaction.progress_events import CompactionCompleted, CompactionEvent
from newton.dialogue.compaction.strategies import (
    CompactionBlock,
    CompactionStrategy,
    ViewState,
)
from newton.dialogue.view import count_view_tokens
from newton.providers.token_counter import count
from tests.support import NOON, agent_scope, teller, until
from tests.talks import turn

ROOT = Path(__file__).parents[2]
MOST = 6_000
STRATEGIES = "mask_outputs, tool_calls(age=4), threshold(recent=2), goal_batch(back=6)"
KILLS = 30

TALK = """
import asyncio, json, sys
from datetime import UTC, datetime
from uuid import UUID
from newton.agent.compaction.service import CompactionService
from newton.agent.services.sessions import SessionService
from newton.clock import SystemClock
from newton.db.pool import Database
from newton.dialogue.compaction.presets import parse_preset
from newton.dialogue.messages import Message
from newton.providers.chat import ToolCall
from newton.providers.token_counter import count
from tests.support import agent_scope

async def main(dsn, agent, ref, who, turns, strategies, most):
    db = await Database.open(dsn, size=2)
    scope = agent_scope(agent_id=UUID(agent), db=db, clock=SystemClock(), count_tokens=count, origin=who)
    def tell(event):
        print(type(event).__name__, flush=True)
    compaction = CompactionService(scope=scope, preset=parse_preset(strategies), on_event=tell)
    doors = SessionService(scope=scope, compaction=compaction, conversation_tokens=int(most),
        working_set_tokens=8_000)
    print("ready", flush=True)
    for n in range(int(turns)):
        def line(k, role, content, **more):
            return Message(role=role, content=content, said_at=datetime.now(UTC), ref=f"{who}:{n}:{k}", **more)
        call = ToolCall(f"{who}{n}", "read_file", json.dumps({"path": f"src/{who}{n}.py"}))
        output = chr(10).join(f"{k} {who} value {n}" for k in range(60))
        await doors.append(ref, [line(0, "user", f"{who} asks for part {n}.")])
        await doors.append(ref, [line(1, "assistant", "", calls=(call,))])
        await doors.append(ref, [line(2, "tool", output, name="read_file", tool_call_id=call.id)])
        await doors.append(ref, [line(3, "assistant", f"{who} has part {n}. " + "Well. " * 60)])
        await doors.compact(ref, max_tokens=int(most))
    if turns == "0":
        await doors.compact(ref, max_tokens=int(most))
    await db.close()

asyncio.run(main(*sys.argv[1:]))
"""


def talking(dsn: str, agent: UUID, *words: str) -> subprocess.Popen[str]:
    """A process that takes turns in a session: its name, who speaks, and how many turns."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    given = [sys.executable, "-c", TALK, dsn, str(agent), *words, STRATEGIES, str(MOST)]
    return subprocess.Popen(given, env=env, stdout=subprocess.PIPE, text=True)


def compacting(db: Database, agent: UUID) -> CompactionService:
    return CompactionService(
        preset=parse_preset(STRATEGIES),
        scope=agent_scope(agent_id=agent, db=db, clock=SystemClock(), count_tokens=count),
    )


async def texts(db: Database, agent: UUID, session_id: UUID) -> list[str]:
    async with db.transaction(agent) as tx:
        return [item.text for item in (await log.load_view(tx, agent_id=agent, session_id=session_id)).view]


@pytest.mark.fault
@pytest.mark.timeout(1_800)
async def test_two_processes_lose_nothing_and_tell_nothing_twice(db: Database, dsn: str, agent: UUID) -> None:
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="busy", now=NOON)
    running = [talking(dsn, agent, "busy", who, "80") for who in ("ana", "ben")]
    for process in running:
        said, _ = process.communicate(timeout=1_200)
        assert process.returncode == 0
        assert "Completed" in said
    async with db.transaction(agent) as tx:
        whole = await log.load_messages(
            tx, [log.MessageRange(0, log.MAX_POSITION)], agent_id=agent, session_id=session_id
        )
        read = await log.load_view(tx, agent_id=agent, session_id=session_id)
        made = [one.entry for one in await entry_store.list_entries(tx, agent_id=agent, session_id=session_id)]
    assert [one.position for one in whole] == list(range(640))
    for who in ("ana", "ben"):
        own = [one.message.ref for one in whole if (one.message.ref or "").startswith(who)]
        assert own == [f"{who}:{n}:{k}" for n in range(80) for k in range(4)], "nothing lost, and in its order"
    assert [p for item in read.view for p in range(item.first, item.last + 1)] == list(range(640))
    for one, other in combinations(made, 2):
        if one.first <= other.last and other.first <= one.last:
            if (one.first, one.last) == (other.first, other.last):  # asked for a size, it shortens one summary further
                older, newer = sorted((one, other), key=lambda entry: entry.made_at)
                assert newer.strategy == "limit" and newer.tokens < older.tokens, "nothing is told twice"
            inner, outer = sorted((one, other), key=lambda entry: entry.last - entry.first)
            assert outer.first <= inner.first and inner.last <= outer.last, "no block crosses another"
    assert count_view_tokens(read.view) < sum(one.tokens for one in whole) / 2


@pytest.mark.fault
@pytest.mark.timeout(1_800)
async def test_a_process_killed_in_the_middle_leaves_the_view_before_or_after(
    db: Database, dsn: str, agent: UUID
) -> None:
    dice = random.Random(50)
    async with db.transaction(agent) as tx:
        base = await sessions.ensure_session(tx, agent_id=agent, ref="base", now=NOON)
        lines = [line for n in range(30) for line in turn(n)]
        await sessions.append(tx, lines, session_id=base, ctx=teller(agent))

    async def branch(ref: str) -> UUID:
        async with db.transaction(agent) as tx:
            return await branches.create_branch(tx, ref, parent_id=base, from_position=None, ctx=teller(agent))

    steps = await stepwise(db, agent, await branch("undisturbed"))
    assert len(steps) > 2
    cut, blocked = 0, 0
    for number in range(KILLS):
        session_id = await branch(f"killed {number}")
        process = talking(dsn, agent, f"killed {number}", "ana", "0")
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for _ in range(dice.randrange(12)):
            process.stdout.readline()
        await asyncio.sleep(dice.uniform(0, 0.01))
        process.kill()
        process.communicate()
        await gone(dsn)
        left = await texts(db, agent, session_id)
        assert left in steps, "never between"
        cut += left != steps[-1]
        async with db.transaction(agent) as tx:
            until_ = await tx.fetchval(
                "select extract(epoch from expires_at - now()) from dialogue.leases where session_id = $1", session_id
            )
        assert until_ is None or until_ <= LEASE_SECONDS
        blocked += until_ is not None and until_ > 0
        view = await compacting(db, agent).load_view(session_id, max_tokens=MOST)
        assert view, "a view is served whoever holds the right to make it shorter"
    assert cut > KILLS / 4 and blocked > 0, "the kills come while there is work"
    await ends_as_if_nothing_had_been(db, agent, steps[-1])


@dataclass(slots=True)
class Once:
    """A strategy that has nothing more to do when it has changed something."""

    strategy: CompactionStrategy
    ran: bool = False

    @property
    def name(self) -> str:
        return self.strategy.name

    def plan(self, state: ViewState) -> Sequence[CompactionBlock]:
        return () if self.ran else self.strategy.plan(state)

    def hear(self, event: CompactionEvent) -> None:
        self.ran = self.ran or isinstance(event, CompactionCompleted)


async def stepwise(db: Database, agent: UUID, session_id: UUID) -> list[list[str]]:
    """The view after each run of a strategy, and the one before all of them."""
    found = [await texts(db, agent, session_id)]
    for strategy in parse_preset(STRATEGIES).strategies:
        for _ in range(MAX_ROUNDS):
            once = Once(strategy)
            preset = CompactionPreset(strategies=(once,))
            one = replace(compacting(db, agent), preset=preset, on_event=once.hear, is_demanded=True)
            await one.load_view(session_id, max_tokens=MOST)
            found += [await texts(db, agent, session_id)] if once.ran else []
    return found


async def gone(dsn: str) -> None:
    """Until nothing works for the killed process any more."""
    conn = await asyncpg.connect(dsn)

    async def alone() -> bool:
        busy = "select count(*) from pg_stat_activity where datname = current_database() and state <> 'idle'"
        return await conn.fetchval(busy) == 1

    await until(alone)
    await conn.close()


async def ends_as_if_nothing_had_been(db: Database, agent: UUID, last: list[str]) -> None:
    """When the right has run out, the next request makes the session as short as it would have been."""
    async with db.transaction(agent) as tx:
        await tx.execute("update dialogue.leases set expires_at = now() - interval '1 second'")
        known = await branches.list_branches(tx, agent_id=agent)
    for one in known:
        if one.session.startswith("killed"):
            demanded = replace(compacting(db, agent), is_demanded=True)
            await demanded.load_view(one.session_id, max_tokens=MOST)
            assert await texts(db, agent, one.session_id) == last
