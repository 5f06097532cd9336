"""Opening of the database: the embedded server, or the server at DATABASE_URL."""

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from newton.concurrency import task_group
from newton.db.embedded_server import EmbeddedServer
from newton.db.migrations import migrate, read_migrations
from newton.db.pool import Database, Tx, connect
from newton.db.roles import DatabaseRoles, read_roles
from newton.errors import DatabaseError
from newton.settings import Settings

CHECK_SECONDS, MAX_CHECK_SECONDS = 0.5, 10.0  # seconds between liveness checks of an embedded server


@asynccontextmanager
async def open_database(settings: Settings, *, schema: Path, keep_alive: bool = False) -> AsyncGenerator[Database]:
    """Yield the database with all migrations applied. Raises DatabaseError if it cannot be opened.

    With `keep_alive`, an embedded server that dies is started again.
    """
    async with AsyncExitStack() as stack:
        server = None
        if settings.database_url is not None:
            owner = settings.database_url.get_secret_value()
        else:
            server = await _start_server(settings.home)
            stack.push_async_callback(asyncio.to_thread, server.stop)
            owner = server.dsn("postgres")
        roles = (await prepare_database(owner, schema=schema)).roles
        app, worker = (server.dsn(role) for role in roles) if server else (owner, owner)
        database = await Database.open(app, worker=worker)
        stack.push_async_callback(database.close)
        if server and keep_alive:
            await stack.enter_async_context(_supervise(server))
        yield database


@asynccontextmanager
async def open_owner_connection(settings: Settings) -> AsyncGenerator[Tx]:
    """Yield a connection as the owner of the schema. Raises DatabaseError if it cannot be opened."""
    async with AsyncExitStack() as stack:
        if settings.database_url is not None:
            owner = settings.database_url.get_secret_value()
        else:
            server = await _start_server(settings.home)
            stack.push_async_callback(asyncio.to_thread, server.stop)
            owner = server.dsn("postgres")
        yield await stack.enter_async_context(connect(owner))


@asynccontextmanager
async def _supervise(server: EmbeddedServer) -> AsyncGenerator[None]:
    async with task_group() as tasks:
        reviving = tasks.create_task(_revive_forever(server))
        try:
            yield
        finally:
            reviving.cancel()


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
    """Start the embedded server in a thread. If the caller is cancelled, the server is stopped once it has started."""
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


class PreparedDatabase(NamedTuple):
    """The result of `prepare_database`: the names of the migrations that it applied, and the roles of the database."""

    migrations: list[str]
    roles: DatabaseRoles


async def prepare_database(owner: str, *, schema: Path) -> PreparedDatabase:
    """Apply the pending migrations in the folder `schema`. `owner` is the connection string of the schema's owner."""
    async with connect(owner) as connection:
        return PreparedDatabase(await migrate(connection, read_migrations(schema)), await read_roles(connection))
