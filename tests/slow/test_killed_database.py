"""PostgreSQL is killed under writes through the HTTP door: nothing that was acknowledged is lost, half or doubled."""

import asyncio
import os
import random
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import httpx2
import pytest

from newton.content.package_data import data_folder
from newton.db.connection import prepare_database
from newton.db.embedded_server import EmbeddedServer
from newton.db.server_paths import resolve_paths
from tests.support import until
from tests.system.daemons import Daemon, daemon
from tests.system.servers import data, fresh, postmaster
from tests.system.servers import run as run_sql

CLIENTS = 8
BATCH = 20  # lines that a request brings: all of them are kept, or none
KEPT = "select ref, count(*) as times from dialogue.messages group by ref"
HALF = """
select count(*)
from dialogue.messages as d
left join memory.memories as m
    on m.agent_id = d.agent_id and m.kind = 'exchange' and m.thread_id = d.session_id and m.position = d.position
left join memory.outbox as o on o.agent_id = d.agent_id and o.memory_id = m.memory_id
where m.memory_id is null or o.memory_id is null
    or not exists (select from memory.postings as p where p.agent_id = d.agent_id and p.memory_id = m.memory_id)
"""


@dataclass(slots=True)
class Tally:
    """What clients were told, and when. `at` has the moment of each acknowledgement."""

    acknowledged: list[str] = field(default_factory=list[str])
    at: list[float] = field(default_factory=list[float])
    failed: int = 0
    statuses: Counter[int] = field(default_factory=Counter[int])


async def speak(client: httpx2.AsyncClient, who: int, tally: Tally, stop: asyncio.Event) -> None:
    """Says lines in a session of its own, each batch until it is acknowledged."""
    number = 0
    while not stop.is_set():
        with suppress(httpx2.TransportError):
            refs = [f"{who}:{number}:{place}" for place in range(BATCH)]
            lines = [{"role": "user", "content": f"Cup {ref} is white.", "ref": ref} for ref in refs]
            answer = await client.post(f"/v1/sessions/talk-{who}/messages", json={"messages": lines})
            tally.statuses[answer.status_code] += 1
            if answer.status_code == 201:
                tally.acknowledged += refs
                tally.at.append(time.monotonic())
                number += 1
                continue
        tally.failed += 1
        await asyncio.sleep(0.02)


async def answers(dsn: str) -> float:
    """The moment from which the database answers again."""
    while True:
        with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            conn = await asyncpg.connect(dsn, timeout=2)
            await conn.close()
            return time.monotonic()
        await asyncio.sleep(0.01)


def kill(home: Path) -> None:
    """The server with all of its processes, at once, so that none can still write what another had in mind."""
    pid = postmaster(home)
    assert pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    os.kill(pid, signal.SIGSTOP)
    for one in (*map(int, children), pid):
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


@dataclass(slots=True)
class Outcome:
    """What was seen in a run; outages in seconds until something was acknowledged again."""

    tally: Tally
    rate: float
    outages: list[float]
    after_database: list[float]
    lost: int
    half: int
    doubled: int
    strange: int


async def run(made: Daemon, home: Path, dsn: str, *, kills: int) -> Outcome:
    dice, tally, stop = random.Random(7), Tally(), asyncio.Event()
    outages: list[float] = []
    after: list[float] = []
    serving = 0.0
    headers = {"Authorization": f"Bearer {made.token}"}
    limits = httpx2.Limits(max_connections=CLIENTS)
    async with httpx2.AsyncClient(base_url=made.url, headers=headers, timeout=60, limits=limits) as client:
        tasks = [asyncio.create_task(speak(client, who, tally, stop)) for who in range(CLIENTS)]
        await acknowledged(tally, 0, since=0)
        await run_sql(dsn, "checkpoint")  # what the daemon itself has begun is no write that is counted here
        for _ in range(kills):
            begun, many = time.monotonic(), len(tally.at)
            await asyncio.sleep(dice.uniform(0.3, 1.2))
            serving += time.monotonic() - begun
            many = len(tally.at)
            kill(home)
            killed = time.monotonic()
            ready = await answers(dsn)
            later = await acknowledged(tally, many, since=ready)
            outages.append(later - killed)
            after.append(later - ready)
        stop.set()
        await asyncio.gather(*tasks)
    return await judged(dsn, tally, rate=BATCH * len(tally.at) / serving, outages=outages, after=after)


