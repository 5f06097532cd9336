"""Skills: a folder of one's own overlays what ships, the bands stay apart, and each mistake has its line."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.content.skills import MAX_CHARS, SkillFile, load_skills, read_skill
from newton.errors import ConfigError
from tests.cases import load_cases

CASES = load_cases(__file__)

GOOD = CASES["GOOD"]

FOREIGN = CASES["FOREIGN"]


def _written(folder: Path, text: str | bytes, name: str = "mend-a-tap", file: str = "SKILL.md") -> Path:
    path = folder / name / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _read(text: str) -> SkillFile:
    with TemporaryDirectory() as folder:
        return read_skill(_written(Path(folder), text))


def _with_body(body: str) -> str:
    return f"---\nname: mend-a-tap\ndescription: Stop a tap that drips.\n---\n{body}"


def _refusal(folder: Path) -> str:
    """Why the only file of a folder is left out."""
    found = load_skills(folder)
    assert found.skills == load_skills().skills
    ((_, error),) = found.errors.items()
    assert error.hint
    return str(error)


def test_front_matter_and_bands_are_read(tmp_path: Path) -> None:  # S002-18, S001-22
    assert read_skill(_written(tmp_path, GOOD)) == SkillFile(
        name="mend-a-tap",
        description="Stop a tap that drips.",
        domain="house",
        triggers=("the tap drips", "leaking tap"),
        frames=("task",),
        tools=("spanner",),
        requires=("water-off",),
        goals=("The tap is dry.", "The thread is whole."),
        core=("Turn the water off.", "Change the washer, the rubber one."),
        details="# Mending a tap\n\n## Notes\n\nWashers come in sizes.",
    )


def test_only_a_description_is_needed(tmp_path: Path) -> None:
    skill = read_skill(_written(tmp_path, "---\ndescription: Stop a tap that drips.\n---\nUse a spanner.\n"))
    assert (skill.name, skill.core, skill.details) == ("mend-a-tap", (), "Use a spanner.")
    skill = _read(_with_body("## Steps\n- Mend it."))
    assert (skill.domain, skill.goals, skill.core, skill.details) == ("general", (), ("Mend it.",), "")
    assert skill.triggers == skill.frames == skill.tools == skill.requires == ()
    text = GOOD.replace("domain: house", '"k\\0y": "a\\0b"\nmetadata: [{"c\\0": 1}]')
    assert _read(text).front_matter == {"ky": "ab", "metadata": [{"c": 1}]}
    skill = _read(_with_body("## Goals\n- Dry.\n\n## How\n- Turn it off.\n- Mend it.\n"))
    assert (skill.goals, skill.core, skill.details) == (("Dry.",), (), "## How\n- Turn it off.\n- Mend it.")


def test_a_foreign_file_loads_with_its_first_ordered_list_as_steps(tmp_path: Path) -> None:
    skill = read_skill(_written(tmp_path, FOREIGN))
    assert skill.description == "Stops a tap that drips."
    assert skill.core == ("Turn the water off.", "Change the washer.")
    assert "1. Call somebody." in skill.details
    assert "- another" in skill.details
    assert skill.front_matter == {
        **{"license": "Apache-2.0", "compatibility": "Needs a spanner.", "allowed-tools": "Bash(ls *) Read"},
        **{
            "version": 1.2,
            "metadata": {"author": "somebody", "since": "2024-01-31", "tags": ["house", {"deep": True}]},
        },
    }


@pytest.mark.parametrize("body", ["> 1. Look.\n> 2. Mend.", "1. ### Look.\n2. Mend.", "1) Look.\n\n2) Mend."])
def test_a_list_may_be_written_otherwise(body: str) -> None:
    assert _read(_with_body(body)).core == ("Look.", "Mend.")


def test_what_stands_in_code_or_details_is_no_step() -> None:
    # S002-18
    body = "```md\n## Steps\n1. not this\n```\n\n## Steps\n1. This.\n\n   ```sh\n   1. nor this\n   ```\n2. And this.\n"
    skill = _read(_with_body(body))
    assert skill.core == ("This.", "And this.")
    assert "1. not this" in skill.details
    assert "1. nor this" in skill.details
    skill = _read(_with_body("## Steps\n1. Look.\n2. Turn it off,\n   all of it:\n   - hot\n   - cold\n3. Mend it.\n"))
    assert skill.core == ("Look.", "Turn it off, all of it:", "Mend it.")
    assert skill.details == "## Steps\n2. Turn it off,\n   all of it:\n   - hot\n   - cold"
    # a section goes on to the next heading of its level
    body = "## Steps\n\nFirst:\n\n1. Look.\n\n### Then\n\n2. Mend.\n\n# Other\n\n1. Not this.\n"
    skill = _read(_with_body(body))
    assert skill.core == ("Look.", "Mend.")
    assert skill.details == "## Steps\n\nFirst:\n\n### Then\n\n# Other\n\n1. Not this."
    assert _read(_with_body("First:\n1. Look.\n2. Mend.\n\nAt last.")).details == "First:\n\nAt last."
    code = "```\na\n\n\nb\n```"
    assert _read(_with_body(f"{code}\n\n1. Look.\n\n\n{code}")).details == f"{code}\n\n{code}"
    assert "-----" in _read(_with_body("1. Mend it.\n\n" + "-" * 9_000)).details
    # the bounds are inclusive
    skill = _read(_with_body("1. " + "m" * 500 + "\n" + "1. Mend it.\n" * 49))
    assert (len(skill.core), len(skill.core[0])) == (50, 500)
    skill = _read(_with_body("1. Mend\n\n").ljust(len(_with_body("")) + MAX_CHARS, "x"))
    assert len(skill.details) == MAX_CHARS - len("1. Mend\n\n")


@pytest.mark.parametrize("heading", ["## steps", "## STEPS:", "## **Steps** ##", "Steps\n-----"])
def test_the_heading_may_be_written_otherwise(heading: str) -> None:
    assert _read(_with_body(f"1. Not this.\n\n{heading}\n\n* This.\n")).core == ("This.",)


def test_files_in_other_line_ends_load_and_in_other_encodings_do_not(tmp_path: Path) -> None:
    unix = read_skill(_written(tmp_path, GOOD))
    for end in ("\r\n", "\r"):
        other = read_skill(_written(tmp_path, b"\xef\xbb\xbf" + GOOD.replace("\n", end).encode()))
        assert other == unix
    path = _written(tmp_path, GOOD.replace("Washers", "Dichtungen für Hähne").encode("latin-1"))
    assert _refusal(tmp_path) == f"{path}:27: the text is not UTF-8. Save the file as UTF-8."


def test_a_folder_of_ones_own_adds_and_replaces(tmp_path: Path) -> None:
    _written(tmp_path, GOOD)
    _written(tmp_path, GOOD.replace("name: mend-a-tap", "name: debugging"), name="debugging")
    both, shipped = load_skills(tmp_path).skills, load_skills().skills
    assert sorted(both) == sorted([*shipped, "mend-a-tap"])
    assert both["debugging"].core[0] == "Turn the water off."
    assert both["planning"] == shipped["planning"]


def test_what_is_no_skill_is_left_alone(tmp_path: Path) -> None:
    _written(tmp_path, "no front matter", name="notes", file="README.md")
    _written(tmp_path, "no front matter", name=".hidden")
    (tmp_path / "SKILL.md").write_text("no front matter", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    assert load_skills(tmp_path) == load_skills()


@pytest.mark.parametrize("file", ["skill.md", "Skill.md", "SKILL.MD"])
def test_the_name_of_the_file_may_be_written_otherwise(tmp_path: Path, file: str) -> None:
    _written(tmp_path, GOOD, file=file)
    assert "mend-a-tap" in load_skills(tmp_path).skills


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        load_skills(tmp_path / "none")
    path = _written(tmp_path, GOOD)
    path.unlink()
    path.symlink_to(tmp_path / "none")
    assert _refusal(tmp_path).startswith(f"{path} cannot be read: No such file")
    path.unlink()
    path.mkdir()
    assert _refusal(tmp_path).startswith(f"{path} cannot be read: Is a directory.")


WRONG = {
    "missing": ("description: Stop a tap that drips.\n", "", "2: description is missing. The purpose of"),
    "long name": ("name: mend-a-tap", f"name: {'m' * 65}", "2: name should have at most 64 characters, not 65."),
    "blank": ("Stop a tap that drips.", "' '", "3: description is empty. The purpose of the skill and when"),
    "long": ("Stop a tap that drips.", "m" * 1_025, "3: description should have at most 1024 characters, not 1025."),
    "hidden NUL": ("Stop a tap that drips.", '"a\\0b"', "3: description contains a control character. The purpose"),
    "a number for a text": ("  - leaking tap", "  - 7", "7: triggers[1] should be a text. Phrases of"),
    "blank trigger": ("  - leaking tap", "  - ''", "7: triggers[1] is empty. Phrases of"),
    "long trigger": ("leaking tap", "m" * 101, "7: triggers[1] should have at most 100 characters, not 101."),
    "twice": ("domain: house", "name: again", "4: 'name' is repeated; the first is in line 2. Keep one"),
    "syntax": ("frames: [task]", "frames: [task", "9: not valid YAML: did not find expected ',' or ']'"),
    "tag": ("frames: [task]", "frames: !!set {task}", "8: the tag tag:yaml.org,2002:set is not allowed."),
    "NUL": ("Washers", "Wash\0ers", "27: the character '\\x00' is not allowed. Remove the character."),
    "no front matter": ("---\nname: ", "name: ", "1: the file does not begin with front matter. Start the file"),
    "late front matter": ("---\nname: ", "\n---\nname: ", "1: the file does not begin with front matter."),
    "unclosed": ("---\n# Mending", "# Mending", "1: the front matter has no end. End the front matter with"),
}


@pytest.mark.parametrize(("good", "bad", "complaint"), WRONG.values(), ids=WRONG)
def test_a_mistake_names_its_file_and_line(tmp_path: Path, good: str, bad: str, complaint: str) -> None:
    assert GOOD.count(good) == 1
    path = _written(tmp_path, GOOD.replace(good, bad))
    assert _refusal(tmp_path).startswith(f"{path}:{complaint}")


WHOLE = {
    "empty": ("", "1: the file does not begin with front matter."),
    "empty front": ("---\n---\n1. Mend it.\n", "1: the front matter is not a mapping of fields. Write fields"),
    "a list in front": ("---\n- name\n---\n1. Mend it.\n", "2: the front matter is not a mapping of fields."),
    "long body": (
        _with_body("\n1. Mend it.\n" + "m" * MAX_CHARS),
        "6: the text has 200,012 characters; the limit is 200,000. Move long parts to other files of the skill.",
    ),
    "far too long": (_with_body("1. Mend it.\n" + "ü" * 1_000_000), "1: the file is larger than 1,000,000 bytes."),
}


@pytest.mark.parametrize(("text", "complaint"), WHOLE.values(), ids=WHOLE)
def test_a_file_that_says_too_little_or_too_much_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = _written(tmp_path, text)
    assert _refusal(tmp_path).startswith(f"{path}:{complaint}")


WORDS = st.lists(st.text("aäß1,;", max_size=4).map("x{}".format), min_size=1, max_size=6)
LINES = WORDS.map(" ".join)
BANDS = st.lists(LINES, min_size=1, max_size=6)


def _listed(items: list[str], *, ordered: bool, wrapped: bool) -> str:
    def item(number: int, text: str) -> str:
        mark = f"{number}. " if ordered else "- "
        return mark + (text.replace(" ", "\n" + " " * len(mark)) if wrapped else text)

    return "\n".join(item(number, text) for number, text in enumerate(items, 1))


@given(
    goals=BANDS,
    steps=BANDS,
    notes=BANDS,
    order=st.permutations(["goals", "steps", "notes"]),
    ordered=st.booleans(),
    wrapped=st.booleans(),
)
def test_the_core_is_the_steps_and_nothing_else(
    goals: list[str], steps: list[str], notes: list[str], order: list[str], ordered: bool, wrapped: bool
) -> None:
    # S002-18: only the core enters a context, so nothing may slip into it or out of it.
    sections = {
        "goals": f"## Goals\n\n{_listed(goals, ordered=not ordered, wrapped=wrapped)}\n",
        "steps": f"## Steps\n\n{_listed(steps, ordered=ordered, wrapped=wrapped)}\n",
        "notes": f"## Notes\n\n{_listed(notes, ordered=True, wrapped=False)}\n",
    }
    skill = _read(_with_body("\n".join(sections[name] for name in order)))
    assert (list(skill.goals), list(skill.core)) == (goals, steps)
    assert skill.details == sections["notes"].strip()


PIECES = st.sampled_from([
    *("## Goals", "## Steps", "# Top", "### Below", "1. {}", "   {}", "- {}", "  - {}", "> {}", "> 1. {}", "{}"),
    *("```", "    {}", "", "", "---", "===", "<b>{}", "| {} | {} |", "|-|-|", "* * *", "1.", "-"),
])  # fmt: skip


@given(st.lists(PIECES, max_size=14))
def test_no_word_of_the_body_is_lost_and_each_mistake_has_a_line(pieces: list[str]) -> None:
    # S002-18: what is neither goal nor step is detail.
    lines = [piece.replace("{}", f"word{number}") for number, piece in enumerate(pieces)]
    try:
        skill = _read(_with_body("\n".join(lines)))
    except ConfigError as error:
        found = re.search(r"/SKILL\.md:(\d+): ", error.what)
        assert found
        assert 1 <= int(found[1]) <= 5 + len(lines)
        assert error.hint
    else:
        kept = re.findall(r"word\d+", " ".join([*skill.goals, *skill.core, skill.details]))
        assert [word for line in lines for word in re.findall(r"word\d+", line) if word not in kept] == []


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode), st.integers(0, len(GOOD)), st.integers(0, 30))
def test_whatever_a_file_holds_it_loads_or_is_refused(noise: bytes, at: int, cut: int) -> None:
    raw = GOOD.encode()
    with TemporaryDirectory() as folder:
        path = _written(Path(folder), raw[:at] + noise + raw[at + cut :])
        try:
            skill = read_skill(path)
        except ConfigError as error:
            assert error.what.startswith(f"{path}:")
            assert error.hint
        else:
            assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", skill.name)
            assert "\\u0000" not in skill.model_dump_json()


SAYS = st.lists(st.text(alphabet='ab", ', min_size=1, max_size=3).filter(str.strip), min_size=1, max_size=3).map(tuple)


@given(SAYS, SAYS, SAYS, SAYS)
def test_the_hash_is_that_of_what_is_said(a: tuple[str], b: tuple[str], c: tuple[str], d: tuple[str]) -> None:
    one = SkillFile(name="a", description="a", triggers=a, core=b)
    other = SkillFile(name="a", description="a", triggers=c, core=d)
    assert (one.content_hash == other.content_hash) == (one == other)


@pytest.mark.parametrize("field", SkillFile.model_fields)
def test_every_field_counts_for_the_hash(field: str) -> None:
    one = SkillFile(name="a", description="a", core=("a",))
    text = get_args(SkillFile.model_fields[field].annotation) == ()
    value = {"b": 1} if field == "front_matter" else "b" if text else ("b",)
    other = SkillFile.model_validate({**dict(one), field: value})
    assert len(one.content_hash) == 32
    assert other.content_hash != one.content_hash


def test_the_hash_does_not_know_how_the_file_was_laid_out() -> None:
    laid = GOOD.replace("2. Change the washer,\n   the", "7. Change   the washer, the").replace(
        "drips.\nd", "drips.\n\nd"
    )
    laid = laid.replace("frames: [task]", "frames:\n- 'task'")
    assert laid != GOOD
    assert _read(laid).content_hash == _read(GOOD).content_hash
