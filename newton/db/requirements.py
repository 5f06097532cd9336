"""Requirements of a PostgreSQL server that only an administrator can meet, with the SQL for it, and its health.

The owner of the database needs no right but `create` on the database, if an administrator has created the extension
and the two roles. With the right to create roles the owner creates these itself.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from newton.db.pool import Tx
from newton.db.queries import load
from newton.db.roles import CREATE_ROLE_SQL, DatabaseRoles, derive_roles, may_become, read_roles
from newton.errors import SchemaVersionError

SQL = load("newton.db", "requirements.sql")


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Capabilities of the database server.

    `durable`: a commit survives a power failure. `utf8`: letters beyond ASCII are converted to lower case.
    `rls_enforced`: the role of the application cannot bypass row level security. `tables` is the number of tables with
    rows of agents, `isolated` the number of those with forced row level security.
    """

    version: str
    pgvector: str | None
    durable: bool
    utf8: bool
    rls_enforced: bool
    tables: int
    isolated: int


async def read_server_info(tx: Tx) -> ServerInfo:
    """Return the capabilities of the server of the open transaction."""
    row = await SQL["describe_server"].fetch_one(tx)
    assert row is not None
    return ServerInfo(**row)


MIN_MAJOR, MIN_VECTOR = 15, (0, 7)  # of PostgreSQL; of pgvector, whose type halfvec came with 0.7
NEEDED_VECTOR = ".".join(map(str, MIN_VECTOR))
UTF8 = "template template0 encoding 'UTF8' locale 'C.UTF-8'"  # of `create database`


@dataclass(frozen=True, slots=True)
class MissingRequirement:
    """One thing that Newton needs and the server lacks.

    `sql` are the statements for an administrator that provide it.
    """

    problem: str
    remedy: str
    sql: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoleState:
    """One of Newton's two roles on the server, as the owner of the database sees it."""

    name: str
    exists: bool
    is_privileged: bool
    may_grant: bool
    uses_public: bool
    is_usable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerState:
    """The state of a database server, of Newton's schemas in it, and the rights of the user that connects to it.

    `schemas` are those with the names of Newton's, `foreign_schemas` those of them that belong to somebody else. The
    values for the schema public are None if there is no such schema.
    """

    database: str
    owner: str
    version: str
    major: int
    encoding: str
    is_standby: bool
    is_superuser: bool
    creates_roles: bool
    creates_schemas: bool
    uses_public: bool | None
    is_public_open: bool | None
    opens_public: bool | None
    vector: str | None
    vector_schema: str | None
    vector_available: str | None
    is_installed: bool
    schemas: Sequence[str]
    foreign_schemas: Sequence[str]
    roles: tuple[RoleState, ...]


async def find_missing(conn: Tx, *, roles: DatabaseRoles | None = None) -> list[MissingRequirement]:
    """Return what Newton needs and the server of the connection lacks, such as pgvector or a role.

    Nothing is changed.
    """
    return list(list_missing(await _read_state(conn, roles or await read_roles(conn))))


async def require(conn: Tx, roles: DatabaseRoles) -> None:
    """Raise SchemaVersionError, with all remedies as its hint, if the server lacks what Newton needs."""
    missing = await find_missing(conn, roles=roles)
    if missing:
        # the printed SQL is the remedy of several; a single one is short enough to be named
        remedies = [one.remedy for one in missing if len(missing) == 1 or not one.sql]
        if any(one.sql for one in missing):
            remedies.append("`newton db requirements` prints the SQL for an administrator.")
        what = "PostgreSQL lacks what Newton needs: " + " ".join(one.problem for one in missing)
        raise SchemaVersionError(what, hint=" ".join(dict.fromkeys(remedies)))


async def _read_state(conn: Tx, roles: DatabaseRoles) -> OwnerState:
    row = await SQL["describe_owner"].fetch_one(conn)
    assert row is not None
    return OwnerState(**row, roles=tuple([await _read_role(conn, role) for role in roles]))


async def _read_role(conn: Tx, role: str) -> RoleState:
    row = await SQL["describe_role"].fetch_one(conn, role=role)
    if row is None:
        return RoleState(role, exists=False, is_privileged=False, may_grant=False, uses_public=False, is_usable=False)
    return RoleState(role, exists=True, **row, is_usable=await may_become(conn, role))


def list_missing(state: OwnerState) -> Generator[MissingRequirement]:
    """Yield what Newton needs and a server in this state lacks."""
    database, owner = quote_identifier(state.database), quote_identifier(state.owner)
    yield from _check_server(state)
    yield from _check_vector(state)
    if state.foreign_schemas and state.is_installed:
        name = state.foreign_schemas[0]
        problem = f"The schema {name} does not belong to the user {state.owner}."
        yield MissingRequirement(problem, "Set DATABASE_URL to the connection string of the owner of the schemas.")
    elif state.schemas and not state.is_installed:
        problem = f"The database has a schema {state.schemas[0]}, which Newton did not create."
        yield MissingRequirement(problem, "Set DATABASE_URL to a database of Newton's own.")
    elif not state.is_installed and not state.creates_schemas:
        problem = f"The user {state.owner} may not create schemas in the database."
        yield _to_run(problem, f"grant create on database {database} to {owner}")
    for role in state.roles:
        yield from _check_role(state, role)