async def acknowledged(tally: Tally, many: int, *, since: float) -> float:
    """When the first one was acknowledged after that moment."""
    found: list[float] = []

    async def some() -> bool:
        found[:] = [at for at in tally.at[many:] if at > since]
        return bool(found)

    await until(some, seconds=60)
    return found[0]


async def judged(dsn: str, tally: Tally, *, rate: float, outages: list[float], after: list[float]) -> Outcome:
    conn = await asyncpg.connect(dsn)
    kept = {row["ref"]: row["times"] for row in await conn.fetch(KEPT)}
    requests = Counter(ref.rpartition(":")[0] for ref in kept)
    half = await conn.fetchval(HALF) + sum(lines != BATCH for lines in requests.values())
    await conn.close()
    return Outcome(
        tally=tally,
        rate=rate,
        outages=outages,
        after_database=after,
        lost=len(set(tally.acknowledged) - kept.keys()),
        half=half,
        doubled=sum(times > 1 for times in kept.values()),
        strange=len(kept.keys() - set(tally.acknowledged)),
    )


@asynccontextmanager
async def served(tmp_path: Path, *, config: str = "") -> AsyncGenerator[tuple[Daemon, Path, str]]:
    with fresh(tmp_path / "data") as home:
        with EmbeddedServer.start(home) as server:
            await prepare_database(server.dsn("postgres"), schema=data_folder("schema"))
        with (data(home) / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(config)
        dsn = EmbeddedServer(resolve_paths(home), -1).dsn("postgres")
        with daemon(tmp_path, planted="database_unavailable", NEWTON_EMBEDDING_PROVIDER="none") as made:
            yield made, home, dsn
            assert made.process.poll() is None
            assert not [line for line in made.said if "Traceback" in line], "".join(made.said)[-3_000:]


def tell(seen: Outcome) -> None:
    """The figures, for whoever runs it with -s."""
    figures = {
        "acknowledged": len(seen.tally.acknowledged),
        "per second while it served": round(seen.rate),
        "statuses": dict(seen.tally.statuses),
        "lost, half, doubled": (seen.lost, seen.half, seen.doubled),
        "kept, and never acknowledged": seen.strange,
        "outage p50, longest": (round(statistics.median(seen.outages), 2), round(max(seen.outages), 2)),
        "after the database p50, longest": (
            round(statistics.median(seen.after_database), 2),
            round(max(seen.after_database), 2),
        ),
    }
    sys.stdout.write(f"\n{figures}\n")


@pytest.mark.fault
@pytest.mark.timeout(1_800)
async def test_thirty_kills_of_the_database_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    # R1; promise 4; figure 3 of the daemon
    async with served(tmp_path) as (made, home, dsn):
        seen = await run(made, home, dsn, kills=30)
    tell(seen)
    assert (seen.lost, seen.half, seen.doubled) == (0, 0, 0)


@pytest.mark.fault
@pytest.mark.timeout(1_800)
async def test_a_database_that_acknowledges_before_it_writes_is_noticed(tmp_path: Path) -> None:
    """The test above can fail: with synchronous_commit off some of what was acknowledged is gone."""
    async with served(tmp_path, config="synchronous_commit = off\nwal_writer_delay = '10s'\n") as (made, home, dsn):
        seen = await run(made, home, dsn, kills=10)
    tell(seen)
    assert seen.lost > 0
