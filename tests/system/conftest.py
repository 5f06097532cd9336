"""Where commands are typed."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from newton.db.pool import Database
from tests.conftest import database
from tests.emptied import Lent
from tests.system.daemons import Daemon, daemon
from tests.system.served import Api
from tests.system.served import served as serve_api


@pytest.fixture
async def api(db: Database, tmp_path: Path) -> AsyncIterator[Api]:
    """An API of this process, on an empty database."""
    async with serve_api(db, tmp_path) as made:
        yield made


@pytest.fixture(scope="session")
async def house(server: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """The folder of the daemon that many files speak to, each with agents of its own."""
    folder = tmp_path_factory.mktemp("house")
    async with database(server, template) as dsn:
        (folder / "newton.toml").write_text(f'database_url = "{dsn}"\n', encoding="utf-8")
        yield folder


@pytest.fixture(scope="session")
def served(house: Path) -> Iterator[Daemon]:
    """A daemon that is as it comes, but for its embedder: to start one takes longer than most tests."""
    with daemon(house, NEWTON_EMBEDDING_PROVIDER="none") as made:
        yield made


@pytest.fixture(scope="module")
async def behind(lent: Lent) -> AsyncIterator[str]:
    """A database of the file's own, as its owner: a server for each file would take most of the time."""
    async with lent.one() as dsn:
        yield dsn


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, behind: str) -> Path:
    """A folder whose settings name that database."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "newton.toml").write_text(f'database_url = "{behind}"\n', encoding="utf-8")
    return folder
