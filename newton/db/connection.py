"""Open the database: the embedded server, or the one that DATABASE_URL names."""

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from newton.concurrency import task_group
from newton.db.embedded_server import EmbeddedServer
from newton.db.migrations import migrate, read_migrations
from newton.db.pool import APP_ROLE, WORKER_ROLE, Database, translate_connect_errors, translate_errors
from newton.errors import DatabaseError
from newton.settings import Settings

CHECK_SECONDS, MAX_CHECK_SECONDS = 0.5, 10.0  # seconds between liveness checks of an embedded server


@asynccontextmanager
async def open_database(settings: Settings, *, schema: Path, keep_alive: bool = False) -> AsyncGenerator[Database]:
    """Yield a migrated database.

    There is no fallback when DATABASE_URL does not answer. With `keep_alive` a dead embedded server is restarted.
    """
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        await prepare_database(url, schema=schema)
        async with _open_pool(url, worker=url) as database:
            yield database
        return
    server = await _start_server(settings.home)
    try:
        await prepare_database(server.dsn("postgres"), schema=schema)
        async with _open_pool(server.dsn(APP_ROLE), worker=server.dsn(WORKER_ROLE)) as database:
            if keep_alive:
                async with _supervise(server):
                    yield database
            else:
                yield database
    finally:
        await asyncio.to_thread(server.stop)


@asynccontextmanager
async def _supervise(server: EmbeddedServer) -> AsyncGenerator[None]:
    async with task_group() as tasks:
        keeping = tasks.create_task(_revive_forever(server))
        try:
            yield
        finally:
            keeping.cancel()


async def _revive_forever(server: EmbeddedServer) -> None:
    pause = CHECK_SECONDS
    while True:
        await asyncio.sleep(pause)
        try:
            await asyncio.to_thread(server.revive)
            pause = CHECK_SECONDS
        except DatabaseError:  # for example a full disk; database calls raise meanwhile
            pause = min(2 * pause, MAX_CHECK_SECONDS)


async def _start_server(home: Path) -> EmbeddedServer:
    """Start the server of that home in a thread. On cancellation the thread stops the server again, because the start
    cannot be interrupted."""
    starter = ThreadPoolExecutor(1)
    starting = starter.submit(EmbeddedServer.start, home)
    starter.shutdown(wait=False)
    try:
        return await asyncio.wrap_future(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_stop_when_started)
        raise


def _stop_when_started(starting: "Future[EmbeddedServer]") -> None:
    if not starting.cancelled() and starting.exception() is None:
        starting.result().stop()


@asynccontextmanager
async def _open_pool(app: str, *, worker: str) -> AsyncGenerator[Database]:
    database = await Database.open(app, worker=worker)
    try:
        yield database
    finally:
        await database.close()


async def prepare_database(owner: str, *, schema: Path) -> list[str]:
    """Migrate the database behind `owner`, the connection string of a role that may change the schema."""
    with translate_connect_errors():
        conn = await asyncpg.connect(owner, timeout=10)
    try:
        with translate_errors(conn):
            return await migrate(conn, read_migrations(schema))
    finally:
        await conn.close()
