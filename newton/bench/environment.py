"""The environment of a benchmark: all services on a temporary empty database."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
from pydantic import SecretStr

from newton.db.embedded_server import temporary_server
from newton.db.pool import translate_connect_errors
from newton.runtime.bootstrap import open_newton
from newton.runtime.wiring import AgentServices
from newton.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchEnvironment:
    """The running services, and the connection string of the database owner."""

    newton: AgentServices
    owner_dsn: str
    server_kind: str


@asynccontextmanager
async def open_environment(settings: Settings) -> AsyncGenerator[BenchEnvironment]:
    """Open Newton on an empty database of the configured server, or of a temporary one."""
    async with AsyncExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="newton-bench-"))
        if settings.database_url is None:
            owner, server = stack.enter_context(temporary_server(durable=True)).dsn("postgres"), "embedded"
        else:
            given = settings.database_url.get_secret_value()
            owner, server = await stack.enter_async_context(_scratch_database(given)), "external"
        own = {"database_url": SecretStr(owner), "data_dir": Path(home), "agent": "bench"}
        newton = await stack.enter_async_context(open_newton(settings.model_copy(update=own)))
        yield BenchEnvironment(newton=newton, owner_dsn=owner, server_kind=server)


@asynccontextmanager
async def _scratch_database(url: str) -> AsyncGenerator[str]:
    name = f"newton_bench_{uuid4().hex[:12]}"
    await _execute(url, f"create database {name}")
    try:
        yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
    finally:
        await _execute(url, f"drop database {name} with (force)")


async def vacuum_analyze(owner_dsn: str) -> None:
    """Run VACUUM ANALYZE, so that the planner has statistics and an up-to-date visibility map."""
    await _execute(owner_dsn, "vacuum analyze")


async def _execute(url: str, statement: str) -> None:
    with translate_connect_errors():
        connection = await asyncpg.connect(url, timeout=10)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
