"""Removal of deleted rows from the files of the database."""

import contextlib

import asyncpg

from newton.db.cluster import run_on_nodes
from newton.db.connection import open_owner_connection
from newton.db.distribution import is_distributed
from newton.db.queries import load
from newton.settings import Settings

SQL = load("newton.db", "scrub.sql")


async def scrub(settings: Settings) -> int:
    """Rewrite all tables without their deleted rows, and return the number of tables.

    PostgreSQL marks a deleted row as free space, and overwrites it only when it needs the space. The write-ahead log is
    switched to a new file; old files are overwritten later. Each table is locked while it is rewritten. Raises
    DatabaseError if the database cannot be opened or a statement fails.
    """
    async with open_owner_connection(settings) as connection:
        tables = [row["name"] for row in await SQL["list_text_tables"].fetch_all(connection)]
        for table in tables:
            await connection.execute(f"vacuum (full, analyze) {table}", timeout=None)  # quoted by the server
        with contextlib.suppress(asyncpg.InsufficientPrivilegeError):  # only for a superuser
            for command in ("checkpoint", "select pg_switch_wal()"):
                if await is_distributed(connection):
                    await run_on_nodes(connection, command)
                else:
                    await connection.execute(command)
    return len(tables)
