"""The two database roles under which Newton works, and the rights of the owner under row level security.

Roles belong to a whole cluster, so their names contain that of the database: two installations in one cluster, with
different owners, have roles of their own. Migrations name the roles newton_app and newton_worker; `fill_in` replaces
these names. The functions `runtime.app_role()` and `runtime.worker_role()` of the database return the real ones.
"""

import hashlib
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import NamedTuple

import asyncpg

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import DatabaseError

SQL = load("newton.db", "roles.sql")

# `noinherit` and the others are the defaults or the safe value; both roles own nothing and bypass nothing.
CREATE_ROLE_SQL = "create role {role} login nosuperuser nocreatedb nocreaterole nobypassrls noinherit"
MAX_READABLE = 40  # characters of a database name that is part of the names of roles; PostgreSQL allows names of 63
PLACEHOLDER_PATTERN = re.compile(r"\bnewton_(app|worker)\b")


class DatabaseRoles(NamedTuple):
    """The names of two roles: `app` for the data of agents, `worker` for the job queue. They need no quotes in SQL."""

    app: str
    worker: str

    def fill_in(self, sql: str) -> str:
        """Return the text of a migration with these roles in place of newton_app and newton_worker."""
        return PLACEHOLDER_PATTERN.sub(lambda match: getattr(self, match[1]), sql)


# Those of a database that was created before names of roles contained that of the database.
SHARED_ROLES = DatabaseRoles("newton_app", "newton_worker")


def derive_roles(database: str) -> DatabaseRoles:
    """Return the names of the roles of a database.

    A name with other characters than lower-case letters, digits and underscores, or a long one, is shortened to these
    characters and gets a part of its hash.

    >>> derive_roles("newton").app
    'newton_app_newton'
    >>> derive_roles('Müller "AI"').app
    'newton_app_m_ller_ai_24275e0c'
    """
    suffix = database
    if not re.fullmatch(rf"[a-z0-9_]{{1,{MAX_READABLE}}}", database):
        readable = re.sub(r"[^a-z0-9]+", "_", database.lower()).strip("_")[:MAX_READABLE]
        suffix = "_".join(part for part in (readable, hashlib.sha256(database.encode()).hexdigest()[:8]) if part)
    return DatabaseRoles(f"newton_app_{suffix}", f"newton_worker_{suffix}")


async def read_roles(conn: Tx) -> DatabaseRoles:
    """Return the roles of the database; before Newton's schema is created, the roles that it will get."""
    row = await SQL["find_names"].fetch_one(conn)
    assert row is not None
    if row["has_functions"]:
        names = await SQL["read_names"].fetch_one(conn)
        assert names is not None
        return DatabaseRoles(*names)
    return SHARED_ROLES if row["is_installed"] else derive_roles(row["database"])


async def create_roles(conn: Tx, roles: DatabaseRoles) -> None:
    """Create the missing roles, let them use pgvector, and let the database user act as them.

    Raises InsufficientPrivilegeError if the user may not create or grant roles.
    """
    for role in roles:
        if not await conn.fetchval("select exists (select from pg_roles where rolname = $1)", role):
            await conn.execute(CREATE_ROLE_SQL.format(role=role))
        if not await may_become(conn, role):
            user = await conn.fetchval("select quote_ident(current_user)")
            await conn.execute(f"grant {role} to {user}")
        if not await conn.fetchval("select has_schema_privilege($1, 'public', 'usage')", role):
            await conn.execute(f"grant usage on schema public to {role}")


async def may_become(conn: Tx, role: str) -> bool:
    """Return whether the database user may act as an existing role (`set role`), by trying it."""
    transaction = conn.transaction()
    await transaction.start()
    try:
        await conn.execute(f"set local role {role}")
    except asyncpg.InsufficientPrivilegeError:
        return False
    finally:
        await transaction.rollback()
    return True


async def require_all_rows(conn: Tx) -> None:
    """Raise DatabaseError if the database user does not see the rows of all agents in every table."""
    if hidden := [row["name"] for row in await SQL["list_hidden"].fetch_all(conn)]:
        raise DatabaseError(
            f"The database user does not see the rows of all agents in {hidden[0]}.",
            hint="Set DATABASE_URL to the connection string of the owner of the database, or of a superuser.",
        )


@asynccontextmanager
async def writable_tables(conn: Tx) -> AsyncGenerator[None]:
    """Let the owner of the tables write the rows of all agents within the block, which may rename and drop tables.

    It is for the open transaction.
    """
    tables = await SQL["list_confined"].fetch_all(conn)
    for table in tables:
        await conn.execute(f"alter table {table['name']} no force row level security")
    yield
    for table in await SQL["list_remaining"].fetch_all(conn, oids=[one["oid"] for one in tables]):
        await conn.execute(f"alter table {table['name']} force row level security")
