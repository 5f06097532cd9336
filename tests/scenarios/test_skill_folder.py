"""A folder of skills in which some cannot be read: a start of the program stores the others."""

from pathlib import Path

import pytest

from newton.agent.services.procedures import ProcedureService
from newton.content.skills import load_skills
from tests.scenarios.conftest import Mind

SHIPPED = "incident-response"
SKILL = "---\nname: {name}\ndescription: Mend it.\n---\n1. {step}\n"


def write(folder: Path, name: str, step: str, inner: str | None = None) -> Path:
    path = folder / (inner or name) / "SKILL.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(SKILL.format(name=name, step=step), encoding="utf-8")
    return path


async def start(mind: Mind, folder: Path) -> dict[str, tuple[int, str]]:
    """Return the latest version of each procedure and its first step, after the folder was read."""
    service = ProcedureService(scope=mind.scope)
    await service.sync_from_disk(load_skills(folder))
    return {one.name: (one.version, one.steps[0]) for one in await service.list_procedures() if one.state == "ACTIVE"}


@pytest.mark.parametrize("broken", ["no front matter", "---\nname: incident-response\ndescription: [\n---\n"])
async def test_a_skill_in_place_of_a_shipped_one_stays_while_its_file_is_broken(
    mind: Mind, tmp_path: Path, broken: str
) -> None:
    path = write(tmp_path, SHIPPED, "Call Ana.")
    assert (await start(mind, tmp_path))[SHIPPED] == (1, "Call Ana.")
    path.write_text(broken, encoding="utf-8")
    write(tmp_path, "cut-wood", "Saw.")
    procedures = await start(mind, tmp_path)
    assert (procedures[SHIPPED], procedures["cut-wood"]) == ((1, "Call Ana."), (1, "Saw."))
    write(tmp_path, SHIPPED, "Call Ben.")
    assert (await start(mind, tmp_path))[SHIPPED] == (2, "Call Ben.")


async def test_two_files_with_one_name_cost_only_the_second(mind: Mind, tmp_path: Path) -> None:
    write(tmp_path, "cut-wood", "Saw.")
    write(tmp_path, "cut-wood", "Split.", inner="twin")
    assert (await start(mind, tmp_path))["cut-wood"] == (1, "Saw.")
    write(tmp_path, "mend-a-tap", "Look.")
    write(tmp_path, "cut-wood", "Saw slowly.")
    procedures = await start(mind, tmp_path)
    assert (procedures["cut-wood"], procedures["mend-a-tap"]) == ((2, "Saw slowly."), (1, "Look."))
