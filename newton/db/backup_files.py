"""The files of a backup: rows of each table in the text format of COPY, and a manifest with columns and hashes.

A backup holds rows and no definitions. A restore creates the schema with Newton's own migrations and fills it with its
own statements, so that no function, trigger or policy of a backup ever runs, whoever made it.
"""

import hashlib
import os
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

import asyncpg
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from newton.db.pool import Tx
from newton.db.roles import require_all_rows
from newton.errors import InputError

FILE_NAME = "backup.json"
FORMAT = 3
MAX_BYTES = 20_000_000  # of the manifest, which is read into memory


class BackupManifest(BaseModel):
    """The manifest of a backup.

    `rows` and `columns` have the number of rows and the columns of each table, `migrations` the hash of each applied
    migration; `sha256` is a hash of the manifest itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    made_at: AwareDatetime
    newton: str
    postgres: str
    rows: dict[str, int]
    columns: dict[str, tuple[str, ...]]
    migrations: dict[str, str]
    files: dict[str, str]
    sha256: str = ""

    def compute_checksum(self) -> str:
        """Return a hash of the manifest without its own field `sha256`."""
        return hashlib.sha256(self.model_dump_json(exclude={"sha256"}).encode()).hexdigest()


def write_manifest(folder: Path, manifest: BackupManifest) -> None:
    signed = manifest.model_copy(update={"sha256": manifest.compute_checksum()})
    (folder / FILE_NAME).write_text(signed.model_dump_json(indent=1) + "\n", encoding="utf-8")


def verify_backup(folder: Path) -> BackupManifest:
    """Check all files of a backup; return its manifest. Raises InputError if a file differs or is missing."""
    manifest = _read(folder)
    if odd := [path for path in folder.rglob("*") if path.is_symlink() or not (path.is_file() or path.is_dir())]:
        raise damaged_error(folder, f"{odd[0]} is a link or a device")  # a link could name a file elsewhere
    hashes = hash_files(folder)
    if missing := manifest.files.keys() - hashes.keys():
        raise damaged_error(folder, f"{min(missing)} is missing")
    if unknown := hashes.keys() - manifest.files.keys():
        raise damaged_error(folder, f"{min(unknown)} is not a file of the backup")
    if changed := [name for name, digest in manifest.files.items() if hashes[name] != digest]:
        raise damaged_error(folder, f"{min(changed)} was changed")
    return manifest


def _read(folder: Path) -> BackupManifest:
    """Return the manifest of a backup. Raises InputError if it is missing, was changed, or has another format."""
    try:
        with (folder / FILE_NAME).open("rb") as file:
            written = file.read(MAX_BYTES)
        manifest = BackupManifest.model_validate_json(written)
    except FileNotFoundError:
        hint = "Give a folder that `newton backup` created."
        raise InputError(f"{folder} is not a backup: it has no file {FILE_NAME}.", hint=hint) from None
    except NotADirectoryError:
        hint = "Give the folder that `newton backup` created, not a file."
        raise InputError(f"{folder} is not a folder.", hint=hint) from None
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror}.", hint="Give a folder you may read.") from None
    except ValidationError:
        raise damaged_error(folder, f"{FILE_NAME} was changed") from None
    if manifest.sha256 != manifest.compute_checksum() or written != manifest.model_dump_json(indent=1).encode() + b"\n":
        raise damaged_error(folder, f"{FILE_NAME} was changed")
    if manifest.format != FORMAT:
        what = f"The backup has format {manifest.format}, and this version of Newton reads format {FORMAT}."
        raise InputError(what, hint=f"Use Newton {manifest.newton}, which made the backup.")
    return manifest


def hash_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 hash of each file in the folder and its subfolders by relative path; not of the manifest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / FILE_NAME)
    return {path.relative_to(folder).as_posix(): _hash_file(path) for path in files}


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damaged_error(folder: Path, reason: str) -> InputError:
    """Return the error for a backup that was changed after it was made."""
    return InputError(f"The backup {folder} is damaged: {reason}. Nothing was changed.", hint="Use another backup.")


TABLES_FOLDER, MEMORIES = "tables", "memory.memories"
# Tables only: no shards of a distributed table, no generated columns, and not the table of migrations.
LIST_TABLES_SQL = """
select
    c.relnamespace::regnamespace::text as schema_name,
    c.relname::text as table_name,
    array_agg(a.attname::text order by a.attnum) as column_names
