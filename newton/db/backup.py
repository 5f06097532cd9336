"""Online backups of the whole database: created in a folder, verified, and restored atomically."""

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
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

import asyncpg

from newton import __version__
from newton.db import backup_manifest as manifest
from newton.db.backup_manifest import BackupManifest
from newton.db.connection import prepare_database
from newton.db.embedded_server import ENVIRONMENT, EmbeddedServer, exclusive_access
from newton.db.pool import APP_ROLE, WORKER_ROLE, translate_connect_errors, translate_errors
from newton.db.server_paths import ServerPaths, binaries
from newton.errors import ConflictError, DatabaseError, InputError, NewtonError
from newton.settings import Settings

BASE_FOLDER, LEDGER_FOLDER, DUMP_FILE = "base", "ledger", "dump"
ROW_COUNTS_SQL = "select table_name, row_count from runtime.row_counts()"
HAS_ROW_COUNTS_SQL = "select to_regprocedure('runtime.row_counts()') is not null"
# A dump refers to these roles but does not contain them. The migrations create them with the same statement.
CREATE_ROLE_SQL = """
do $$
begin
    create role %s login nosuperuser nocreatedb nocreaterole nobypassrls noinherit;
exception
    when duplicate_object or unique_violation then null;
end
$$
"""
HAS_SCHEMA_SQL = "select to_regclass('runtime.schema_migrations') is not null"


REVOKE_TOKENS_SQL = "update runtime.tokens set revoked_at = now() where revoked_at is null returning 1"


class RowCounts(NamedTuple):
    """The server version and the row count of each table."""

    version: str
    rows: dict[str, int]


class RestoreResult(NamedTuple):
    """The restored manifest, the row counts, the number of revoked tokens, and the folder of the previous data, if
    any."""

    manifest: BackupManifest
    rows: Mapping[str, int]
    revoked: int
    previous_data: Path | None


async def create_backup(settings: Settings, folder: Path, *, now: datetime) -> BackupManifest:
    """Write a verified backup to a new folder, which appears only when it is complete.

    Concurrent writes are allowed; the backup holds what was committed when it ended. Raises ConflictError for an
    existing folder, and DatabaseError when the copy fails.
    """
    with _atomic_folder(folder) as partial:
        version, rows = await (
            _dump_database(settings, partial) if settings.database_url else _copy_server(settings, partial)
        )
        written = BackupManifest(
            kind="dump" if settings.database_url else "base",
            made_at=now,
            newton=__version__,
            postgres=version,
            rows=rows,
            files=await asyncio.to_thread(manifest.hash_files, partial),
        )
        manifest.write_manifest(partial, written)
    return written


@contextmanager
def _atomic_folder(folder: Path) -> Generator[Path]:
    """Yield a temporary folder that is renamed to `folder` on success."""
    if folder.exists():
        raise ConflictError(f"{folder} already exists.", hint="Name a folder that does not exist.")
    partial = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        partial.mkdir(mode=0o700, parents=True)
        yield partial
        os.sync()
        partial.rename(folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}.", hint="Name another folder.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


async def restore(
    settings: Settings, folder: Path, *, schema: Path, replace: bool, keep_tokens: bool = False
) -> RestoreResult:
    """Replace the data with a backup, after verifying all of the backup.

    The previous data is moved aside. Tokens are revoked unless `keep_tokens`, because the backup lacks later
    revocations. Raises ConflictError when there is data and `replace` is False, and DatabaseError when the backup does
    not start; then nothing has changed.
    """
    found = await asyncio.to_thread(manifest.verify_backup, folder)
    if (found.kind == "dump") != (settings.database_url is not None):
        raise InputError(
            f"It is a backup of {'an external' if found.kind == 'dump' else 'the embedded'} database.",
            hint="Set DATABASE_URL to restore a dump, and unset it for the embedded server.",
        )
    if settings.database_url:
        url = settings.database_url.get_secret_value()
        await _restore_dump(url, folder, replace=replace)
        return RestoreResult(found, *await _prepare_and_count(url, schema, keep_tokens=keep_tokens), None)
    return await _restore_base(settings.home, folder, found, schema=schema, replace=replace, keep_tokens=keep_tokens)


