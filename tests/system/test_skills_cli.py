"""Skills and permissions as a person types them."""

import json
from pathlib import Path

from newton.content.skills import read_skill
from tests.system.typed import ok, typed

SKILL = "---\nname: rotate-keys\ndescription: Rotate the keys.\n---\n1. Create a key.\n2. {last}\n"


def test_a_skill_is_a_procedure_of_the_person_and_a_changed_one_a_new_version(home: Path) -> None:
    file = home / "skills" / "rotate-keys" / "SKILL.md"
    file.parent.mkdir(parents=True)
    for last, said in (("Revoke it.", "added"), ("Revoke it.", "unchanged"), ("Revoke the old one.", "added")):
        file.write_text(SKILL.format(last=last))
        assert f"rotate-keys: {said}" in ok(typed(home, "skills", "add", str(home / "skills")))
    listed = json.loads(ok(typed(home, "procedures", "list", "--json")))["items"]
    (skill,) = [one for one in listed if one["name"] == "rotate-keys"]
    assert (skill["version"], skill["is_proposed"]) == (2, False)
    (memory,) = json.loads(ok(typed(home, "list", "--kind", "procedure", "--text", "rotate keys", "--json")))["items"]
    assert (memory["trust"], memory["origin"]) == ("user", "cli")
    assert "Retired" in ok(typed(home, "skills", "remove", "rotate-keys"))


def test_one_bad_skill_costs_neither_the_others_nor_a_command(home: Path) -> None:
    """A skill without steps is stored as well, and its procedure stays while its file is broken."""
    file, bad = home / "broken" / "mend-a-tap" / "SKILL.md", home / "broken" / "bad" / "SKILL.md"
    for one in (file, bad):
        one.parent.mkdir(parents=True)
    file.write_text("---\ndescription: Mend a tap.\nlicense: MIT\n---\nUse a spanner.\n")
    bad.write_text("no front matter")
    own = {"NEWTON_PROCEDURES_DIR": str(home / "broken")}
    done = typed(home, "procedures", "list", **own)
    assert done.returncode == 0 and f"{bad}:1: the file does not begin with front matter" in done.stderr
    assert "mend-a-tap" in done.stdout
    file.write_text("---\ndescription: [")
    other = home / "broken" / "cut-wood" / "SKILL.md"  # a change, so that the procedures are compared with the files
    other.parent.mkdir()
    other.write_text("---\ndescription: Cut wood.\n---\nUse a saw.\n")
    listed = json.loads(ok(typed(home, "procedures", "list", "--json", **own)))["items"]
    assert [one["state"] for one in listed if one["name"] == "mend-a-tap"] == ["ACTIVE"]
    added = typed(home, "skills", "add", str(home / "broken"), "--json")
    assert added.returncode == 2
    assert [str(bad) in one or str(file) in one for one in json.loads(added.stdout)["rejected"]] == [True, True]


def test_fields_of_other_programs_are_exported_again(home: Path) -> None:
    file = home / "glass" / "cut-glass" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(
        "---\nname: cut-glass\ndescription: Cut glass.\nmetadata: {author: Ada, tags: [a]}\n"
        "'a: b': 1\n'# c': {'d: e': [2]}\n'\"f\"': 3\n'true': 4\n---\nScore it.\n"
    )
    ok(typed(home, "skills", "add", str(home / "glass")))
    ok(typed(home, "export", str(home / "mirror"), "--markdown"))
    exported = read_skill(home / "mirror" / "procedures" / "cut-glass" / "SKILL.md")
    assert exported == read_skill(file)


def test_a_prohibition_is_listed_and_revoked_by_name(home: Path) -> None:
    assert "Forbidden: files delete" in ok(typed(home, "permissions", "deny", "files", "delete"))
    assert "files delete" in ok(typed(home, "permissions"))
    assert "no longer forbidden" in ok(typed(home, "permissions", "revoke", "files delete"))
    assert typed(home, "permissions", "revoke", "files delete").returncode != 0
