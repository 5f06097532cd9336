"""Backups made by somebody else: whatever their database did or holds, a restore brings rows and nothing that runs."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from newton.content.package_data import data_folder
from newton.db.backup import create_backup, restore
from newton.db.backup_manifest import hash_files, write_manifest
from newton.db.pool import Database, connect
from newton.db.roles import read_roles
from newton.errors import InputError
from newton.settings import load
from tests.conftest import database
from tests.db.world import live
from tests.support import NOON

SCHEMA = data_folder("schema")
# Each statement leaves something in a database that runs, or that lets somebody in, when it is restored or used. `run`
# is a program on the server; it can only be called by a superuser, which restoring is done as.
ATTACKS = {
    "a function that runs a program": """
        create function public.run() returns void language plpgsql security definer as $$
        begin execute 'copy (select 1) to program ''touch {marker}''';
        exception when others then null; end $$""",
    "a trigger": """
        create function public.fire() returns trigger language plpgsql security definer as $$
        begin perform public.run(); return new; end $$;
        create trigger evil after insert or update or delete on runtime.tokens
        for each statement execute function public.fire();
        alter table runtime.tokens enable always trigger evil""",
    "a trigger on the table of migrations": """
        create trigger evil after insert on runtime.schema_migrations
        for each row execute function public.fire()""",
    "a rule": "create rule evil as on update to runtime.tokens do also select public.run()",
    "a check": """
        create function public.passes() returns boolean language plpgsql immutable as $$
        begin perform public.run(); return true; end $$;
        alter table runtime.agents add constraint evil check (public.passes()) not valid""",
    "a default": """
        create function public.given() returns timestamptz language plpgsql as $$
        begin perform public.run(); return now(); end $$;
        alter table runtime.schema_migrations alter column applied_at set default public.given()""",
    "a generated column": """
        create function public.derived(text) returns text language plpgsql immutable as $$
        begin perform public.run(); return $1; end $$;
        alter table runtime.agents add column evil text generated always as (public.derived(name)) stored""",
    "an index": "create index evil on runtime.agents (public.derived(name))",
    "a replaced function": """
        create or replace function runtime.row_counts() returns table (table_name text, row_count bigint)
        language plpgsql security definer as $$
        begin perform public.run(); return query select 'memory.memories', 0::bigint; end $$""",
    "an opened policy": "create policy evil on memory.memories using (true) with check (true)",
    "no row level security": "alter table memory.memories no force row level security, disable row level security",
    "a right of everyone": "grant all on all tables in schema memory to public",
    "an operator": """
        create function public.same(uuid, text) returns boolean language plpgsql as $$
        begin perform public.run(); return true; end $$;
        create operator public.= (leftarg = uuid, rightarg = text, function = public.same)""",
    "a cast": """
        create type public.kind as enum ('x');
        create function public.made(public.kind) returns text language plpgsql as $$
        begin perform public.run(); return 'x'; end $$;
        create cast (public.kind as text) with function public.made(public.kind) as implicit""",
    "a view": "create view public.evil as select public.given()",
    "a materialized view": "create materialized view public.filled as select public.given()",
    "a comment that moves the cursor": "comment on table memory.memories is E'\\x1b]0;owned\\x07\\x1b[2J'",
    "an event trigger": """
        create function public.noticed() returns event_trigger language plpgsql security definer as $$
        begin perform public.run(); end $$;
        create event trigger evil on ddl_command_end execute function public.noticed();
        alter event trigger evil enable always""",
    "an event trigger of a login": """
        create event trigger evil_login on login execute function public.noticed()""",
    "a setting of the database": """
        do $$ begin execute format(
            'alter database %I set session_preload_libraries = ''plpgsql''', current_database()); end $$""",
}
# Everything in a database that can run or lets somebody do something, but for the rows.
DEFINITIONS = """
select 'function', p.oid::regprocedure::text, pg_get_functiondef(p.oid) || coalesce(p.proacl::text, '')
from pg_proc as p
where
    p.prokind in ('f', 'p') and p.pronamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
    and not exists (select from pg_depend where objid = p.oid and deptype = 'e')
union all
select
    'relation', c.oid::regclass::text,
    concat_ws(' ', c.relkind, c.relrowsecurity, c.relforcerowsecurity, c.relacl, obj_description(c.oid, 'pg_class'))
from pg_class as c
where c.relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) and c.relkind not in ('t')
    and c.relnamespace::regnamespace::text !~ '^pg_toast'
union all
select 'column', a.attrelid::regclass || '.' || a.attname, concat_ws(
    ' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated, pg_get_expr(d.adbin, d.adrelid), a.attacl)
from pg_attribute as a
join pg_class as c on c.oid = a.attrelid and c.relkind = 'r'
left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
where
    a.attnum > 0 and not a.attisdropped
    and c.relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
union all
select 'trigger', tgrelid::regclass || '.' || tgname, tgenabled::text from pg_trigger where not tgisinternal
union all
select 'rule', ev_class::regclass || '.' || rulename, '' from pg_rewrite
where ev_class::regclass::text !~ '^(pg_|information_schema)'
union all
select 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid) || convalidated
from pg_constraint where connamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
union all
select 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid) || indisvalid
from pg_index where indrelid::regclass::text !~ '^(pg_|information_schema)'
union all
select 'policy', tablename || '.' || policyname, concat_ws(' ', roles, cmd, qual, with_check) from pg_policies
union all
select 'event trigger', evtname, evtenabled::text from pg_event_trigger
union all
select 'extension', extname, '' from pg_extension
union all
select 'operator', oid::regoperator::text, '' from pg_operator as o
where o.oprnamespace <> 'pg_catalog'::regnamespace
    and not exists (select from pg_depend where objid = o.oid and deptype = 'e')
