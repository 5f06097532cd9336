"""Folders of skills as other programs write them: a bad file costs itself, and loose front matter is read."""

from pathlib import Path

import pytest

from newton.content.skills import SkillFile, find_skills, read_skill
from tests.unit.test_skills import GOOD


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


NAMES = {
    "": "mend-a-tap",
    "''": "mend-a-tap",
    "Mend_a_tap": "mend-a-tap",
    "mend-a-pipe": "mend-a-pipe",
    "Mend a Pipe 🔧": "mend-a-pipe",
    "3d-print": "3d-print",
    "🔧": "mend-a-tap",
    "'m\u200bend'": "m-end",
}


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
