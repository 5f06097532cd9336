"""The statements that Newton sends to the database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from asyncpg.connection import LoggedQuery

from newton.db.pool import Database

# The driver asks once per connection what a type is, in two or three statements; it depends on a setting of the server.
DRIVER_LOOKUPS = ("typeinfo_tree", "'jit'")


@asynccontextmanager
async def watched_database(
    dsn: str, agent_id: UUID, *, connections: int = 1
) -> AsyncIterator[tuple[Database, list[str]]]:
    """A database with so many open connections, and a list that grows with every statement of Newton that they send."""
    database = await Database.open(dsn, size=connections)
    sent: list[str] = []
    all_open = asyncio.Barrier(connections)

    def note(one: LoggedQuery) -> None:
        if not any(lookup in one.query for lookup in DRIVER_LOOKUPS):
            sent.append(one.query)

    async def watch() -> None:
        async with database.transaction(agent_id) as tx:
            await all_open.wait()
            tx.add_query_logger(note)

    try:
        await asyncio.gather(*(watch() for _ in range(connections)))
        sent.clear()
        yield database, sent
    finally:
        await database.close()
