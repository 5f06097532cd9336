"""The statements that Newton sends to the database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from newton.db.pool import Database


@asynccontextmanager
async def watched_database(
    dsn: str, agent_id: UUID, *, connections: int = 1
) -> AsyncIterator[tuple[Database, list[str]]]:
    """A database with so many open connections, and a list that grows with every statement that they send."""
    database = await Database.open(dsn, size=connections)
    sent: list[str] = []
    all_open = asyncio.Barrier(connections)

    async def watch() -> None:
        async with database.transaction(agent_id) as tx:
            await all_open.wait()
            tx.add_query_logger(lambda one: sent.append(one.query))

    try:
        await asyncio.gather(*(watch() for _ in range(connections)))
        sent.clear()
        yield database, sent
    finally:
        await database.close()
