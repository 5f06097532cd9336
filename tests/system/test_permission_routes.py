"""Permissions, calls and the approval of procedures over HTTP: each agent sees and changes only its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from newton.content.skills import SkillFile
from newton.db.pool import Database
from newton.heart import procedures
from newton.ids import derive_agent_id
from tests.system.served import Api, served


@pytest.fixture
async def api(db: Database, tmp_path: Path) -> AsyncIterator[Api]:
    async with served(db, tmp_path) as made:
        yield made
