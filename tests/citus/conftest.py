"""A database on a cluster, in which ana and ben have lived the same life. Skipped without NEWTON_TEST_CITUS_DSN."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import pytest

from newton.db.pool import Database
from tests.cluster import connection, list_nodes
from tests.conftest import CLUSTER, database
from tests.db.catalog import AGENTLESS, tables
from tests.db.world import live


@dataclass(frozen=True, slots=True)
class ClusterWorld:
    dsn: str
    nodes: tuple[str, ...]
    db: Database
    ana: UUID
    ben: UUID
    names: tuple[str, ...]

    @property
    def workers(self) -> tuple[str, ...]:
        return self.nodes[1:]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if not CLUSTER else ():
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.skip(reason="NEWTON_TEST_CITUS_DSN names no Citus cluster"))


@pytest.fixture(scope="module")
async def world(server: str, template: str) -> AsyncIterator[ClusterWorld]:
    async with database(server, template) as dsn:
        db = await Database.open(dsn, size=6)
        async with connection(dsn) as owner:
            names = tuple(sorted(await tables(owner) - AGENTLESS))
        yield ClusterWorld(dsn, await list_nodes(dsn), db, await live(db, "ana"), await live(db, "ben"), names)
        await db.close()
