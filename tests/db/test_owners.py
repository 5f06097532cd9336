"""Newton on a server of somebody else: an owner without rights, and several owners in one cluster.

An administrator runs the SQL that `newton db requirements` prints. Each thing that is missing is named, with the SQL
that provides it.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import asyncpg
import pytest

from newton import ids
from newton.content.package_data import data_folder
from newton.db.backup import create_backup, restore
from newton.db.connection import prepare_database
from newton.db.migrations import CREATE_LEDGER_SQL, SchemaMigration, migrate, read_migrations, split_statements
from newton.db.pool import Database, Tx, begin
from newton.db.requirements import find_missing, list_statements, quote_identifier
from newton.db.roles import derive_roles, read_roles
from newton.errors import DatabaseError, SchemaVersionError
from newton.settings import load
from tests.cluster import connection, on
from tests.db.catalog import AGENTLESS, faults, tables
from tests.db.world import live
from tests.support import NOON
from tests.system.typed import Done, ok, typed

pytestmark = pytest.mark.one_server("the SQL of an administrator is for one server")

SCHEMA = data_folder("schema")
FORMER = Path(__file__).parents[1] / "data" / "0001_shared_roles.sql"
PASSWORD = "secret"
# Names that a person may give a database: SQL, URLs and names of roles each read them in their own way.
NAMES = ("plain_{}", 'Mü"ller AI {}', "Upper-Case.{}", "日本{}", "{}" + "x" * 51, "100%{}'s;--")


@dataclass(frozen=True, slots=True)
class Owned:
    """A database whose owner has no rights, and the connection string of either."""

    name: str
    owner: str
    dsn: str
    admin: str


@dataclass(frozen=True, slots=True)
class Landlord:
    """The administrator of a server, who prepares databases for others and removes them in the end."""

    server: str
    made: AsyncExitStack

    async def prepare(self, name: str, owner: str) -> Owned:
        """Run what `newton db requirements --database --owner` prints, as psql would."""
        where = "postgres"
        for statement in list_statements(name, owner):
            if statement.startswith("\\connect"):
                where = name
                continue
            async with connection(on(self.server, quote(where))) as conn:
                await conn.execute(statement.replace("CHANGE ME", PASSWORD))
            if statement.startswith("create database"):
                self.made.push_async_callback(self._remove, name, owner)
        user = f"{quote(owner)}:{PASSWORD}"
        return Owned(name, owner, on(self.server, quote(name), user=user), on(self.server, quote(name)))

    async def _remove(self, name: str, owner: str) -> None:
        async with connection(on(self.server, "postgres")) as conn:
            await conn.execute(f"drop database {quote_identifier(name)} with (force)")
            for role in (*derive_roles(name), owner):
                await conn.execute(f"drop role if exists {quote_identifier(role)}")


@pytest.fixture
async def landlord(server: str) -> AsyncIterator[Landlord]:
    async with AsyncExitStack() as made:
        yield Landlord(server, made)


@pytest.fixture
async def owned(landlord: Landlord) -> Owned:
    mark = uuid4().hex[:8]
    return await landlord.prepare(f"owned_{mark}", f"owner_{mark}")


async def command(home: Path, *words: str, **settings: str) -> Done:
    """`newton …`, which has an event loop of its own."""
    return await asyncio.to_thread(typed, home, *words, **settings)


async def count_rows(dsn: str) -> dict[str, int]:
    async with connection(dsn) as conn:
        return {name: await conn.fetchval(f"select count(*) from {name}") for name in await tables(conn)}


@asynccontextmanager
async def opened(dsn: str) -> AsyncGenerator[Database]:
    db = await Database.open(dsn, size=2)
    try:
        yield db
    finally:
        await db.close()


@pytest.mark.slow
@pytest.mark.parametrize("form", [NAMES[0], *(pytest.param(form, marks=pytest.mark.slow) for form in NAMES[1:])])
async def test_an_owner_without_rights_installs_whatever_the_database_is_called(landlord: Landlord, form: str) -> None:
    mark = uuid4().hex[:8]
    owned = await landlord.prepare(form.format(mark), f'Ow"ner {mark}')
    async with connection(owned.dsn) as conn:
        assert await find_missing(conn) == []
        rights = await conn.fetchrow(
            "select rolsuper, rolcreaterole, rolbypassrls from pg_roles where rolname = $1", owned.owner
        )
        assert tuple(rights or ()) == (False, False, False)
    await prepare_database(owned.dsn, schema=SCHEMA)
    async with opened(owned.dsn) as db:
        await live(db, "ana")
        async with db.transaction(ids.derive_agent_id("ben")) as tx:
            assert await tx.fetchval("select count(*) from memory.memories") == 0
    assert (await count_rows(owned.dsn))["memory.memories"] > 20, "for backups the owner reads all rows"


@pytest.mark.slow
async def test_all_that_an_agent_does_works_for_an_owner_without_rights(owned: Owned, tmp_path: Path) -> None:
    await prepare_database(owned.dsn, schema=SCHEMA)
    async with connection(owned.admin) as admin:
        # The schema is as for a superuser, but for the policy with which the owner reads.
        assert {one.split(": ")[1] for one in await faults(admin)} == {"policy owner lets others in"}
    async with opened(owned.dsn) as db:
        ana, ben = await live(db, "ana"), await live(db, "ben")
        names = await db_tables(owned.dsn)
        async with db.transaction(ana) as tx:
            for name in names:
                assert not await tx.fetchval(f"select count(*) from {name} where agent_id <> $1", ana), name
        async with connection(owned.dsn) as conn:
            assert await conn.execute("update memory.memories set micro = micro") == "UPDATE 0", "the owner only reads"
        before = await count_rows(owned.admin)
        copy = tmp_path / "copy"
        made = await create_backup(load({"database_url": owned.dsn}, env={}), copy, now=NOON)
        assert made.rows == {name: rows for name, rows in before.items() if name != "runtime.schema_migrations"}
        async with db.transaction(ben) as tx:
            await tx.execute("select runtime.erase_agent($1)", ben)
        kept = await count_rows(owned.admin)
        assert 0 < kept["memory.memories"] < before["memory.memories"]
    await restore(load({"database_url": owned.dsn}, env={}), copy, schema=SCHEMA, replace=True, keep_tokens=True)
    assert await count_rows(owned.admin) == before


async def db_tables(dsn: str) -> list[str]:
    async with connection(dsn) as conn:
        return sorted(await tables(conn) - AGENTLESS)


@pytest.mark.slow
def test_commands_work_for_an_owner_without_rights(owned: Owned, tmp_path: Path) -> None:
    url = {"DATABASE_URL": owned.dsn}
    for words in (
        ("remember", "Ines lives in Porto."),
        ("decide", "Use PostgreSQL", "--confidence", "0.8", "--reason", "analysis:it is there"),
        ("import", str(written(tmp_path))),
        ("backup", str(tmp_path / "copy")),
        ("restore", str(tmp_path / "copy"), "--replace"),
        ("export", str(tmp_path / "ana.ndjson")),
        ("erase", "--scrub", "--yes"),
    ):
        ok(typed(tmp_path, *words, **url))
    assert "Porto" in ok(typed(tmp_path, "context", "Where is Porto?", **url))
    assert "✓ row-level security is forced on all" in typed(tmp_path, "doctor", **url).stdout


def written(folder: Path) -> Path:
    path = folder / "notes.md"
    path.write_text("# Porto\n\nPorto is a city at the Douro.\n", encoding="utf-8")
    return path


@pytest.mark.slow
async def test_two_owners_install_in_one_cluster_and_see_nothing_of_each_other(landlord: Landlord) -> None:
    mark = uuid4().hex[:8]
    one, two = [await landlord.prepare(f"{name}_{mark}", f"{name}_owner_{mark}") for name in ("one", "two")]
    for owned in (one, two):
        await prepare_database(owned.dsn, schema=SCHEMA)
    async with connection(one.dsn) as first, connection(two.dsn) as second:
        assert not set(await read_roles(first)) & set(await read_roles(second))
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await first.execute(f"set role {(await read_roles(second)).app}")
    for owned in (one, two):
        async with opened(owned.dsn) as db:
            await live(db, "ana")
    trespass = on(landlord.server, quote(two.name), user=f"{one.owner}:{PASSWORD}")
    async with connection(trespass) as conn:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await conn.fetch("select * from memory.memories")
    with pytest.raises(SchemaVersionError, match="permission denied for schema runtime"):
        await prepare_database(trespass, schema=SCHEMA)


@pytest.mark.slow
async def test_an_owner_who_may_create_roles_needs_only_the_extension(owned: Owned) -> None:
    # as the master user of a managed server
    async with connection(owned.admin) as admin:
        await admin.execute(f"drop role {', '.join(derive_roles(owned.name))}")
        await admin.execute(f"alter role {owned.owner} createrole")
        await admin.execute("revoke usage on schema public from public")  # the owner of a database may open it again
    await prepare_database(owned.dsn, schema=SCHEMA)
    async with opened(owned.dsn) as db:
        await live(db, "ana")
    assert (await count_rows(owned.dsn))["memory.memories"] > 20


BROKEN: dict[str, tuple[str, str]] = {
    "no role": ("drop role {app}", "The role {app} does not exist"),
    "no worker role": ("drop role {worker}", "The role {worker} does not exist"),
    "no extension": ("drop extension vector", "does not have the extension vector"),
    "the extension elsewhere": ("create schema other; alter extension vector set schema other", "in the schema other"),
    "a closed public schema": (
        "alter schema public owner to current_user; revoke usage on schema public from public",
        "may not use the schema public",
    ),
    "no right to create schemas": ('alter database "{name}" owner to current_user', "may not create schemas"),
    "no membership": ('revoke {app} from "{owner}"', "may not work as the role {app}"),
    "a role that bypasses": ("alter role {app} bypassrls", "rights that bypass the isolation"),
    "a role that creates roles": ("alter role {worker} createrole", "rights that bypass the isolation"),
    "an old extension": (
        "update pg_extension set extversion = '0.6.2' where extname = 'vector'",
        "The extension vector has the version 0.6.2; Newton needs 0.7 or later",
    ),
}


async def test_what_is_missing_is_named_with_the_sql_that_provides_it(owned: Owned) -> None:
    names = {"name": owned.name, "owner": owned.owner, **derive_roles(owned.name)._asdict()}
    async with connection(owned.admin) as admin:
        for flaw, (sql, problem) in BROKEN.items():
            async with connection(owned.dsn) as conn:
                assert await find_missing(conn) == [], flaw
                await admin.execute(sql.format(**names))
                (missing, *_) = await find_missing(conn)
                assert problem.format(**names) in missing.problem, flaw
                with pytest.raises(SchemaVersionError, match=problem.format(**names)) as refused:
                    await migrate(conn, read_migrations(SCHEMA))
                assert missing.sql and "administrator" in refused.value.hint, flaw
                assert await admin.fetchval("select to_regnamespace('runtime') is null"), "nothing was changed"
                if flaw == "an old extension":
                    assert missing.sql == ("alter extension vector update",)
                    return  # it is the last flaw, because no package of the old version is at hand
                for statement in [sql for one in await find_missing(conn) for sql in one.sql]:
                    await admin.execute(statement)
                assert await find_missing(conn) == [], flaw


@pytest.mark.slow
async def test_commands_print_what_is_missing_and_work_once_it_is_there(owned: Owned, tmp_path: Path) -> None:
    url = {"DATABASE_URL": owned.dsn}
    async with connection(owned.admin) as admin:
        await admin.execute(f"drop extension vector; drop role {', '.join(derive_roles(owned.name))}")
        diagnosed = await command(tmp_path, "doctor", **url)
        assert diagnosed.returncode == 1 and diagnosed.stdout.count("✗") == 3
        assert "✗ The database does not have the extension vector." in diagnosed.stdout
        printed = json.loads(ok(await command(tmp_path, "db", "requirements", "--json", **url)))
        assert len(printed["missing"]) == 3
        assert await admin.fetchval("select to_regnamespace('runtime') is null"), "nothing was changed"
        refused = await command(tmp_path, "remember", "Ines lives in Porto.", **url)
        assert refused.returncode != 0 and "newton db requirements" in refused.stderr
        await admin.execute(ok(await command(tmp_path, "db", "requirements", **url)))
    assert "has all that Newton needs" in ok(await command(tmp_path, "db", "requirements", **url))
    ok(await command(tmp_path, "remember", "Ines lives in Porto.", **url))


async def test_several_missing_things_are_named_at_once(owned: Owned) -> None:
    async with connection(owned.admin) as admin:
        await admin.execute(f"drop extension vector; drop role {', '.join(derive_roles(owned.name))}")
    with pytest.raises(SchemaVersionError) as refused:
        await prepare_database(owned.dsn, schema=SCHEMA)
    assert refused.value.what.count(" does not ") == 3
    assert refused.value.hint == "`newton db requirements` prints the SQL for an administrator."


async def test_a_database_of_something_else_is_not_taken(owned: Owned, tmp_path: Path) -> None:
    async with connection(owned.dsn) as conn:
        await conn.execute("create schema memory; create table memory.mine (id int)")
    with pytest.raises(SchemaVersionError, match="a schema memory, which Newton did not create"):
        await prepare_database(owned.dsn, schema=SCHEMA)
    assert (await count_rows(owned.dsn)) == {"memory.mine": 0}


async def test_a_database_that_stores_other_characters_is_refused(owned: Owned, landlord: Landlord) -> None:
    name = f"latin_{uuid4().hex[:8]}"
    async with connection(landlord.server) as admin:
        await admin.execute(f"create database {name} template template0 encoding 'LATIN1' locale 'C'")
        try:
            with pytest.raises(SchemaVersionError, match="the encoding LATIN1") as refused:
                await prepare_database(on(landlord.server, name), schema=SCHEMA)
        finally:
            await admin.execute(f"drop database {name} with (force)")
    assert "encoding 'UTF8'" in refused.value.hint


@pytest.mark.slow
async def test_a_migration_of_an_owner_without_rights_changes_the_rows_of_all_agents(owned: Owned) -> None:
    await prepare_database(owned.dsn, schema=SCHEMA)
    async with opened(owned.dsn) as db:
        await live(db, "ana")
        await live(db, "ben")
    changes = "update memory.memories set micro = 'changed'; alter table memory.memories rename to \"All of them\""
    changed = SchemaMigration("9000_changed.sql", f"{changes}; drop table runtime.usage cascade")
    async with connection(owned.dsn) as conn:
        await migrate(conn, [*read_migrations(SCHEMA), changed])
        assert await conn.fetchval("select count(*) filter (where micro <> 'changed') from memory.\"All of them\"") == 0
    async with connection(owned.admin) as admin:
        assert not [one for one in await faults(admin) if "not forced" in one]


@pytest.mark.slow
async def test_a_user_who_sees_some_rows_cannot_make_a_backup(owned: Owned, tmp_path: Path) -> None:
    await prepare_database(owned.dsn, schema=SCHEMA)
    async with connection(owned.admin) as admin:
        await admin.execute("drop policy owner on heart.facts")
    with pytest.raises(DatabaseError, match=r"does not see the rows of all agents in heart\.facts"):
        await create_backup(load({"database_url": owned.dsn}, env={}), tmp_path / "copy", now=NOON)
    assert nothing_in(tmp_path)


def nothing_in(folder: Path) -> bool:
    return list(folder.iterdir()) == []


@pytest.fixture
async def former(server: str) -> AsyncIterator[str]:
    """A database as it was installed when the roles of all databases had the same names."""
    name = f"former_{uuid4().hex[:8]}"
    async with connection(server) as admin:
        await admin.execute(f"create database {name}")
        async with connection(on(server, name)) as conn:
            await install_former(conn)
        yield on(server, name)
        await admin.execute(f"drop database {name} with (force)")


async def install_former(conn: Tx) -> None:
    first, *others = read_migrations(SCHEMA)[:11]
    await conn.execute(CREATE_LEDGER_SQL)
    for migration in (SchemaMigration(first.name, FORMER.read_text(encoding="utf-8")), *others):
        for statement in split_statements(migration.sql):
            await conn.execute(statement)
        await conn.execute(
            "insert into runtime.schema_migrations (name, sha256) values ($1, $2)", migration.name, migration.sha256
        )


@pytest.mark.slow
async def test_a_database_with_roles_of_the_former_names_is_upgraded(former: str, tmp_path: Path) -> None:
    done = await prepare_database(former, schema=SCHEMA)
    assert done.migrations[0] == "0012_owner.sql" and done.roles == ("newton_app", "newton_worker")
    async with opened(former) as db:
        ana = await live(db, "ana")
        async with db.transaction(ana) as tx:
            assert await tx.fetchval("select current_user::text") == "newton_app"
    async with connection(former) as conn:
        assert await faults(conn) == []
        await begin(conn, ana)
        await conn.execute("rollback")
    settings = load({"database_url": former}, env={})
    made = await create_backup(settings, tmp_path / "copy", now=NOON)
    assert (await restore(settings, tmp_path / "copy", schema=SCHEMA, replace=True)).rows == made.rows
    async with connection(former) as conn:
        assert await read_roles(conn) == ("newton_app", "newton_worker")
