"""Online backups of the whole database: create, verify and restore them."""

import asyncio
import json
import os
import pwd
import shutil
import subprocess
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

import asyncpg

from newton import __version__
from newton.db import backup_manifest as manifest
from newton.db.backup_manifest import BackupManifest
from newton.db.connection import prepare_database
from newton.db.distribution import distribute, is_distributed, plan_distribution
from newton.db.embedded_server import CONFIG, ENVIRONMENT, EmbeddedServer, exclusive_access
from newton.db.migrations import find_pending, load_applied, read_migrations
from newton.db.pool import APP_ROLE, WORKER_ROLE, connect
from newton.db.restored_files import replace_configuration
from newton.db.server_paths import ServerPaths, binaries
from newton.errors import ConflictError, DatabaseError, InputError, NewtonError
from newton.settings import Settings

BASE_FOLDER, LEDGER_FOLDER, DUMP_FILE = "base", "ledger", "dump"
ROW_COUNTS_SQL = "select table_name, row_count from runtime.row_counts()"
HAS_ROW_COUNTS_SQL = "select to_regprocedure('runtime.row_counts()') is not null"
# A dump refers to roles that it does not contain. The migrations create them with the same statement.
CREATE_ROLE_SQL = """
do $$
begin
    create role %s login nosuperuser nocreatedb nocreaterole nobypassrls noinherit;
exception
    when duplicate_object or unique_violation then null;
end
$$
"""
SHARD_PATTERN = "*.*_" + "[0-9]" * 6 + "*"
HAS_CITUS_SQL = "select exists (select from pg_extension where extname = 'citus')"
HAS_SCHEMA_SQL = "select to_regclass('runtime.schema_migrations') is not null"
REVOKE_TOKENS_SQL = "update runtime.tokens set revoked_at = now() where revoked_at is null returning 1"


class RowCounts(NamedTuple):
    """The version of the server, the number of rows of each table, and the hash of each applied migration."""

    version: str
    rows: dict[str, int]
    migrations: dict[str, str]


class RestoreResult(NamedTuple):
    """A restored backup: its manifest, the number of rows of each table, and the number of revoked tokens.

    `previous_data` is the folder to which the previous data were moved, if there were any.
    """

    manifest: BackupManifest
    rows: Mapping[str, int]
    revoked: int
    previous_data: Path | None


async def create_backup(settings: Settings, folder: Path, *, now: datetime) -> BackupManifest:
    """Write a verified backup to a new folder, which appears only when the backup is complete; return its manifest.

    The database can be written meanwhile; the backup has all that was committed before its end. Raises ConflictError if
    the folder exists, and DatabaseError if the copy fails.
    """
    with _atomic_folder(folder) as partial:
        copy = _dump_database if settings.database_url else _copy_server
        found = await copy(settings, partial)
        written = BackupManifest(
            kind="dump" if settings.database_url else "base",
            made_at=now,
            newton=__version__,
            postgres=found.version,
            rows=found.rows,
            migrations=found.migrations,
            files=await asyncio.to_thread(manifest.hash_files, partial),
        )
        manifest.write_manifest(partial, written)
    return written


@contextmanager
def _atomic_folder(folder: Path) -> Generator[Path]:
    """Yield a temporary folder that is renamed to `folder` at the end of the block, and deleted after an error."""
    if folder.exists():
        raise ConflictError(f"{folder} already exists.", hint="Choose a folder that does not exist.")
    partial = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        partial.mkdir(mode=0o700, parents=True)
        yield partial
        os.sync()
        partial.rename(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}.", hint="Choose another folder.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


async def restore(
    settings: Settings, folder: Path, *, schema: Path, replace: bool, keep_tokens: bool = False
) -> RestoreResult:
    """Verify a backup, then replace the data with it. An embedded server's previous data are moved to another folder.

    Access tokens are revoked unless `keep_tokens`, because tokens revoked after the backup would be valid again. Raises
    SchemaVersionError for a backup of a newer version, ConflictError if there are data and `replace` is False, and
    DatabaseError if the server fails; then nothing changes.
    """
    found = await asyncio.to_thread(manifest.verify_backup, folder)
    find_pending(found.migrations, read_migrations(schema), where="backup")
    if (found.kind == "dump") != (settings.database_url is not None):
        raise InputError(
            f"This backup was made of {'an external' if found.kind == 'dump' else 'the embedded'} database.",
            hint="Set DATABASE_URL to restore the backup of an external database; unset it for the embedded one.",
        )
    if settings.database_url:
        url = settings.database_url.get_secret_value()
        await _restore_dump(url, folder, replace=replace)
        await _distribute_restored(url)
        return RestoreResult(found, *await _prepare_and_count(url, schema, keep_tokens=keep_tokens), None)
    return await _restore_base(settings.home, folder, found, schema=schema, replace=replace, keep_tokens=keep_tokens)


