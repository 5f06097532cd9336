"""Where a benchmark runs: a database of its own, empty before and gone afterwards, with the whole product on it."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
from pydantic import SecretStr

from newton.db.embedded import temporary
from newton.db.pool import connecting
from newton.runtime.opening import opened
from newton.runtime.wiring import Newton
from newton.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The product at work, and the connection string of the role that owns its database."""

    newton: Newton
    owner: str
    server: str


@asynccontextmanager
async def ground(settings: Settings) -> AsyncGenerator[Ground]:
    """Newton on an empty database: of the server that the settings name, or of one that lives only as long."""
    async with AsyncExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="newton-bench-"))
        if settings.database_url is None:
            owner, server = stack.enter_context(temporary(durable=True)).dsn("postgres"), "embedded"
        else:
            given = settings.database_url.get_secret_value()
            owner, server = await stack.enter_async_context(_scratch(given)), "external"
        own = {"database_url": SecretStr(owner), "data_dir": Path(home), "agent": "bench"}
        newton = await stack.enter_async_context(opened(settings.model_copy(update=own)))
        yield Ground(newton=newton, owner=owner, server=server)


@asynccontextmanager
async def _scratch(url: str) -> AsyncGenerator[str]:
    name = f"newton_bench_{uuid4().hex[:12]}"
    await _run(url, f"create database {name}")
    try:
        yield urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
    finally:
        await _run(url, f"drop database {name} with (force)")


async def vacuum(owner: str) -> None:
    """What autovacuum does in its own time, done now: otherwise a fresh table is measured, not a settled one."""
    await _run(owner, "vacuum analyze")


async def _run(url: str, statement: str) -> None:
    with connecting():
        connection = await asyncpg.connect(url, timeout=10)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
