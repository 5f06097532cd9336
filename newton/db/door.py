"""The one door to the database: the embedded server, or the one that DATABASE_URL names."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from newton.db.embedded import EmbeddedServer
from newton.db.migrate import migrate, read
from newton.db.pool import APP_ROLE, Database, unreachable
from newton.settings import Settings


@asynccontextmanager
async def open_database(settings: Settings, *, schema: Path) -> AsyncGenerator[Database]:
    """A migrated database, ready to work. A configured one that does not answer is an error, never a fallback."""
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        async with _pool(owner=url, app=url, schema=schema) as database:
            yield database
        return
    server = await asyncio.to_thread(EmbeddedServer.start, settings.home)
    try:
        async with _pool(owner=server.dsn("postgres"), app=server.dsn(APP_ROLE), schema=schema) as database:
            yield database
    finally:
        await asyncio.to_thread(server.stop)


@asynccontextmanager
async def _pool(*, owner: str, app: str, schema: Path) -> AsyncGenerator[Database]:
    await prepare(owner, schema=schema)
    database = await Database.open(app)
    try:
        yield database
    finally:
        await database.close()


async def prepare(owner: str, *, schema: Path) -> list[str]:
    """Migrates the database behind `owner`, the connection string of a role that may change the schema."""
    try:
        conn = await asyncpg.connect(owner, timeout=10)
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
        raise unreachable(error) from error
    try:
        return await migrate(conn, read(schema))
    finally:
        await conn.close()
