"""A real PostgreSQL for every test that wants one.

The server is chosen by `tests.postgres_server`: a container when a Docker engine answers, else the embedded one.
`tx` is one unit of work in an agent's scope, rolled back; `db` is for tests that commit or need several connections,
and is emptied after each; `clone` is for those that change the schema.
"""

import gc
import os
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path

import asyncpg
import pytest
from hypothesis import settings as hypothesis_settings

from newton import ids
from newton.db.driver import register_types
from newton.db.pool import Database, Tx, begin
from newton.fault_isolation import count_failures
from newton.memory import agents
from tests.cluster import Servers, list_nodes, on
from tests.emptied import Common, Lent, opened, without_leftovers
from tests.planting import PLANTED
from tests.postgres_server import open_server
from tests.support import EXAMPLES, NOON

# programs that need other packages, or packages that take seconds to import
collect_ignore = ["mcp_stdio_server.py", "system/agents_model.py", "system/client_usage.py", "fitting"]

# A process runs the statements of all stores: many more than the 100 of which a connection keeps the plans by default.
asyncpg.create_pool = partial(asyncpg.create_pool, statement_cache_size=1_000)
gc.disable()  # collecting tests makes a million objects that stay


def _take(name: str) -> str | None:
    """The value of a variable, which Newton shall not see. The processes of pytest-xdist find it under another name."""
    value = os.environ.pop(name, None) or os.environ.get(f"PYTEST_{name}")
    if value:
        os.environ[f"PYTEST_{name}"] = value
    return value


GIVEN_URL, GIVEN_KIND = _take("NEWTON_TEST_DATABASE_URL"), _take("NEWTON_TEST_SERVER")
CLUSTER = _take("NEWTON_TEST_CITUS_DSN")
for name in [n for n in os.environ if n.startswith(("NEWTON_", "OPENAI_")) or n == "DATABASE_URL"]:
    del os.environ[name]

# The ordinary run tries the same examples each time; the deep one of scripts/test-slow draws new ones and prints how to
# repeat a failure.
hypothesis_settings.register_profile("newton", deadline=None, derandomize=True, max_examples=EXAMPLES)
hypothesis_settings.register_profile("deep", deadline=None, print_blob=True, max_examples=20 * EXAMPLES)
hypothesis_settings.load_profile("newton")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


FAILED = pytest.StashKey[bool]()
SHARING: dict[Path, bool] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    item.stash[FAILED] = report.failed or item.stash.get(FAILED, False)
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if CLUSTER else ():
        if (marker := item.get_closest_marker("one_server")) is not None:
            item.add_marker(pytest.mark.skip(reason=f"not on a cluster: {marker.args[0]}"))


def _shares_application(request: pytest.FixtureRequest) -> bool:
    """Whether some test of the file uses an application that all of them share."""
    path = request.node.path
    if path not in SHARING:
        names = [getattr(item, "fixturenames", ()) for item in request.session.items if item.path == path]
        SHARING[path] = any("behind" in one for one in names)
    return SHARING[path]


@pytest.fixture(autouse=True)
async def no_failed_part(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """A part that failed with an unexpected error makes the test fail, unless the test has planted it."""
    before = count_failures()
    PLANTED.clear()
    PLANTED.update(*(mark.args for mark in request.node.iter_markers("failing_parts")))
    # An application that the tests of a module share starts tasks of its own during one of them.
    async with nullcontext() if _shares_application(request) else without_leftovers():
        yield
    failed = {part: kind for part, kind in count_failures() - before if not kind.islower()}  # else an own error
    assert {part: kind for part, kind in failed.items() if part not in PLANTED} == {}


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with open_server(CLUSTER or GIVEN_URL, GIVEN_KIND) as dsn:
        yield dsn


async def find_servers(server: str) -> Servers:
    return Servers(await list_nodes(server) if CLUSTER else (server,))


@pytest.fixture(scope="session")
async def template(server: str) -> AsyncIterator[str]:
    name = f"newton_template_{uuid.uuid4().hex[:8]}"
    servers = await find_servers(server)
    await servers.make_template(name)
    yield name
    await servers.drop(name)


@asynccontextmanager
async def database(server: str, template: str) -> AsyncGenerator[str]:
    """A copy of the template, gone afterwards, as the role that owns it."""
    name = f"newton_{uuid.uuid4().hex[:8]}"
    servers = await find_servers(server)
    await servers.copy(name, template)
    yield on(servers.dsns[0], name)
    await servers.drop(name)


@pytest.fixture(scope="session")
async def lent(server: str, template: str) -> AsyncIterator[Lent]:
    """Databases for files of tests, one after the other."""
    async with AsyncExitStack() as made:
        yield Lent(lambda: made.enter_async_context(database(server, template)))


@pytest.fixture
async def clone(server: str, template: str) -> AsyncIterator[str]:
    """A database of this test's own."""
    async with database(server, template) as dsn, without_leftovers():
        yield dsn


@pytest.fixture(scope="session")
async def common(server: str, template: str) -> AsyncIterator[Common]:
    async with database(server, template) as dsn, opened(dsn) as made:
        yield made


@pytest.fixture
async def dsn(common: Common, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A database without a row, as the role that owns it."""
    async with without_leftovers():
        yield common.dsn
        await common.become_idle()  # a statement that is cancelled takes its connection longer than one that ends
    if request.node.stash.get(FAILED, False):
        await common.disconnect()
    await common.empty()


@pytest.fixture
def db(common: Common, dsn: str) -> Database:
    return common.db


@pytest.fixture
async def agent(db: Database) -> uuid.UUID:
    return await agents.get_or_create_agent(db, "ana", now=NOON)


@pytest.fixture(scope="session")
async def shared(server: str, template: str) -> AsyncIterator[str]:
    async with database(server, template) as dsn:
        yield dsn


@pytest.fixture(scope="session")
async def line(shared: str) -> AsyncIterator[Tx]:
    connection = await asyncpg.connect(shared)
    await register_types(connection)
    yield connection
    await connection.close()


@pytest.fixture
async def tx(line: Tx) -> AsyncIterator[Tx]:
    """One unit of work in the scope of a fresh agent `ana`, undone at the end."""
    agent_id = ids.derive_agent_id("ana")
    await begin(line, agent_id)
    await agents.SQL["insert_agent"].execute(line, agent_id=agent_id, name="ana", now=NOON)
    yield line
    await line.execute("rollback")
