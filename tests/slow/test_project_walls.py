"""Persons with projects, and many contexts of them at once: no word crosses a wall, and no rule lacks."""

from pathlib import Path

import pytest

from newton.db.pool import Database
from tests.endpoint import endpoint, says
from tests.system.project_walls import Walls
from tests.system.served import served


@pytest.mark.slow
@pytest.mark.timeout(1_800)
async def test_no_word_of_200_memories_crosses_a_wall_in_500_contexts(db: Database, dsn: str, tmp_path: Path) -> None:
    async with (
        endpoint(says(["Noted."])) as model,
        served(db, tmp_path, openai_base_url=model.url, openai_model="echo") as api,
    ):
        walls = Walls(api=api, model=model, home=tmp_path, dsn=dsn)
        await walls.fill(200)
        await walls.build(500)
    assert walls.faults == []
    assert walls.built.total() == 500 and len(walls.built) == 5 and walls.inherited > 100, "or the test shows nothing"