async def count_rows(dsn: str) -> RowCounts:
    """Return the server version and the row counts visible to the role of the connection string."""
    with translate_connect_errors():
        conn = await asyncpg.connect(dsn, timeout=10)
    try:
        with translate_errors(conn):
            rows = await conn.fetch(ROW_COUNTS_SQL) if await conn.fetchval(HAS_ROW_COUNTS_SQL) else []
            version = await conn.fetchval("show server_version")
            return RowCounts(version, {row["table_name"]: row["row_count"] for row in rows})
    finally:
        await conn.close()


async def _copy_server(settings: Settings, target: Path) -> RowCounts:
    server = await asyncio.to_thread(EmbeddedServer.start, settings.home)
    try:
        # copy the recorded chain heads first, so that the copied ledgers are never behind them
        if (settings.home / LEDGER_FOLDER).is_dir():
            shutil.copytree(settings.home / LEDGER_FOLDER, target / LEDGER_FOLDER)
        version, rows = await count_rows(server.dsn("postgres"))
        flags = ("-X", "stream", "--checkpoint=fast", "--manifest-checksums=SHA256")
        where = ("-h", str(server.paths.sockets), "-U", "postgres", "-D", str(target / BASE_FOLDER))
        await _run_program(server.paths.binaries / "pg_basebackup", *where, *flags)
        await _verify_base(server.paths.binaries, target / BASE_FOLDER)
    finally:
        await asyncio.to_thread(server.stop)
    return RowCounts(version, rows)


async def _verify_base(programs: Path, base: Path) -> None:
    """Verify the copy against the manifest from the server, and read its write-ahead log."""
    listed = json.loads((base / "backup_manifest").read_text(encoding="utf-8"))
    here = await asyncio.to_thread(manifest.hash_files, base)
    if wrong := [file["Path"] for file in listed["Files"] if here.get(file["Path"]) != file["Checksum"]]:
        raise DatabaseError(f"The copy of {wrong[0]} differs from the server's manifest.", hint="Check the disk.")
    for part in listed["WAL-Ranges"]:
        ends = ("-s", part["Start-LSN"], "-e", part["End-LSN"], "-t", str(part["Timeline"]))
        await _run_program(programs / "pg_waldump", "--quiet", "-p", str(base / "pg_wal"), *ends)


async def _restore_base(
    home: Path, folder: Path, backup_manifest: BackupManifest, *, schema: Path, replace: bool, keep_tokens: bool
) -> RestoreResult:
    with exclusive_access(home) as place:
        here = place.data.exists()
        if here and not replace:
            raise ConflictError(
                f"There is already data under {place.base}.", hint="Pass --replace; the old data is moved aside."
            )
        aside = place.base / f"postgres.replaced-{backup_manifest.made_at:%Y%m%d}-{uuid.uuid4().hex[:8]}"
        fresh = await asyncio.to_thread(_copy_base, folder / BASE_FOLDER, place)
        swaps = [(place.data, fresh, aside), (home / LEDGER_FOLDER, _copy_ledger(folder, home), home / aside.name)]
        _swap(swaps)
    try:
        rows, revoked = await _start_and_prepare(home, schema, keep_tokens=keep_tokens)
    except (NewtonError, asyncio.CancelledError):
        with exclusive_access(home):
            failed = [(now, then, now.with_name(f"{aside.name}.failed")) for now, _, then in swaps]
            _swap(failed)
            for _, _, useless in failed:
                shutil.rmtree(useless, ignore_errors=True)
        raise
    return RestoreResult(backup_manifest, rows, revoked, aside if here else None)


