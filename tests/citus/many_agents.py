"""Measures contexts of agents among thousands, on a cluster and on one server, question by question.

Usage: python -m tests.citus.many_agents CLUSTER_DSN PLAIN_DSN, each the connection string of a superuser; that of the
cluster as in scripts/test-citus. Makes a database newton_many on both, and drops it at the end.
"""

import asyncio
import json
import statistics
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from time import perf_counter
from uuid import UUID

from bench.synthetic_dialogue import generate_dialogue
from newton.cognition.request import ContextBuildRequest
from newton.content.package_data import data_folder
from newton.db.connection import prepare_database
from newton.db.distribution import distribute, plan_distribution
from newton.db.pool import Database
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.memory import agents
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.fakes import HashEmbedder
from tests.cluster import Servers, connection, list_nodes, on
from tests.db.world import contexts
from tests.support import NOON, teller

NAME = "newton_many"
AGENTS, EVERY = 2_000, 10  # one agent in ten has memories
LINES, ASKED, QUESTIONS, WARM_UP = 50, 10, 12, 2  # questions of each agent that is asked
AT_ONCE = 4
COUNT_SQL = """
select s.nodeport::text as node, count(*) as agents
from runtime.agents as a
join citus_shards as s on s.shardid = get_shard_id_for_distribution_column('runtime.agents', a.agent_id)
group by 1 order by 1
"""


@asynccontextmanager
async def opened(server: str) -> AsyncGenerator[Database]:
    """A new database, distributed over the nodes if there are several."""
    servers = Servers(await list_nodes(server))
    await servers.drop(NAME)
    await servers.make_empty(NAME)
    dsn = on(servers.dsns[0], NAME)
    await prepare_database(dsn, schema=data_folder("schema"))
    if servers.is_cluster:
        async with connection(dsn) as owner:
            await distribute(owner, await plan_distribution(owner))
    db = await Database.open(dsn, size=AT_ONCE)
    yield db
    await db.close()
    await servers.drop(NAME)


async def fill(db: Database) -> list[UUID]:
    """Register the agents; return those with memories."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def add(number: int) -> UUID:
        async with turn:
            agent = await agents.get_or_create_agent(db, f"agent-{number}", now=NOON)
            if number % EVERY == 0:
                await remember(db, agent, seed=number)
            return agent

    made = await asyncio.gather(*(add(number) for number in range(AGENTS)))
    return list(made[::EVERY])


async def remember(db: Database, agent: UUID, *, seed: int) -> None:
    lines = [json.loads(line) for line in generate_dialogue(LINES, 1, seed=seed).lines]
    said = [
        Message(role=one["role"], content=one["content"], said_at=datetime.fromisoformat(one["at"])) for one in lines
    ]
    async with db.transaction(agent) as tx:
        session_id = await sessions.ensure_session(tx, agent_id=agent, ref="s", now=NOON)
        await sessions.append(tx, said, session_id=session_id, ctx=teller(agent))
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()


async def measure(db: Database, agent: UUID, question: str) -> float:
    """The milliseconds of a context; it has memories, and no source failed."""
    start = perf_counter()
    bundle = await contexts(db).build(ContextBuildRequest(agent_id=agent, input=question, tokens=2_000))
    elapsed = 1_000 * (perf_counter() - start)
    assert bundle.items and not bundle.missing
    return elapsed


async def compare(cluster: Database, plain: Database, chosen: list[UUID]) -> list[tuple[float, float]]:
    """The milliseconds of each context on the cluster and on the plain server, which take turns in going first."""
    found: list[tuple[float, float]] = []
    for place, agent in enumerate(chosen):
        for number, question in enumerate(generate_dialogue(LINES, QUESTIONS, seed=AGENTS // ASKED * place).questions):
            pair = {db: await measure(db, agent, question) for db in (cluster, plain)[:: (-1) ** number]}
            if number >= WARM_UP:
                found.append((pair[cluster], pair[plain]))
    return found


def report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(cluster_dsn: str, plain_dsn: str) -> None:
    async with opened(cluster_dsn) as cluster, opened(plain_dsn) as plain:
        filled: list[list[UUID]] = []
        for name, db in (("cluster", cluster), ("plain", plain)):
            start = perf_counter()
            filled.append(await fill(db))
            seconds = perf_counter() - start
            report(f"{name}: {AGENTS} agents, {len(filled[-1])} with {LINES} memories, {seconds:.0f} s")
        async with connection(on(cluster_dsn, NAME)) as owner:
            report(f"agents by node: {dict(map(tuple, await owner.fetch(COUNT_SQL)))}")
        pairs = await compare(cluster, plain, filled[0][:: len(filled[0]) // ASKED])
    for name, taken in zip(("cluster", "plain"), zip(*pairs, strict=True), strict=True):
        p95 = statistics.quantiles(taken, n=20)[-1]
        report(f"{name}: {len(taken)} contexts, p50 {statistics.median(taken):.1f} ms, p95 {p95:.1f} ms")
    p50 = [statistics.median(taken) for taken in zip(*pairs, strict=True)]
    by_question = statistics.median(mine / other for mine, other in pairs)
    report(f"ratio of the p50 {p50[0] / p50[1]:.2f}, median of the ratios by question {by_question:.2f}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
