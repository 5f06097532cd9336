"""Workers as processes of their own, which are killed and stopped while they work; every effect of theirs is a row."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import asyncpg

from newton import ids
from newton.db.pool import Database, Tx
from newton.runtime.jobs import queue
from newton.runtime.jobs.queue import ClaimedRun, JobOutcome, RunResult
from newton.runtime.jobs.triggers import every_minutes
from newton.runtime.jobs.worker import JobWorker, WorkerTimings
from tests.support import NOON, until

NAMES = ("one", "two", "three", "four")
# Nothing is renewed, so that a worker who was stopped does not hear that it has lost its runs: the fence alone is left.
QUICK = WorkerTimings(lease=0.6, renew=60, poll=0.1, drain=1.0)
# Whoever ends a run writes a row; nothing but the fence keeps a second one out.
EFFECTS = """
create table public.effects (agent_id uuid, name text, slot timestamptz, epoch bigint, pid integer);
grant insert on public.effects to public;
"""
# Ends a run whoever has it by now.
UNFENCED = """
update runtime.jobs
set state = 'done', leased_until = null, finished_at = runtime.get_moment($7), result = $5,
    reason = $6
where agent_id = $1 and job_id = $2 and ($3::text is null or $4::bigint >= 0)
returning name, slot
"""


async def works(dsn: str, pace: WorkerTimings, seconds: float) -> None:
    """A worker whose runs take about so long, half of it with their effect written and not yet committed."""

    async def run(claimed: ClaimedRun) -> JobOutcome:
        await asyncio.sleep(seconds * random.random())

        async def write(tx: Tx) -> RunResult:
            row = (claimed.agent_id, claimed.name, claimed.slot, claimed.epoch, os.getpid())
            await tx.execute("insert into public.effects values ($1, $2, $3, $4, $5)", *row)
            await asyncio.sleep(seconds * random.random())
            return {}

        return JobOutcome(reason="it was due", result={}, write=write)

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    db = await Database.open(dsn)
    worker = JobWorker(db, run, replace(pace, tick=1e9), holder=str(os.getpid()))
    # slots are the driver's: what this worker notes was noted before
    await worker.work({name: every_minutes(60 * 24 * 7 * 1_000) for name in NAMES}, stop)
    await db.close()


@dataclass(slots=True)
class Crew:
    """So many workers. `takeovers` are seconds from a kill or a stop until nothing was held by the one that was hit."""

    dsn: str
    owner: "asyncpg.Pool[Any]"
    pace: WorkerTimings
    seconds: float
    fenced: bool
    dice: random.Random
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list["subprocess.Popen[bytes]"])
    takeovers: list[float] = field(default_factory=list[float])
    watching: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    async def watched(self) -> list[float]:
        """How long each takeover took, the longest last."""
        await asyncio.gather(*self.watching)
        return sorted(self.takeovers)

    def start(self) -> None:
        given = [self.dsn, str(self.pace.lease), str(self.pace.renew), str(self.pace.poll), str(self.seconds)]
        words = [sys.executable, "-m", "tests.claimants", *given, str(int(self.fenced))]
        self.processes.append(subprocess.Popen(words))

    async def held(self, process: "subprocess.Popen[bytes]") -> int:
        """How many runs it has, by the queue."""
        return await self.owner.fetchval(
            "select count(*) from runtime.jobs where state = 'running' and holder = $1", str(process.pid)
        )

    async def busy(self) -> "subprocess.Popen[bytes] | None":
        """One of them that is at work; None when everything is done."""
        while await left(self.owner):
            process = self.dice.choice(self.processes)
            if await self.held(process):
                return process
            await asyncio.sleep(0.01)
        return None

    async def all_busy(self) -> None:
        for process in self.processes:
            await until(lambda process=process: self._has(process, some=True), seconds=300)

    async def kill(self) -> bool:
        process = await self.busy()
        if process is None:
            return False
        process.kill()
        self.processes.remove(process)
        self.start()
        process.wait()
        self.watching.append(asyncio.create_task(self._taken(process)))
        return True

    async def stop(self) -> bool:
        """Stops one past its lease, and lets it go on when others have its runs."""
        while process := await self.busy():
            process.send_signal(signal.SIGSTOP)
            try:
                if await self.held(process):  # it was stopped in the middle, and has not just ended
                    await self._taken(process)
                    return True
            finally:
                process.send_signal(signal.SIGCONT)
                await asyncio.sleep(self.seconds * 3)  # what it still wants to write
        return False

    async def _has(self, process: "subprocess.Popen[bytes]", *, some: bool) -> bool:
        return (await self.held(process) > 0) == some

    async def _taken(self, process: "subprocess.Popen[bytes]") -> None:
        began = time.monotonic()
        await until(lambda: self._has(process, some=False), seconds=300)
        self.takeovers.append(time.monotonic() - began)


async def through(owner: "asyncpg.Pool[Any]", *, seconds: float) -> None:
    """Until everything is done."""

    async def nothing_left() -> bool:
        return await left(owner) == 0

    await until(nothing_left, seconds=seconds)


async def left(owner: "asyncpg.Pool[Any]") -> int:
    return await owner.fetchval("select count(*) from runtime.jobs where state in ('queued', 'running')")


@asynccontextmanager
async def crew(
    dsn: str, workers: int, *, pace: WorkerTimings, seconds: float, fenced: bool = True
) -> AsyncGenerator[Crew]:
    owner = await asyncpg.create_pool(dsn, min_size=1, max_size=4)
    await owner.execute(EFFECTS)
    made = Crew(dsn, owner, pace, seconds, fenced, random.Random(22))
    try:
        for _ in range(workers):
            made.start()
        yield made
    finally:
        for process in made.processes:
            process.kill()
            process.wait()
        await owner.close()


async def fill(owner: "asyncpg.Pool[Any]", agents: int, *, slot: int = 0) -> int:
    """A slot of every job for each of so many agents; how many those are."""
    each = [ids.derive_agent_id(f"agent {n}") for n in range(agents)]
    await owner.execute(
        "insert into runtime.agents select a, 'agent ' || n, $2"
        " from unnest($1::uuid[]) with ordinality as u (a, n) on conflict do nothing",
        each,
        NOON,
    )
    await owner.execute(
        "insert into runtime.jobs (agent_id, job_id, name, slot, due_at)"
        " select a, gen_random_uuid(), n, $3, now() from unnest($1::uuid[]) as a cross join unnest($2::text[]) as n",
        each,
        NAMES,
        NOON + timedelta(hours=slot),
    )
    return agents * len(NAMES)


async def counts(owner: "asyncpg.Pool[Any]") -> tuple[int, int, int]:
    """How many slots there are, how many have an effect, and how many effects there are."""
    row = await owner.fetchrow(
        "select (select count(*) from runtime.jobs where state = 'done') as slots,"
        " count(distinct (agent_id, name, slot)) as had, count(*) as effects from public.effects"
    )
    assert row is not None
    return row["slots"], row["had"], row["effects"]


def main(words: Sequence[str]) -> None:
    dsn, lease, renew, poll, seconds, fenced = words
    if fenced == "0":
        queue.SQL["finish_run"] = replace(queue.SQL["finish_run"], sql=UNFENCED)
    pace = WorkerTimings(lease=float(lease), renew=float(renew), poll=float(poll), drain=1.0)
    asyncio.run(works(dsn, pace, float(seconds)))


if __name__ == "__main__":
    main(sys.argv[1:])
