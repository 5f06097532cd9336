"""The fixture of this version: a backup of a database after some use. `scripts/make-fixture` writes it."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from newton import __version__
from newton.content.package_data import data_folder
from newton.db.backup import create_backup
from newton.db.backup_files import BackupManifest
from newton.db.connection import prepare_database
from newton.db.embedded_server import EmbeddedServer, temporary_server
from newton.db.migrations import read_migrations
from newton.db.pool import Database
from newton.settings import load
from tests.db.world import live
from tests.support import NOON

FOLDER = Path(__file__).parent / "data" / "fixture"
BACKUP = FOLDER / "backup"
SCHEMA = data_folder("schema")
VERSION_FILE = FOLDER / "version.json"
# What the agent `ben` is told, by question. `ana` gets a row in every table.
SENTENCES = {
    "Where does Ines live?": "My sister Ines lives in Porto.",
    "What is Tomas allergic to?": "My brother Tomas is allergic to walnuts.",
}


def is_stale(manifest: BackupManifest) -> bool:
    """Whether the schema was changed in place after the backup was made."""
    return manifest.migrations != {one.name: one.sha256 for one in read_migrations(SCHEMA)}


def read_told() -> dict[str, str]:
    """What the agent `ben` was told in the version of the fixture, by question."""
    return json.loads(VERSION_FILE.read_text(encoding="utf-8"))["told"]


async def _make_backup() -> None:
    with temporary_server() as server:
        dsn = server.dsn("postgres")
        await _fill(dsn, server)
        _tell({"DATABASE_URL": dsn})
        await create_backup(load({"database_url": dsn}, env={}), BACKUP, now=NOON)


async def _fill(owner: str, server: EmbeddedServer) -> None:
    _, roles = await prepare_database(owner, schema=SCHEMA)
    db = await Database.open(server.dsn(roles.app), worker=server.dsn(roles.worker), size=4)
    await live(db, "ana")
    await db.close()


def _tell(env: dict[str, str]) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("NEWTON_", "OPENAI_"))}
    for sentence in SENTENCES.values():
        words = [sys.executable, "-m", "newton", "remember", "--agent", "ben", sentence]
        subprocess.run(words, env={**bare, **env}, check=True, stdout=subprocess.DEVNULL, cwd=tempfile.gettempdir())


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    asyncio.run(_make_backup())
    VERSION_FILE.write_text(json.dumps({"newton": __version__, "told": SENTENCES}, indent=1) + "\n")


if __name__ == "__main__":
    main()