async def count_rows(dsn: str) -> RowCounts:
    """Return the server's version, and the number of rows of each table that the role of `dsn` may read."""
    async with connect(dsn) as connection:
        rows = await connection.fetch(ROW_COUNTS_SQL) if await connection.fetchval(HAS_ROW_COUNTS_SQL) else []
        version = await connection.fetchval("show server_version")
        migrations = await load_applied(connection)
        return RowCounts(version, {row["table_name"]: row["row_count"] for row in rows}, migrations)


async def _copy_server(settings: Settings, target: Path) -> RowCounts:
    server = await asyncio.to_thread(EmbeddedServer.start, settings.home)
    try:
        # Copy the recorded chain heads first, so that no copied ledger is behind its head.
        if (settings.home / LEDGER_FOLDER).is_dir():
            shutil.copytree(settings.home / LEDGER_FOLDER, target / LEDGER_FOLDER)
        found = await count_rows(server.dsn("postgres"))
        flags = ("-U", "postgres", "-X", "stream", "--checkpoint=fast", "--manifest-checksums=SHA256")
        folders = ("-h", str(server.paths.sockets), "-D", str(target / BASE_FOLDER))
        await _run_program(server.paths.binaries / "pg_basebackup", *folders, *flags)
        await _verify_base(server.paths.binaries, target / BASE_FOLDER)
    finally:
        await asyncio.to_thread(server.stop)
    return found


async def _verify_base(programs: Path, base: Path) -> None:
    """Verify a copy of the server's files against the manifest that the server wrote, and read its write-ahead log.

    Raises DatabaseError for a file that differs.
    """
    expected = json.loads((base / "backup_manifest").read_text(encoding="utf-8"))
    hashes = await asyncio.to_thread(manifest.hash_files, base)
    if wrong := [file["Path"] for file in expected["Files"] if hashes.get(file["Path"]) != file["Checksum"]]:
        what = f"The backup's copy of {wrong[0]} differs from the server's file."
        raise DatabaseError(what, hint="Check the disk for errors, then create the backup again.")
    for part in expected["WAL-Ranges"]:
        ends = ("-s", part["Start-LSN"], "-e", part["End-LSN"], "-t", str(part["Timeline"]))
        await _run_program(programs / "pg_waldump", "--quiet", "-p", str(base / "pg_wal"), *ends)


async def _restore_base(
    home: Path, folder: Path, backup_manifest: BackupManifest, *, schema: Path, replace: bool, keep_tokens: bool
) -> RestoreResult:
    with exclusive_access(home) as paths:
        exists = paths.data.exists()
        if exists and not replace:
            hint = "Pass --replace to move the old data to another folder and restore the backup."
            raise ConflictError(f"There are already data in {paths.base}.", hint=hint)
        aside = paths.base / f"postgres.replaced-{backup_manifest.made_at:%Y%m%d}-{uuid.uuid4().hex[:8]}"
        fresh = await asyncio.to_thread(_copy_base, folder / BASE_FOLDER, paths)
        swaps = [(paths.data, fresh, aside), (home / LEDGER_FOLDER, _copy_ledger(folder, home), home / aside.name)]
        _swap(swaps)
    try:
        rows, revoked = await _start_and_prepare(home, schema, keep_tokens=keep_tokens)
    except (NewtonError, asyncio.CancelledError):
        with exclusive_access(home):
            undo = [(path, old, path.with_name(f"{aside.name}.failed")) for path, _, old in swaps]
            _swap(undo)
            for _, _, failed in undo:
                shutil.rmtree(failed, ignore_errors=True)
        raise
    return RestoreResult(backup_manifest, rows, revoked, aside if exists else None)


def _swap(swaps: list[tuple[Path, Path, Path]]) -> None:
    """For each (path, fresh, aside), rename `path` to `aside`, then `fresh` to `path`. A missing folder is skipped."""
    for path, fresh, aside in swaps:
        if path.exists():
            path.rename(aside)
        if fresh.exists():
            fresh.rename(path)