def _swap(places: list[tuple[Path, Path, Path]]) -> None:
    """Move the content of each place aside and the new content, if any, into it."""
    for place, fresh, aside in places:
        if place.exists():
            place.rename(aside)
        if fresh.exists():
            fresh.rename(place)


def _copy_base(base: Path, paths: ServerPaths) -> Path:
    """Copy the server's files beside their destination, owned by the server's user."""
    partial = paths.base / f"postgres.{uuid.uuid4().hex[:8]}.part"
    shutil.copytree(base, partial)
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
    """Start the server and do the same as `_prepare_and_count`."""
    server = await asyncio.to_thread(EmbeddedServer.start, home)
    try:
        return await _prepare_and_count(server.dsn("postgres"), schema, keep_tokens=keep_tokens)
    finally:
        await asyncio.to_thread(server.stop)


async def _prepare_and_count(dsn: str, schema: Path, *, keep_tokens: bool) -> tuple[dict[str, int], int]:
    """Migrate the database; return its row counts and the number of revoked tokens."""
    await prepare_database(dsn, schema=schema)
    revoked = 0 if keep_tokens else await _revoke_tokens(dsn)
    return (await count_rows(dsn)).rows, revoked


async def _revoke_tokens(dsn: str) -> int:
    with translate_connect_errors():
        conn = await asyncpg.connect(dsn, timeout=10)
    try:
        with translate_errors(conn):
            await conn.execute(
                "set row_security = off"
            )  # a role subject to row security gets an error, not an update of zero rows
            return len(await conn.fetch(REVOKE_TOKENS_SQL))
    except asyncpg.InsufficientPrivilegeError:
        raise DatabaseError(
            "The backup is restored, but its tokens could not be revoked.",
            hint="Restore as a superuser, or --keep-tokens.",
        ) from None
    finally:
        await conn.close()


async def _dump_database(settings: Settings, target: Path) -> RowCounts:
    assert settings.database_url
    url = settings.database_url.get_secret_value()
    version, rows = await count_rows(url)
    await _run_client(url, "pg_dump", "--format=custom", "--no-owner", f"--file={target / DUMP_FILE}")
    return RowCounts(version, rows)


async def _restore_dump(url: str, folder: Path, *, replace: bool) -> None:
    """Restore the dump in one transaction, so that a failure leaves the old data."""
    with translate_connect_errors():
        conn = await asyncpg.connect(url, timeout=10)
    try:
        with translate_errors(conn):
            if await conn.fetchval(HAS_SCHEMA_SQL) and not replace:
                raise ConflictError("The database already holds data.", hint="Pass --replace to delete it.")
            for role in (APP_ROLE, WORKER_ROLE):
                await conn.execute(CREATE_ROLE_SQL % role)
    finally:
        await conn.close()
    flags = ("--clean", "--if-exists", "--single-transaction", "--exit-on-error", "--no-owner")
    await _run_client(url, "pg_restore", *flags, str(folder / DUMP_FILE))


async def _run_client(url: str, program: str, *flags: str) -> None:
    """Run a PostgreSQL client program on an external database. The password is passed in the environment, which other
    users cannot read."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    plain = urlunsplit((parts.scheme, f"{name}{at}{host}", parts.path, parts.query, ""))
    secret = {"PGPASSWORD": unquote(password)} if password else {}
    try:
        await _run_program(binaries() / program, f"--dbname={plain}", *flags, **secret)
    except DatabaseError as error:
        own = f"{program} {' '.join(flags)}"
        raise DatabaseError(error.what, hint=f"Run `{own}` of the server's own version, as a superuser.") from None


async def _run_program(program: Path, *args: str, **env: str) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [str(program), *args],
        env={**ENVIRONMENT, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"it exited with status {done.returncode}"
        raise DatabaseError(f"{program.name} failed: {said}.", hint="Check that the disk has room and the server runs.")