from pg_class as c
join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
where
    c.relkind = 'r'
    and c.relnamespace::regnamespace::text = any('{memory,heart,brain,dialogue,cognition,runtime}')
    and c.relname !~ '_[0-9]{6,}$'
    and c.oid is distinct from to_regclass('runtime.schema_migrations')
group by c.oid
order by 1, 2
"""
DROP_SCHEMAS_SQL = "drop schema if exists memory, heart, brain, dialogue, cognition, runtime cascade"
LIST_FOREIGN_KEYS_SQL = """
select
    conrelid::regclass::text as table_name, quote_ident(conname) as name, pg_get_constraintdef(oid) as definition
from pg_constraint
where contype = 'f' and connamespace::regnamespace::text = any('{memory,heart,brain,dialogue,cognition,runtime}')
order by conrelid, conname
"""
# The text of a value depends on these settings.
ROW_SETTINGS_SQL = """
set local datestyle = 'ISO, YMD'; set local intervalstyle = 'postgres';
set local timezone = 'UTC'; set local extra_float_digits = 1; set local bytea_output = 'hex'
"""
# What PostgreSQL raises for rows that its types, the constraints or the functions of the schema do not allow.
REJECTED = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.RaiseError,
)


class BackupTable(NamedTuple):
    """A table whose rows are in backups. `columns` are all but generated ones."""

    schema: str
    table: str
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    def find_file(self, folder: Path) -> Path:
        """Return the path of the file of rows in a backup folder."""
        return folder / TABLES_FOLDER / f"{self.name}.tsv"


class WrittenTables(NamedTuple):
    """The number of rows and the columns of each table, and the SHA-256 hash of what was written to each file."""

    rows: dict[str, int]
    columns: dict[str, tuple[str, ...]]
    files: dict[str, str]


async def write_tables(conn: Tx, folder: Path) -> WrittenTables:
    """Write the rows of all tables to files, as of one moment. An empty table has no file.

    Raises DatabaseError if the database user does not see all rows.
    """
    await require_all_rows(conn)
    tables = await _list_tables(conn)
    (folder / TABLES_FOLDER).mkdir()
    written = WrittenTables({}, {table.name: table.columns for table in tables}, {})
    async with conn.transaction(isolation="repeatable_read", readonly=True):
        await conn.execute(ROW_SETTINGS_SQL)
        # Before the first query, which fixes the moment: a migration cannot change a table that is not read yet.
        await conn.execute(f"lock table {', '.join(table.name for table in tables)} in access share mode")
        for table in tables:
            file = table.find_file(folder)
            written.rows[table.name], digest = await _write_table(conn, table, file)
            if written.rows[table.name]:
                written.files[file.relative_to(folder).as_posix()] = digest
            else:
                file.unlink()
    return written


async def _list_tables(conn: Tx) -> list[BackupTable]:
    rows = await conn.fetch(LIST_TABLES_SQL)
    return [BackupTable(row["schema_name"], row["table_name"], tuple(row["column_names"])) for row in rows]


async def _write_table(conn: Tx, table: BackupTable, file: Path) -> tuple[int, str]:
    """Write the rows of a table to a file and the disk; return their number and the hash of what was written.

    Raises InputError if the file cannot be written, for example on a full disk.
    """
    digest, failures = hashlib.sha256(), list[OSError]()
    with file.open("wb", buffering=0) as output:

        async def write(data: bytes) -> None:
            digest.update(data)
            if not failures:  # an error here would leave the connection within COPY
                view = memoryview(data)
                try:
                    while view:
                        view = view[output.write(view) :]
                except OSError as error:
                    failures.append(error)

        status = await conn.copy_from_table(table.table, schema_name=table.schema, columns=table.columns, output=write)
        if not failures:
            os.fsync(output.fileno())
    if failures:
        what = f"The backup cannot be written: {failures[0].strerror}."
        raise InputError(what, hint="Free disk space, or choose a folder on another disk. Nothing was left.")
    return int(status.split()[-1]), digest.hexdigest()


def count_kinds(folder: Path, manifest: BackupManifest) -> Counter[str]:
    """Return the number of memories of each kind in a backup."""
    file = folder / TABLES_FOLDER / f"{MEMORIES}.tsv"
    if not manifest.rows.get(MEMORIES):
        return Counter()
    position = manifest.columns[MEMORIES].index("kind")
    with file.open(encoding="utf-8", newline="\n") as lines:
        return Counter(line.split("\t", position + 1)[position] for line in lines)


async def drop_schemas(conn: Tx) -> None:
    """Delete Newton's tables and functions from the database."""
    await conn.execute(DROP_SCHEMAS_SQL)


