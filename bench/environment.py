"""The environment of a benchmark: all services on a temporary empty database, and functions that time calls."""

import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from cyclopts import Parameter
from cyclopts.validators import Number
from pydantic import SecretStr

from newton.clock import monotonic_ms
from newton.db.embedded_server import temporary_server
from newton.db.pool import connect
from newton.runtime.bootstrap import open_newton
from newton.runtime.wiring import AgentServices
from newton.settings import Settings

WARM_UP_ROUNDS = 10  # not counted: they open connections, prepare statements and fill caches
AtLeastOne = Parameter(validator=Number(gte=1))

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchEnvironment:
    """The services, the connection string of the database's owner, and the kind of server (embedded or external)."""

    newton: AgentServices
    owner_dsn: str
    server_kind: str


@asynccontextmanager
async def open_environment(settings: Settings) -> AsyncGenerator[BenchEnvironment]:
    """Yield the services on a new database of the configured server or, without one, of a temporary embedded server."""
    async with AsyncExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="newton-bench-"))
        if settings.database_url is None:
            owner, server = stack.enter_context(temporary_server(durable=True)).dsn("postgres"), "embedded"
        else:
            url = settings.database_url.get_secret_value()
            owner, server = await stack.enter_async_context(_scratch_database(url)), "external"
        own = {"database_url": SecretStr(owner), "data_dir": Path(home), "agent": "bench"}
        newton = await stack.enter_async_context(
            open_newton(settings.model_copy(update=own), on_new_agent=lambda _: None)
        )
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
    """Run VACUUM ANALYZE, so that the planner's statistics and the visibility map are up to date."""
    await _execute(owner_dsn, "vacuum analyze")


async def _execute(url: str, statement: str) -> None:
    async with connect(url) as connection:
        await connection.execute(statement)


async def measure_ms(call: Callable[[], Awaitable[object]]) -> float:
    """Call the function, and return how long it took, in milliseconds."""
    started = monotonic_ms()
    await call()
    return monotonic_ms() - started


async def measure_alternately(
    questions: Sequence[str], *measures: Callable[[str], Awaitable[T]]
) -> tuple[list[T], ...]:
    """Call each of `measures` with each question, and return their results, one list for each.

    The order of the calls alternates. The results of the first WARM_UP_ROUNDS questions are left out.
    """
    results = tuple(list[T]() for _ in measures)
    for number, question in enumerate(questions):
        pairs = list(zip(measures, results, strict=True))
        for measure, values in pairs if number % 2 else reversed(pairs):
            value = await measure(question)
            if number >= WARM_UP_ROUNDS:
                values.append(value)
    return results
