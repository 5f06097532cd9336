"""Agents move between workers, and workers are killed, while four writers write: no acknowledged line is lost."""

import asyncio
import os
import signal
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from newton.db.cluster import find_place, isolate_agent, list_nodes, move_agent
from newton.db.pool import Database
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.errors import DatabaseError
from newton.memory import agents
from tests.citus.conftest import ClusterWorld
from tests.cluster import connection
from tests.support import NOON, teller, until

WRITERS = 4
LINES = "select content from dialogue.messages where agent_id = $1 and session_id = $2"


class Writers:
    """Four sessions of one agent, each writing lines; `stored` are those whose transaction was committed."""

    def __init__(self, db: Database, agent: UUID) -> None:
        self.db, self.agent = db, agent
        self.stored: dict[UUID, list[str]] = {}
        self.failures = 0
        self.stop = asyncio.Event()

    async def write(self, name: str) -> None:
        async with self.db.transaction(self.agent) as tx:
            session_id = await sessions.ensure_session(tx, agent_id=self.agent, ref=name, now=NOON)
        self.stored[session_id] = []
        number = 0
        while not self.stop.is_set():
            text = f"line {number} of {name}"
            line = Message(role="user", content=text, said_at=NOON + timedelta(seconds=number))
            try:
                async with self.db.transaction(self.agent) as tx:
                    await sessions.append(tx, [line], session_id=session_id, ctx=teller(self.agent))
            except DatabaseError:
                self.failures += 1
                await asyncio.sleep(0.2)
            else:
                self.stored[session_id].append(text)
            number += 1

    @property
    def count(self) -> int:
        return sum(map(len, self.stored.values()))

    async def reach(self, count: int) -> None:
        async def is_reached() -> bool:
            return self.count >= count

        await until(is_reached, seconds=120)

    async def find_lost(self) -> list[str]:
        lost: list[str] = []
        for session_id, texts in self.stored.items():
            async with self.db.transaction(self.agent) as tx:
                found = {row["content"] for row in await tx.fetch(LINES, self.agent, session_id)}
            lost += [text for text in texts if text not in found]
        return lost


async def test_an_agent_moves_under_writes_and_nothing_is_lost(world: ClusterWorld) -> None:
    agent = await agents.get_or_create_agent(world.db, "mover", now=NOON)
    writers = Writers(world.db, agent)
    async with connection(world.dsn) as owner, asyncio.TaskGroup() as tasks:
        for number in range(WRITERS):
            tasks.create_task(writers.write(f"s{number}"))
        await writers.reach(20)
        alone = await isolate_agent(owner, agent)
        assert alone.neighbours == 0
        other = next(node for node in await list_nodes(owner) if node.has_shards and str(node) != alone.node)
        moved = await move_agent(owner, agent, str(other))
        assert moved.node == str(other)
        await writers.reach(writers.count + 20)
        writers.stop.set()
    assert writers.count >= 40
    assert await writers.find_lost() == []
    async with connection(world.dsn) as owner:
        assert (await find_place(owner, agent)).node == str(other)


async def test_a_killed_worker_loses_no_acknowledged_line(world: ClusterWorld) -> None:
    """The node with the agent ends as in a crash, every process at once, and recovers."""
    agent = await agents.get_or_create_agent(world.db, "survivor", now=NOON)
    writers = Writers(world.db, agent)
    async with connection(world.dsn) as owner:
        place = await find_place(owner, agent)
    node = next(dsn for dsn in world.workers if place.node in dsn)
    async with asyncio.TaskGroup() as tasks:
        for number in range(WRITERS):
            tasks.create_task(writers.write(f"s{number}"))
        await writers.reach(20)
        for _ in range(3):
            before = writers.count
            async with connection(node) as victim:
                # a backend that dies makes the server end all of its processes and recover from its log
                _kill_backend(await victim.fetchval("select pg_backend_pid()"))
            await _wait_until_ready(node)
            await writers.reach(before + 20)
        writers.stop.set()
    assert writers.failures > 0, "the writers noticed nothing"
    assert await writers.find_lost() == []


def _kill_backend(pid: int) -> None:
    """Kill a backend of a server on this machine; on another one the number is that of some other process."""
    command = Path(f"/proc/{pid}/cmdline")
    if not command.exists() or not command.read_bytes().startswith(b"postgres:"):
        pytest.skip("the node runs on another machine, where no process can be killed")
    os.kill(pid, signal.SIGKILL)


async def _wait_until_ready(node: str) -> None:
    async def is_ready() -> bool:
        with suppress(OSError, asyncpg.PostgresError):
            async with connection(node) as session:
                return bool(await session.fetchval("select not pg_is_in_recovery()"))
        return False

    await until(is_ready, seconds=60)