async def load_tables(conn: Tx, folder: Path, manifest: BackupManifest) -> None:
    """Fill the tables of a schema that was just created, in the open transaction, within `writable_tables`.

    Every constraint of the schema is checked. Raises InputError for a table or column that the schema does not have,
    and for rows that it does not allow.
    """
    await conn.execute(ROW_SETTINGS_SQL)
    tables = {table.name: table for table in await _list_tables(conn)}
    _check_names(folder, manifest, tables)
    async with _without_foreign_keys(conn, folder):
        for name, rows in manifest.rows.items():
            if rows:
                await _load_table(conn, folder, tables[name], manifest)
        with _reject_rows(folder, "a table"):
            await conn.execute("set constraints all immediate")


def _check_names(folder: Path, manifest: BackupManifest, tables: Mapping[str, BackupTable]) -> None:
    """Raise InputError for a file, table or column of the backup that is not in `tables`, those of the schema."""
    expected = {table.find_file(folder).relative_to(folder).as_posix() for table in tables.values()}
    unknown = sorted(
        [name for name in manifest.rows if name not in tables]
        + [
            f"{name}.{column}"
            for name, columns in manifest.columns.items()
            for column in columns
            if name not in tables or column not in tables[name].columns
        ]
        + [name for name in manifest.files if name.startswith(f"{TABLES_FOLDER}/") and name not in expected]
    )
    if missing := tables.keys() - manifest.rows.keys():
        raise damaged_error(folder, f"{min(missing)} is missing in {FILE_NAME}")
    if unknown:
        raise InputError(
            f"The backup {folder} has {unknown[0]!r}, which no migration of Newton creates. Nothing was changed.",
            hint="Move what you added out of Newton's schemas, make the backup again, or use another backup.",
        )


async def _load_table(conn: Tx, folder: Path, table: BackupTable, manifest: BackupManifest) -> None:
    file, columns = table.find_file(folder), manifest.columns.get(table.name, ())
    if not file.is_file() or not columns:
        raise damaged_error(folder, f"the rows of {table.name} are missing")
    with _reject_rows(folder, table.name):
        status = await conn.copy_to_table(table.table, schema_name=table.schema, columns=columns, source=file)
    if int(status.split()[-1]) != manifest.rows[table.name]:
        raise damaged_error(folder, f"{table.name} has another number of rows than {FILE_NAME} says")
    await conn.execute(f"analyze {table.name}")  # else the first searches would have plans for empty tables


@asynccontextmanager
async def _without_foreign_keys(conn: Tx, folder: Path) -> AsyncGenerator[None]:
    """Drop the foreign keys, and add them after the block, when all rows are there: each is then checked at once."""
    keys = await conn.fetch(LIST_FOREIGN_KEYS_SQL)
    for key in keys:
        await conn.execute(f"alter table {key['table_name']} drop constraint {key['name']}")
    yield
    for key in keys:
        with _reject_rows(folder, key["table_name"]):
            await conn.execute(f"alter table {key['table_name']} add constraint {key['name']} {key['definition']}")


@contextmanager
def _reject_rows(folder: Path, table: str) -> Generator[None]:
    try:
        yield
    except REJECTED as error:
        raise damaged_error(folder, f"{table} has rows that are not allowed: {error}") from error
