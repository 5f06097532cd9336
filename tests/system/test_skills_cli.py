"""Skills and permissions as a person types them."""

import json
from pathlib import Path

from tests.system.typed import ok, typed

SKILL = "---\nname: rotate-keys\ndescription: Rotate the keys.\n---\n1. Create a key.\n2. {last}\n"


def test_a_skill_is_a_procedure_of_the_person_and_a_changed_one_a_new_version(home: Path) -> None:
    file = home / "skills" / "rotate-keys" / "SKILL.md"
    file.parent.mkdir(parents=True)
    for last, said in (("Revoke it.", "added"), ("Revoke it.", "unchanged"), ("Revoke the old one.", "added")):
        file.write_text(SKILL.format(last=last))
        assert f"rotate-keys: {said}" in ok(typed(home, "skills", "add", str(home / "skills")))
    listed = json.loads(ok(typed(home, "procedures", "list", "--json")))
    (skill,) = [one for one in listed if one["name"] == "rotate-keys"]
    assert (skill["version"], skill["proposed"]) == (2, False)
    (memory,) = json.loads(ok(typed(home, "list", "--kind", "procedure", "--text", "rotate keys", "--json")))["items"]
    assert (memory["trust"], memory["origin"]) == ("user", "cli")
    assert "Retired" in ok(typed(home, "skills", "remove", "rotate-keys"))


def test_a_prohibition_is_listed_and_revoked_by_name(home: Path) -> None:
    assert "Forbidden: files delete" in ok(typed(home, "permissions", "deny", "files", "delete"))
    assert "files delete" in ok(typed(home, "permissions"))
    assert "no longer forbidden" in ok(typed(home, "permissions", "revoke", "files delete"))
    assert typed(home, "permissions", "revoke", "files delete").returncode != 0
