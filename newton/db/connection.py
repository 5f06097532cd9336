"""The one door to the database: the embedded server, or the one that DATABASE_URL names."""

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

CHECK_SECONDS, MAX_CHECK_SECONDS = 0.5, 10.0  # seconds between looks whether an embedded server lives


@asynccontextmanager
async def open_database(settings: Settings, *, schema: Path, keep_alive: bool = False) -> AsyncGenerator[Database]:
    """A migrated database, ready to work. A configured one that does not answer is an error, never a fallback. An
    embedded server that dies is started again by whoever has it `for_long`."""
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
        except DatabaseError:  # as when the disk is full; whoever asks the database meanwhile is told
            pause = min(2 * pause, MAX_CHECK_SECONDS)


async def _start_server(home: Path) -> EmbeddedServer:
    """The server of that home. Who is cancelled meanwhile has left: then the thread that starts it stops it again,
    for the start itself cannot be called off half way."""
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
    """Migrates the database behind `owner`, the connection string of a role that may change the schema."""
    with translate_connect_errors():
        conn = await asyncpg.connect(owner, timeout=10)
    try:
        with translate_errors(conn):
            return await migrate(conn, read_migrations(schema))
    finally:
        await conn.close()
