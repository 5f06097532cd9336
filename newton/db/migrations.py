"""Migrations: the files schema/NNNN_*.sql are applied in order, statement by statement, each once, and never undone.

Pending migrations are applied in one transaction under an advisory lock. In a distributed database, the tables and
functions that they add are distributed in the same transaction.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import asyncpg

from newton.db.distribution import (
    distribute_added,
    grant_views,
    is_distributed,
    require_coordinator,
    set_transaction_settings,
)
from newton.db.pool import Tx
from newton.db.requirements import require
from newton.db.roles import DatabaseRoles, create_roles, read_roles, writable_tables
from newton.errors import SchemaVersionError

TOKEN_PATTERN = re.compile(
    r"""
    --[^\n]*                                   # comment
    | /\*.*?\*/
    | [eE]'(?:[^'\\]|\\.|'')*'                 # string with escapes
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"                           # quoted name
    | (?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?P=tag)  # body of a function
    | \bbegin\s+atomic\b
    | \b(?:case|end)\b
    | ;
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
COMMENT_PATTERN = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def split_statements(sql: str) -> list[str]:
    """Return the statements of a text, without the semicolons, each with the comments before it.

    Supports what a migration needs: function bodies in dollar quotes or in `begin atomic ... end`.
    """
    statements: list[str] = []
    start, depth = 0, 0
    for match in TOKEN_PATTERN.finditer(sql):
        token = match.group().lower()
        if token.startswith("begin"):
            depth = 1
        elif token == "case" and depth:
            depth += 1
        elif token == "end" and depth:
            depth -= 1
        elif token == ";" and not depth:
            statements.append(sql[start : match.start()].strip())
            start = match.end()
    return [statement for statement in (*statements, sql[start:].strip()) if COMMENT_PATTERN.sub("", statement).strip()]


LOCK_KEY = 7_243_004_512_377_101

PRIVILEGES_HINT = (
    "Set DATABASE_URL to the connection string of the owner of the database. `newton doctor` says what it lacks."
)

# The table of applied migrations cannot itself be a migration.
CREATE_LEDGER_SQL = """
create schema if not exists runtime;
create table if not exists runtime.schema_migrations (
    name text primary key,
    sha256 text not null,
    applied_at timestamptz not null default now()
);
"""
# Nor can the names of the roles: each migration has them.
CREATE_ROLE_NAME_SQL = """
create function runtime.{kind}_role() returns text language sql immutable parallel safe return '{role}'
"""
# Hashes of files that were edited before the first release, by name. The new text has the same result.
FORMER_HASHES = {"0001_foundation.sql": "171057e9f2205ce568385d5b85767381ef72b30009bdd7c8012a46b9a0265508"}


@dataclass(frozen=True, slots=True)
class SchemaMigration:
    """A migration: the name of its file, and the SQL in it."""

    name: str
    sql: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def read_migrations(folder: Path) -> list[SchemaMigration]:
    """Return the migrations in a folder, in the order in which they are applied."""
    files = sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    return [SchemaMigration(file.name, file.read_text(encoding="utf-8")) for file in files]


def find_pending(
    applied: Mapping[str, str], wanted: Sequence[SchemaMigration], *, where: Literal["database", "backup"] = "database"
) -> list[SchemaMigration]:
    """Return the migrations that are not applied. `applied` has the hash of each one that is, by name.

    Raises SchemaVersionError for a file that was edited after it was applied, and for a database or backup (`where`) of
    a newer version.
    """
    for migration in wanted:
        hashes = (None, migration.sha256, FORMER_HASHES.get(migration.name))
        if applied.get(migration.name) not in hashes:
            raise SchemaVersionError(
                f"The migration {migration.name} was edited after it was applied to this {where}.",
                hint="Restore the file of the migration, and make the change in a new migration.",
            )
    if newer := sorted(applied.keys() - {migration.name for migration in wanted}):
        raise SchemaVersionError(
            f"The {where} is newer than this version of Newton: it has the migration {newer[-1]}.",
            hint=f"Update Newton to the version that last used this {where}. Nothing was changed.",
        )
    return [migration for migration in wanted if migration.name not in applied]


async def migrate(conn: Tx, wanted: Sequence[SchemaMigration], *, roles: DatabaseRoles | None = None) -> list[str]:
    """Apply the pending migrations in one transaction; return their names. Concurrent callers wait for each other.

    `roles` are those of a new schema, if they are not derived from the name of the database. Raises SchemaVersionError
    for an edited or failing migration, a newer database, and a server without what Newton needs, such as pgvector.
    """
    try:
        if not await _load_pending(conn, wanted):
            return []
        async with conn.transaction():
            await conn.execute("select pg_advisory_xact_lock($1)", LOCK_KEY)
            roles = await _prepare(conn, roles or await read_roles(conn))
            todo = await _load_pending(conn, wanted)
            distributed = await is_distributed(conn)
            if distributed:
                await set_transaction_settings(conn)
            async with writable_tables(conn):
                for migration in todo:
                    await _apply(conn, migration, roles)
            if distributed:
                await distribute_added(conn)
        if distributed:
            await grant_views(conn)
    except asyncpg.InsufficientPrivilegeError as error:
        what = f"The database user may not create the schema: {error}."
        raise SchemaVersionError(what, hint=PRIVILEGES_HINT) from error
    return [migration.name for migration in todo]


async def _prepare(conn: Tx, roles: DatabaseRoles) -> DatabaseRoles:
    """Create what all migrations need: the roles, the functions that name them, and the table of migrations."""
    await require(conn, roles)
    await create_roles(conn, roles)
    await conn.execute(CREATE_LEDGER_SQL)
    for kind, role in roles._asdict().items():
        if await conn.fetchval("select to_regprocedure($1) is null", f"runtime.{kind}_role()"):
            await conn.execute(CREATE_ROLE_NAME_SQL.format(kind=kind, role=role))
    return roles


async def find_new_migrations(conn: Tx, wanted: Sequence[SchemaMigration]) -> list[str]:
    """Return the names of the migrations that are not applied. Raises SchemaVersionError as `find_pending` does."""
    return [migration.name for migration in await _load_pending(conn, wanted)]


async def _load_pending(conn: Tx, wanted: Sequence[SchemaMigration]) -> list[SchemaMigration]:
    return find_pending(await load_applied(conn), wanted)


async def load_applied(conn: Tx) -> dict[str, str]:
    """Return the hash of each applied migration by name; an empty dict for a database without Newton's schema."""
    if await conn.fetchval("select to_regclass('runtime.schema_migrations')") is None:
        await require_coordinator(conn)
        return {}
    rows = await conn.fetch("select name, sha256 from runtime.schema_migrations order by name")
    return {str(row["name"]): str(row["sha256"]) for row in rows}


async def _apply(conn: Tx, migration: SchemaMigration, roles: DatabaseRoles) -> None:
    try:
        for statement in split_statements(roles.fill_in(migration.sql)):
            await conn.execute(statement)
    except asyncpg.PostgresError as error:
        raise SchemaVersionError(f"The migration {migration.name} failed: {error}.", hint=PRIVILEGES_HINT) from error
    statement = "insert into runtime.schema_migrations (name, sha256) values ($1, $2)"
    await conn.execute(statement, migration.name, migration.sha256)
