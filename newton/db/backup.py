"""Online backups of the whole database: create, verify and restore them."""

import asyncio
import os
import shutil
import uuid
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from newton import __version__
from newton.db import backup_files as manifest
from newton.db.backup_files import BackupManifest, drop_schemas, load_tables, write_tables
from newton.db.connection import open_owner_connection
from newton.db.distribution import distribute, is_distributed, plan_distribution
from newton.db.embedded_server import exclusive_access
from newton.db.migrations import SchemaMigration, find_pending, load_applied, migrate, read_migrations
from newton.db.pool import Tx
from newton.db.roles import read_roles, writable_tables
from newton.errors import ConflictError, InputError
from newton.settings import Settings

LEDGER_FOLDER = "ledger"
HAS_CITUS_SQL = "select exists (select from pg_extension where extname = 'citus')"
HAS_SCHEMA_SQL = "select to_regclass('runtime.schema_migrations') is not null"
IS_INSTALLED_SQL = """
select to_regclass('runtime.schema_migrations') is not null
    and to_regclass('runtime.agents') is not null and to_regclass('memory.memories') is not null
"""
REVOKE_TOKENS_SQL = "update runtime.tokens set revoked_at = now() where revoked_at is null returning 1"


class RestoreResult(NamedTuple):
    """A restored backup: its manifest, with the number of rows of each table, and the number of revoked tokens.

    `previous_data` is the folder to which the previous data were moved, if there were any.
    """

    manifest: BackupManifest
    revoked: int
    previous_data: Path | None

    @property
    def rows(self) -> Mapping[str, int]:
        return self.manifest.rows


async def create_backup(settings: Settings, folder: Path, *, now: datetime) -> BackupManifest:
    """Write a backup to the new folder `folder`, which appears only when the backup is complete; return its manifest.

    The database can be written meanwhile; the backup has all that was committed before its start. What was written is
    read back and compared. Raises ConflictError if the folder exists, InputError if the folder cannot be written or the
    database is not Newton's, and DatabaseError if the database cannot be read.
    """
    with _atomic_folder(folder) as partial:
        # Copy the recorded chain heads first, so that no copied ledger is behind its head.
        if settings.database_url is None and (settings.home / LEDGER_FOLDER).is_dir():
            shutil.copytree(settings.home / LEDGER_FOLDER, partial / LEDGER_FOLDER)
        ledger = await asyncio.to_thread(manifest.hash_files, partial)
        async with open_owner_connection(settings) as conn:
            await _require_installed(conn)
            migrations = await load_applied(conn)
            version = await conn.fetchval("show server_version")
            rows, columns, files = await write_tables(conn, partial)
        written = BackupManifest(
            made_at=now,
            newton=__version__,
            postgres=version,
            rows=rows,
            columns=columns,
            migrations=migrations,
            files=ledger | files,
        )
        manifest.write_manifest(partial, written)
        await asyncio.to_thread(manifest.verify_backup, partial)
    return written


async def _require_installed(conn: Tx) -> None:
    if not await conn.fetchval(IS_INSTALLED_SQL):
        name = await conn.fetchval("select current_database()")
        raise InputError(
            f"The database {name!r} has no tables of Newton, so there is nothing to back up.",
            hint="Set DATABASE_URL to the database that Newton uses, or unset it if Newton uses its embedded server.",
        )


@contextmanager
def _atomic_folder(folder: Path) -> Generator[Path]:
    """Yield a temporary folder that is renamed to `folder` at the end of the block, and deleted after an error."""
    if folder.exists():
        example = f", such as {folder / 'newton-backup'}" if folder.is_dir() else ""
        hint = f"Choose a folder that does not exist{example}: the backup creates it."
        raise ConflictError(f"{folder} already exists.", hint=hint)
    partial = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        partial.mkdir(mode=0o700, parents=True)
        yield partial
        os.sync()
        partial.rename(folder)
    except OSError as error:
        hint = "Choose a new folder inside of one that exists and that you may write."
        raise InputError(f"{folder} cannot be created: {error.strerror}.", hint=hint) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


