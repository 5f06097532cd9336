"""Row level security of an owner that cannot bypass it: what it sees, and how it writes the rows of all agents."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import DatabaseError

SQL = load("newton.db", "row_security.sql")


async def require_all_rows(conn: Tx) -> None:
    """Raise DatabaseError if the database user does not see the rows of all agents in every table."""
    if hidden := [row["name"] for row in await SQL["list_hidden"].fetch_all(conn)]:
        raise DatabaseError(
            f"The database user does not see the rows of all agents in {hidden[0]}.",
            hint="Set DATABASE_URL to the connection string of the owner of the database, or of a superuser.",
        )


@asynccontextmanager
async def writable_tables(conn: Tx) -> AsyncGenerator[None]:
    """Let the owner of the tables write the rows of all agents in the block of the open transaction.

    The block may rename and drop tables.
    """
    tables = await SQL["list_confined"].fetch_all(conn)
    for table in tables:
        await conn.execute(f"alter table {table['name']} no force row level security")
    yield
    for table in await SQL["list_remaining"].fetch_all(conn, oids=[one["oid"] for one in tables]):
        await conn.execute(f"alter table {table['name']} force row level security")
