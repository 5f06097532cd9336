"""`newton list`, `edit`, `bulk`, `documents` and `agents`: what a person sees, and what needs a confirmation."""

import json
import re
from pathlib import Path

from tests.system.typed import ok, typed


def remember(home: Path, *contents: str, **about: str) -> None:
    flags = [word for name, value in about.items() for word in (f"--{name}", value)]
    for content in contents:
        ok(typed(home, "remember", content, *flags))


def listed(home: Path, *words: str) -> list[dict[str, object]]:
    return json.loads(ok(typed(home, "list", *words, "--json")))["items"]


def test_a_table_shows_state_importance_and_subject_and_pages_follow(home: Path) -> None:
    remember(home, "She plays the cello", "Rain makes her happy", subject="Mira")
    remember(home, "The kettle is blue", importance="9")
    lines = ok(typed(home, "list", "--sort", "importance")).splitlines()
    assert lines[0] == "3 memories, most important first  (* importance set by a person)"
    assert lines[1].split() == ["id", "kind", "state", "occurred", "imp", "text"]
    assert re.fullmatch(r"[0-9a-f]{8}  fact  NEW    \d{4}-\d\d-\d\d  9\*   The kettle is blue", lines[2])
    assert any(line.endswith("[Mira] She plays the cello") for line in lines)
    first = typed(home, "list", "--limit", "2")
    cursor = first.stderr.split()[-1]
    assert len(ok(first).splitlines()) == 4
    second = ok(typed(home, "list", "--limit", "2", "--cursor", cursor)).splitlines()
    assert len(second) == 3 and second[0] == "newest first"
    assert listed(home, "--subject", "Mira", "--field", "text") == [
        {"text": "Rain makes her happy"},
        {"text": "She plays the cello"},
    ]


def test_what_is_empty_or_unknown_says_what_to_do(home: Path) -> None:
    assert "newton remember" in ok(typed(home, "list"))
    remember(home, "The kettle is blue")
    assert "--state all" in ok(typed(home, "list", "--subject", "Nobody"))
    refused = typed(home, "list", "--state", "gone")
    assert refused.returncode and "The states are: current, past" in refused.stderr
    assert "--json" in typed(home, "list", "--field", "text").stderr


def test_an_edit_is_printed_and_found_in_the_history(home: Path) -> None:
    remember(home, "The nut allergy is serious", subject="Ana")
    memory = str(listed(home, "--text", "allergy")[0]["memory_id"])
    said = ok(typed(home, "edit", memory[-8:], "--importance", "9", "--core", "--subject", "Ben"))
    assert said.startswith(f"Edited {memory[-8:]}: importance 9, subject Ben, core yes (state CORE).")
    assert "nothing changed" in ok(typed(home, "edit", memory, "--importance", "9"))
    history = ok(typed(home, "history", memory))
    assert "importance: unset → 9  (by the user, cli)" in history
    assert "subject: Ana → Ben" in history
    assert "Nothing to edit" in typed(home, "edit", memory).stderr
    assert "--importance" in typed(home, "edit", memory, "--importance", "11").stderr


def test_many_are_forgotten_only_with_the_code_of_the_preview(home: Path) -> None:
    remember(home, "She plays the cello", "Rain makes her happy", subject="Mira")
    preview = ok(typed(home, "bulk", "forget", "--subject", "Mira"))
    assert preview.startswith("2 memories: 2 of kind fact") and len(listed(home)) == 2
    code = preview.partition("--confirm ")[2].split()[0]
    remember(home, "Her brother builds boats", subject="Mira")
    assert "differ from the preview" in typed(home, "bulk", "forget", "--subject", "Mira", "--confirm", code).stderr
    assert len(listed(home)) == 3
    code = json.loads(ok(typed(home, "bulk", "forget", "--subject", "Mira", "--json")))["token"]
    assert ok(typed(home, "bulk", "forget", "--subject", "Mira", "--confirm", code)) == "Forgotten: 3 memories.\n"
    assert listed(home) == []
    assert "filter is empty" in typed(home, "bulk", "retract").stderr


def test_a_document_is_listed_shown_and_deleted(home: Path) -> None:
    path = home / "guide.md"
    path.write_text("# Kettles\n\nFill the kettle with water before it is switched on.\n")
    ok(typed(home, "ingest", str(path)))
    assert "Kettles (1 passage)" in ok(typed(home, "documents"))
    assert "Fill the kettle" in ok(typed(home, "documents", "show", str(path)))
    assert "--yes" in typed(home, "documents", "delete", str(path)).stderr
    assert "Deleted Kettles" in ok(typed(home, "documents", "delete", str(path), "--yes"))
    assert ok(typed(home, "documents")).startswith("No documents")
    assert listed(home, "--kind", "passage", "--state", "all") == []


def test_an_agent_is_shown_and_deleted_with_the_code_of_the_preview(home: Path) -> None:
    ok(typed(home, "agents", "create", "work"))
    remember(home, "The kettle is blue", agent="work")
    assert "1  fact       NEW" in ok(typed(home, "agents", "show", "work"))
    preview = ok(typed(home, "agents", "delete", "work"))
    code = preview.partition("--confirm ")[2].split("`")[0]
    assert "work" in ok(typed(home, "agents"))
    ok(typed(home, "agents", "delete", "work", "--confirm", code))
    assert "work" not in ok(typed(home, "agents"))
    assert "cannot be deleted" in typed(home, "agents", "delete", "default", "--confirm", "x").stderr