async def restore(
    settings: Settings, folder: Path, *, schema: Path, replace: bool, keep_tokens: bool = False
) -> RestoreResult:
    """Verify a backup, then replace the data with it. An embedded server's previous data are moved to another folder.

    The migrations in `schema` create the schema, and the rows of the backup are stored in it: nothing in a backup is
    run. Access tokens are revoked unless `keep_tokens`, because tokens revoked after the backup would be valid again.
    Raises SchemaVersionError for a backup of a newer version, ConflictError if there are data and `replace` is False,
    InputError for rows that the schema does not allow, and DatabaseError if the server fails; then nothing changes.
    """
    found = await asyncio.to_thread(manifest.verify_backup, folder)
    wanted = read_migrations(schema)
    find_pending(found.migrations, wanted, where="backup")
    if settings.database_url:
        async with open_owner_connection(settings) as conn:
            await _require_replaceable(conn, replace=replace)
            revoked = await _replace_rows(conn, folder, found, wanted, keep_tokens=keep_tokens)
            await _distribute_restored(conn)
        return RestoreResult(found, revoked, None)
    async with (
        _set_aside(settings.home, folder, found, replace=replace) as aside,
        open_owner_connection(settings) as conn,
    ):
        revoked = await _replace_rows(conn, folder, found, wanted, keep_tokens=keep_tokens)
    return RestoreResult(found, revoked, aside)


async def _require_replaceable(conn: Tx, *, replace: bool) -> None:
    if not await conn.fetchval(HAS_SCHEMA_SQL):
        return
    if not replace:
        raise ConflictError(
            "The database already contains data.", hint="Pass --replace to delete the data of the database."
        )
    if await is_distributed(conn):
        raise ConflictError(
            "The data of a distributed database cannot be replaced in one transaction.",
            hint="Create a database on the nodes of the cluster, restore into it, and set DATABASE_URL to it.",
        )


async def _replace_rows(
    conn: Tx, folder: Path, found: BackupManifest, wanted: list[SchemaMigration], *, keep_tokens: bool
) -> int:
    """Replace the schema and the rows in one transaction; return the number of revoked tokens.

    The rows are stored in the schema of the version that wrote them. The migrations since then change both.
    """
    async with conn.transaction():
        roles = await read_roles(conn)
        if await conn.fetchval(HAS_SCHEMA_SQL):
            await drop_schemas(conn)
        await migrate(conn, [migration for migration in wanted if migration.name in found.migrations], roles=roles)
        async with writable_tables(conn):
            await load_tables(conn, folder, found)
            revoked = 0 if keep_tokens else len(await conn.fetch(REVOKE_TOKENS_SQL))
        await migrate(conn, wanted, roles=roles)
    return revoked


async def _distribute_restored(conn: Tx) -> None:
    """Distribute the restored tables if the database is one of a cluster."""
    if await conn.fetchval(HAS_CITUS_SQL):
        await distribute(conn, await plan_distribution(conn))


@asynccontextmanager
async def _set_aside(home: Path, folder: Path, found: BackupManifest, *, replace: bool) -> AsyncGenerator[Path | None]:
    """Move the data of an embedded server to another folder, yield this folder, and move them back if the block fails.

    It is None if there are no data. The chain heads (of the ledgers of decisions) in the backup replace those in
    `home`. Raises ConflictError if there are data and `replace` is False.
    """
    with exclusive_access(home) as paths:
        exists = paths.data.exists()
        if exists and not replace:
            hint = "Pass --replace to move the old data to another folder and restore the backup."
            raise ConflictError(f"There are already data in {paths.base}.", hint=hint)
        aside = paths.base / f"postgres.replaced-{found.made_at:%Y%m%d}-{uuid.uuid4().hex[:8]}"
        fresh = _copy_ledger(folder, home)
        moves = [(paths.data, aside), (home / LEDGER_FOLDER, home / aside.name)]
        for path, old in moves:
            if path.exists():
                path.rename(old)
        fresh.rename(home / LEDGER_FOLDER)
    is_restored = False
    try:
        yield aside if exists else None
        is_restored = True
    finally:
        if not is_restored:
            with exclusive_access(home):
                for path, old in moves:
                    shutil.rmtree(path, ignore_errors=True)
                    if old.exists():
                        old.rename(path)


def _copy_ledger(folder: Path, home: Path) -> Path:
    """Copy the chain heads of a backup to a folder beside their destination; return this folder."""
    fresh = home / f"{LEDGER_FOLDER}.{uuid.uuid4().hex[:8]}.part"
    if (folder / LEDGER_FOLDER).is_dir():
        shutil.copytree(folder / LEDGER_FOLDER, fresh)
    else:
        fresh.mkdir(mode=0o700)
    return fresh
