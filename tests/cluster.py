"""Databases for tests: on one server, or on all nodes of a Citus cluster (NEWTON_TEST_CITUS_DSN)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from newton.content.package_data import data_folder
from newton.db.cluster import run_on_nodes
from newton.db.connection import prepare_database
from newton.db.distribution import distribute, is_distributed, plan_distribution
from newton.db.pool import Tx
from newton.db.roles import derive_roles, read_roles

SHARDS = 4  # few, so that a database is made quickly
NODES = """
select nodename as host, nodeport as port
from pg_dist_node where noderole = 'primary' order by groupid
"""


def on(server: str, database: str, user: str | None = None) -> str:
    """The connection string of another database, or user, of the same server."""
    url = urlsplit(server)
    netloc = url.netloc if user is None else f"{user}@{url.netloc.rpartition('@')[2]}"
    return urlunsplit((url.scheme, netloc, f"/{database}", url.query, ""))


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers on which each database is made: one, or the coordinator of a cluster before its workers."""

    dsns: tuple[str, ...]

    @property
    def is_cluster(self) -> bool:
        return len(self.dsns) > 1

    async def make_template(self, name: str) -> None:
        """A migrated database, from which others are copied."""
        async with connection(on(self.dsns[0], "postgres")) as lock:
            if self.is_cluster:  # whose nodes cannot change a role for two databases at once
                await lock.execute("select pg_advisory_lock(21)")
            await self._make_template(name)

    async def make_empty(self, name: str) -> None:
        """A database without anything of Newton, on all nodes."""
        await self._on_each(f"create database {name}")
        if self.is_cluster:
            await self._join(name)

    async def _make_template(self, name: str) -> None:
        await self.make_empty(name)
        dsn = on(self.dsns[0], name)
        await prepare_database(dsn, schema=data_folder("schema"))
        if self.is_cluster:
            async with connection(dsn) as owner:
                await distribute(owner, await plan_distribution(owner, shards=SHARDS))
            await self._on_each(f"alter database {name} with allow_connections false")
            await self._on_each(
                f"select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '{name}'"
            )

    async def copy(self, name: str, template: str) -> None:
        await self._on_each(f"create database {name} template {template}")
        if self.is_cluster:
            await self._on_each(
                f"insert into pg_db_role_setting select d.oid, s.setrole, s.setconfig from pg_db_role_setting as s"
                f" join pg_database as t on t.oid = s.setdatabase and t.datname = '{template}'"
                f" join pg_database as d on d.datname = '{name}'"
            )

    async def drop(self, name: str) -> None:
        if self.is_cluster:
            await self._end_prepared(name)
        await self._on_each(f"drop database if exists {name} with (force)")
        with suppress(asyncpg.DependentObjectsStillExistError):  # a test that failed has left a copy
            await self._on_each(f"drop role if exists {', '.join(derive_roles(name))}")

    async def _end_prepared(self, name: str) -> None:
        """End the transactions that a killed node left half committed, and what an interrupted move left."""
        for dsn in self.dsns:
            async with connection(on(dsn, "postgres")) as node:
                rows = await node.fetch("select gid from pg_prepared_xacts where database = $1", name)
                await node.execute(
                    "select pg_drop_replication_slot(slot_name) from pg_replication_slots"
                    f" where database = '{name}' and not active"
                )
            for row in rows:
                async with connection(on(dsn, name)) as node:
                    await node.execute(f"rollback prepared '{row['gid']}'")

    async def _join(self, name: str) -> None:
        for dsn in self.dsns:
            async with connection(on(dsn, name)) as node:
                await node.execute("create extension citus; create extension vector")
        async with connection(on(self.dsns[0], name)) as coordinator:
            first, *others = [urlsplit(dsn) for dsn in self.dsns]
            await coordinator.execute("select citus_set_coordinator_host($1, $2)", first.hostname, first.port)
            for other in others:
                await coordinator.execute("select citus_add_node($1, $2)", other.hostname, other.port)

    async def _on_each(self, sql: str) -> None:
        for dsn in self.dsns:
            async with connection(on(dsn, "postgres")) as node:
                await node.execute("set allow_system_table_mods = on")
                await node.execute(sql)


async def list_distributed(conn: Tx) -> set[str]:
    """The tables whose rows are in shards, which are tables of their own."""
    if not await conn.fetchval("select to_regclass('pg_dist_partition') is not null"):
        return set()
    return {
        row["name"] for row in await conn.fetch("select logicalrelid::regclass::text as name from pg_dist_partition")
    }


@asynccontextmanager
async def connection(dsn: str, **settings: str) -> AsyncGenerator[Tx]:
    opened = await asyncpg.connect(dsn, server_settings=settings)
    try:
        yield opened
    finally:
        await opened.close()


async def with_roles(conn: Tx, sql: str) -> str:
    """That SQL with the names of the database's roles, as in a migration."""
    return (await read_roles(conn)).fill_in(sql)


LOCK_WAITS = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


async def count_lock_waits(conn: Tx) -> int:
    """How many sessions of the database wait for a lock, on all its nodes."""
    if not await is_distributed(conn):
        return await conn.fetchval(LOCK_WAITS)
    return sum(map(int, (await run_on_nodes(conn, LOCK_WAITS)).values()))


async def list_nodes(dsn: str) -> tuple[str, ...]:
    """The connection strings of a database on all nodes of its cluster, the coordinator's first."""
    async with connection(dsn) as coordinator:
        if not await coordinator.fetchval("select to_regclass('pg_dist_node') is not null"):
            return (dsn,)
        nodes = await coordinator.fetch(NODES)
    url = urlsplit(dsn)
    user, at, _ = url.netloc.rpartition("@")
    return tuple(
        urlunsplit((url.scheme, f"{user}{at}{node['host']}:{node['port']}", url.path, url.query, "")) for node in nodes
    )
