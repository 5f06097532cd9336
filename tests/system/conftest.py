"""Where commands are typed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import database


@pytest.fixture(scope="module")
async def behind(server: str, template: str) -> AsyncIterator[str]:
    """A database of the file's own, as its owner: a server for each file would take most of the time."""
    async with database(server, template) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, behind: str) -> Path:
    """A folder whose settings name that database."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "newton.toml").write_text(f'database_url = "{behind}"\n', encoding="utf-8")
    return folder