def _copy_base(base: Path, paths: ServerPaths) -> Path:
    """Copy the server's files to a folder next to their destination, owned by the server's user; return this folder."""
    partial = paths.base / f"postgres.{uuid.uuid4().hex[:8]}.part"
    shutil.copytree(base, partial)
    replace_configuration(partial, CONFIG)
    owner = pwd.getpwnam(paths.user) if paths.user else None
    for path in (partial, *partial.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
        if owner:
            os.chown(path, owner.pw_uid, owner.pw_gid)
    return partial


def _copy_ledger(folder: Path, home: Path) -> Path:
    fresh = home / f"{LEDGER_FOLDER}.{uuid.uuid4().hex[:8]}.part"
    if (folder / LEDGER_FOLDER).is_dir():
        shutil.copytree(folder / LEDGER_FOLDER, fresh)
    return fresh


async def _start_and_prepare(home: Path, schema: Path, *, keep_tokens: bool) -> tuple[dict[str, int], int]:
    """Start the embedded server, call `_prepare_and_count`, and stop the server."""
    server = await asyncio.to_thread(EmbeddedServer.start, home)
    try:
        return await _prepare_and_count(server.dsn("postgres"), schema, keep_tokens=keep_tokens)
    finally:
        await asyncio.to_thread(server.stop)


async def _prepare_and_count(dsn: str, schema: Path, *, keep_tokens: bool) -> tuple[dict[str, int], int]:
    """Apply the migrations; return the number of rows of each table, and the number of revoked tokens."""
    await prepare_database(dsn, schema=schema)
    revoked = 0 if keep_tokens else await _revoke_tokens(dsn)
    return (await count_rows(dsn)).rows, revoked


async def _revoke_tokens(dsn: str) -> int:
    try:
        async with connect(dsn) as connection:
            # With this setting a role subject to row security gets an error instead of an update of zero rows.
            await connection.execute("set row_security = off")
            return len(await connection.fetch(REVOKE_TOKENS_SQL))
    except asyncpg.InsufficientPrivilegeError:
        raise DatabaseError(
            "The backup is restored, but the access tokens in it could not be revoked.",
            hint="Restore as a superuser, or pass --keep-tokens.",
        ) from None


async def _dump_database(settings: Settings, target: Path) -> RowCounts:
    assert settings.database_url
    url = settings.database_url.get_secret_value()
    found = await count_rows(url)
    # without Citus and its shards, so that the dump can be restored into any database; a cluster distributes it again
    flags = ("--format=custom", "--no-owner", "--exclude-extension=citus*", f"--exclude-table={SHARD_PATTERN}")
    await _run_client(url, "pg_dump", *flags, f"--file={target / DUMP_FILE}")
    return found


async def _restore_dump(url: str, folder: Path, *, replace: bool) -> None:
    """Restore a dump in one transaction, so that the old data remain after a failure."""
    async with connect(url) as connection:
        exists = await connection.fetchval(HAS_SCHEMA_SQL)
        if exists and not replace:
            raise ConflictError(
                "The database already contains data.", hint="Pass --replace to delete the data of the database."
            )
        if exists and await is_distributed(connection):
            raise ConflictError(
                "The data of a distributed database cannot be replaced in one transaction.",
                hint="Create a database on the nodes of the cluster, restore into it, and set DATABASE_URL to it.",
            )
        for role in (APP_ROLE, WORKER_ROLE):
            await connection.execute(CREATE_ROLE_SQL % role)
    clean = ("--clean", "--if-exists") if exists else ()
    flags = (*clean, "--single-transaction", "--exit-on-error", "--no-owner")
    await _run_client(url, "pg_restore", *flags, str(folder / DUMP_FILE))


async def _distribute_restored(url: str) -> None:
    """Distribute the tables of a restored dump if the database is one of a cluster."""
    async with connect(url) as connection:
        if await connection.fetchval(HAS_CITUS_SQL):
            await distribute(connection, await plan_distribution(connection))


async def _run_client(url: str, program: str, *flags: str) -> None:
    """Run a PostgreSQL client program. The password is passed in its environment, which other users cannot read."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    plain = urlunsplit((parts.scheme, f"{name}{at}{host}", parts.path, parts.query, ""))
    secret = {"PGPASSWORD": unquote(password)} if password else {}
    try:
        await _run_program(binaries() / program, f"--dbname={plain}", *flags, **secret)
    except DatabaseError as error:
        hint = f"As a superuser, run `{program} {' '.join(flags)}` from the PostgreSQL version of the server."
        raise DatabaseError(error.what, hint=hint) from None


async def _run_program(program: Path, *args: str, **env: str) -> None:
    run = partial(subprocess.run, [str(program), *args], env={**ENVIRONMENT, **env}, stdin=subprocess.DEVNULL)
    done = await asyncio.to_thread(run, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = " ".join(done.stderr.split()) or f"it exited with status {done.returncode}"
        hint = "Check that the disk has free space and that the server runs."
        raise DatabaseError(f"{program.name} failed: {reason}.", hint=hint)