union all
select 'cast', oid::text, '' from pg_cast where oid > 16384
    and not exists (select from pg_depend where objid = pg_cast.oid and deptype = 'e')
union all
select 'schema', nspname, nspacl::text from pg_namespace where nspname !~ '^pg_'
union all
select 'setting', s.setconfig::text, '' from pg_db_role_setting as s
join pg_database as d on d.oid = s.setdatabase and d.datname = current_database()
union all
select 'role', rolname, concat_ws(' ', rolsuper, rolbypassrls, rolcreaterole) from pg_roles
where rolname in (runtime.app_role(), runtime.worker_role())
"""


def was_run(marker: Path) -> bool:
    return marker.exists()


def forget(marker: Path) -> None:
    marker.unlink(missing_ok=True)


async def attack(dsn: str, marker: Path, *, but: frozenset[str] = frozenset()) -> None:
    async with connect(dsn) as conn:
        await conn.execute("set check_function_bodies = off")
        for name, sql in ATTACKS.items():
            if name not in but:
                await conn.execute(sql.replace("{marker}", str(marker)))


async def definitions(dsn: str) -> set[tuple[str, ...]]:
    """What is defined, with the same names of roles for every database."""
    async with connect(dsn) as conn:
        app, worker = await read_roles(conn)
        named = await conn.fetch(DEFINITIONS)
    return {tuple((part or "").replace(app, "app").replace(worker, "worker") for part in row) for row in named}


@pytest.fixture
def marker() -> Iterator[Path]:
    """A file in a folder where the server may write."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder) / "was-run"


@pytest.fixture
async def hostile(clone: str, marker: Path) -> AsyncIterator[str]:
    db = await Database.open(clone, size=4)
    await live(db, "ana")
    await db.close()
    await attack(clone, marker)
    yield clone


@pytest.mark.one_server("Citus refuses triggers on a distributed table")
async def test_nothing_that_a_hostile_database_defines_is_restored_or_run(
    hostile: str, marker: Path, server: str, template: str, tmp_path: Path
) -> None:
    # S9, R14: a restore brings back the rows; whatever else the database held stays behind, and none of it is run
    made = await create_backup(load({"database_url": hostile}, env={}), tmp_path / "copy", now=NOON)
    forget(marker)  # the hostile database itself may run it
    async with database(server, template) as used:
        before = await definitions(used)
        chosen = load({"database_url": used}, env={})
        done = await restore(chosen, tmp_path / "copy", schema=SCHEMA, replace=True)
        assert await definitions(used) == before
        async with connect(used) as conn:
            await conn.execute("update runtime.tokens set revoked_at = now()")
            assert await conn.fetchval("select count(*) from memory.memories") == made.rows["memory.memories"] > 20
    assert done.revoked == 1
    assert not was_run(marker)


ID = "00000000-0000-7000-8000-000000000001"
MODEL = ("model_id", "identity", "dimensions")
# What a forged backup says of one table: the table, its rows, their columns and their number; and what is answered.
FORGED = {
    "a value out of range": (
        "memory.models",
        f"{ID}\tx\t-1\n",
        MODEL,
        1,
        "memory.models has rows that are not allowed",
    ),
    "a row of nobody": (
        "memory.active_models",
        f"{ID}\t{ID}\t2026-11-21 12:00:00+00\n",
        ("agent_id", "model_id", "activated_at"),
        1,
        "memory.active_models has rows that are not allowed",
    ),
    "a statement as a column": (
        "memory.models",
        f"{ID}\tx\t4\n",
        (*MODEL, "x) from program 'touch {marker}' --"),
        1,
        "which no migration of Newton creates",
    ),
    "a program as a row": ("memory.models", "\\! touch {marker}\n\\.\n", MODEL, 1, "not allowed"),
    "rows that are not there": ("memory.models", f"{ID}\tx\t4\n", MODEL, 2, "another number of rows"),
}


@pytest.mark.slow
@pytest.mark.one_server("the rows of a cluster are never replaced: the backup is refused before it is read")
async def test_forged_rows_are_refused_and_nothing_changes(clone: str, marker: Path, tmp_path: Path) -> None:
    # S9, R14
    chosen = load({"database_url": clone}, env={})
    made = await create_backup(chosen, tmp_path / "copy", now=NOON)
    async with connect(clone) as conn:
        await conn.execute("create table runtime.kept ()")
        for forgery, (table, text, columns, rows, answer) in FORGED.items():
            copy = tmp_path / forgery
            shutil.copytree(tmp_path / "copy", copy)
            (copy / "tables" / f"{table}.tsv").write_text(text.replace("{marker}", str(marker)))
            named = tuple(column.replace("{marker}", str(marker)) for column in columns)
            changed = {"rows": {**made.rows, table: rows}, "columns": {**made.columns, table: named}}
            write_manifest(copy, made.model_copy(update={**changed, "files": hash_files(copy)}))
            with pytest.raises(InputError, match=answer):
                await restore(chosen, copy, schema=SCHEMA, replace=True)
            assert await conn.fetchval("select to_regclass('runtime.kept')") == "runtime.kept", forgery
            assert not was_run(marker), forgery
