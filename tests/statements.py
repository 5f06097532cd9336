"""The statements that Newton sends to the database, and their plans."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast
from uuid import UUID

from asyncpg.connection import LoggedQuery

from newton.db.pool import Database

# The driver asks once per connection what a type is, in two or three statements; it depends on a setting of the server.
DRIVER_LOOKUPS = ("typeinfo_tree", "'jit'")


@asynccontextmanager
async def watched_database(
    dsn: str, agent_id: UUID, *, connections: int = 1
) -> AsyncGenerator[tuple[Database, list[str]]]:
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


def list_scans(explained: str, table: str) -> list[dict[str, Any]]:
    """The nodes that read a table, in a plan that EXPLAIN wrote as JSON; on a cluster they are those of a worker."""
    return [node for node in _walk(json.loads(explained)) if node.get("Relation Name") == table]


def _walk(plan: Any) -> Iterator[dict[str, Any]]:
    if isinstance(plan, dict):
        nodes = cast("dict[str, Any]", plan)
        if "Node Type" in nodes:
            names = ((key, nodes.get(key, "")) for key in ("Relation Name", "Index Name"))
            yield {**nodes, **{key: re.sub(r"_[0-9]{6,}$", "", name) for key, name in names}}  # without the shard
        for value in nodes.values():
            yield from _walk(value)
    elif isinstance(plan, list):
        for value in cast("list[Any]", plan):
            yield from _walk(value)