def _check_server(state: OwnerState) -> Generator[MissingRequirement]:
    if state.major < MIN_MAJOR:
        problem = f"The server is PostgreSQL {state.version}."
        yield MissingRequirement(problem, f"Use a server of PostgreSQL {MIN_MAJOR} or later.")
    if state.encoding != "UTF8" and not state.is_installed:
        problem = f"The database has the encoding {state.encoding}, in which most characters cannot be stored."
        yield MissingRequirement(
            problem,
            f"Create another database with `create database NAME {UTF8}`, and set DATABASE_URL to it.",
        )
    if state.is_standby:
        problem = "The server is a standby, which refuses writes."
        yield MissingRequirement(problem, "Set DATABASE_URL to the primary server.")


def _check_vector(state: OwnerState) -> Generator[MissingRequirement]:
    """Yield what is missing of pgvector: the extension, a new enough version, or the right to use it."""
    if state.vector_available is None or _is_old(state.vector_available):
        found = f"pgvector {state.vector_available}" if state.vector_available else "no pgvector"
        problem = f"The server has {found}; Newton needs pgvector {NEEDED_VECTOR} or later."
        yield MissingRequirement(problem, f"Install the package pgvector {NEEDED_VECTOR} or later on the server.")
    elif state.vector is None:
        if not state.is_superuser:
            problem = "The database does not have the extension vector."
            yield _to_run(problem, "create extension if not exists vector schema public")
    elif _is_old(state.vector):
        problem = f"The extension vector has the version {state.vector}; Newton needs {NEEDED_VECTOR} or later."
        yield _to_run(problem, "alter extension vector update")
    if state.vector:
        yield from _check_vector_schema(state)


def _check_vector_schema(state: OwnerState) -> Generator[MissingRequirement]:
    if state.vector_schema != "public":
        problem = f"The extension vector is in the schema {state.vector_schema}; Newton looks for it in public."
        yield _to_run(problem, "alter extension vector set schema public")
    if not state.uses_public:
        problem = f"The user {state.owner} may not use the schema public, where the extension vector is."
        yield _to_run(problem, f"grant usage on schema public to {quote_identifier(state.owner)}")


def _is_old(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit()) < MIN_VECTOR


def _check_role(state: OwnerState, role: RoleState) -> Generator[MissingRequirement]:
    """Yield what is missing of a role: the role itself, or a right on it."""
    owner, can_open = quote_identifier(state.owner), bool(state.is_public_open or state.opens_public)
    to_open = () if can_open or role.uses_public else (f"grant usage on schema public to {role.name}",)
    if not role.exists:
        if to_open or not (state.is_superuser or state.creates_roles):
            problem = f"The role {role.name} does not exist, and the user {state.owner} may not create it."
            yield _to_run(problem, CREATE_ROLE_SQL.format(role=role.name), f"grant {role.name} to {owner}", *to_open)
        return
    if to_open:
        yield _to_run(f"The role {role.name} may not use the schema public, where the extension vector is.", *to_open)
    if role.is_privileged:
        problem = f"The role {role.name} has rights that bypass the isolation of agents."
        sql = f"alter role {role.name} nosuperuser nocreatedb nocreaterole noreplication nobypassrls"
        yield _to_run(problem, sql)
    if not role.is_usable and not (state.is_superuser or role.may_grant or _may_grant_any(state)):
        problem = f"The user {state.owner} may not work as the role {role.name}."
        yield _to_run(problem, f"grant {role.name} to {owner}")


def _may_grant_any(state: OwnerState) -> bool:
    """Return whether the user may grant roles that others created, as one with CREATEROLE could before version 16."""
    return state.creates_roles and state.major < 16


def _to_run(problem: str, *sql: str) -> MissingRequirement:
    return MissingRequirement(problem, f"An administrator runs `{'; '.join(sql)}` in the database.", sql)


def list_statements(database: str, owner: str) -> list[str]:
    """Return all statements with which an administrator prepares a new database for its owner, who has no rights.

    They are for psql, because the second part runs in the new database.
    """
    user, roles = quote_identifier(owner), derive_roles(database)
    return [
        f"create role {user} login password 'CHANGE ME'",
        f"create database {quote_identifier(database)} owner {user} {UTF8}",
        f"\\connect {quote_identifier(database)}",
        "create extension vector schema public",
        *(CREATE_ROLE_SQL.format(role=role) for role in roles),
        *(f"grant {role} to {user}" for role in roles),
    ]


def quote_identifier(name: str) -> str:
    """Return a name as SQL reads it, in quotes.

    >>> print(quote_identifier('Müller "AI"'))
    "Müller ""AI\"""
    """
    return '"' + name.replace('"', '""') + '"'
