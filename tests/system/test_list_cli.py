"""`newton list`, `edit`, `bulk`, `documents` and `agents`: what a person sees, and what needs a confirmation."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from newton.ids import new_id
from tests.system.typed import Done, chatted, create_agents, ok, typed

Run = Callable[..., Done]


@pytest.fixture
def run(home: Path) -> Run:
    """`newton …` for an agent of this test's own."""
    name = f"a{new_id().hex}"
    create_agents(home, name)
    return lambda *words: typed(home, *words, "--agent", name)


def remember(run: Run, *contents: str, **about: str) -> None:
    flags = [word for name, value in about.items() for word in (f"--{name}", value)]
    for content in contents:
        ok(run("remember", content, *flags))


def listed(run: Run, *words: str) -> list[dict[str, object]]:
    return json.loads(ok(run("list", *words, "--json")))["items"]


def test_a_table_shows_state_importance_and_subject_and_pages_follow(run: Run) -> None:
    remember(run, "She plays the cello", "Rain makes her happy", subject="Mira")
    remember(run, "The kettle is blue", importance="9")
    lines = ok(run("list", "--sort", "importance")).splitlines()
    assert lines[0] == "3 memories, most important first  (* importance set by a person)"
    assert lines[1].split() == ["id", "kind", "state", "occurred", "importance", "text"]
    assert re.fullmatch(r"[0-9a-f]{8}  fact  NEW    \d{4}-\d\d-\d\d  9\*  +The kettle is blue", lines[2])
    assert any(line.endswith("[Mira] She plays the cello") for line in lines)
    first = run("list", "--limit", "2")
    cursor = first.stderr.split()[-1]
    assert len(ok(first).splitlines()) == 4
    second = ok(run("list", "--limit", "2", "--cursor", cursor)).splitlines()
    assert len(second) == 3 and second[0] == "newest first"
    assert listed(run, "--subject", "Mira", "--field", "text") == [
        {"text": "Rain makes her happy"},
        {"text": "She plays the cello"},
    ]


def test_what_is_empty_or_unknown_says_what_to_do(run: Run) -> None:
    assert "newton remember" in ok(run("list"))
    remember(run, "The kettle is blue")
    assert "--state all" in ok(run("list", "--subject", "Nobody"))
    refused = run("list", "--state", "gone")
    assert refused.returncode and "The states are: current, past" in refused.stderr


def test_an_edit_is_printed_and_found_in_the_history(run: Run) -> None:
    remember(run, "The nut allergy is serious", subject="Ana")
    memory = str(listed(run, "--text", "allergy")[0]["memory_id"])
    said = ok(run("edit", memory[-8:], "--importance", "9", "--core", "--subject", "Ben"))
    assert said.startswith(f"Edited {memory[-8:]}: importance 9, subject, core yes (state CORE).")
    assert "nothing changed" in ok(run("edit", memory, "--importance", "9"))
    history = ok(run("history", memory))
    assert "importance: unset → 9  (by the user, cli)" in history
    assert "subject: Ana → Ben" in history
    assert "Nothing to change is given" in run("edit", memory).stderr
    assert "importance" in run("edit", memory, "--importance", "11").stderr


def test_many_are_forgotten_only_with_the_code_of_the_preview(run: Run) -> None:
    remember(run, "She plays the cello", "Rain makes her happy", subject="Mira")
    assert run("bulk", "forget", "--subject", "Mira").stderr.startswith("2 memories: 2 of kind fact")
    code = json.loads(ok(run("bulk", "forget", "--subject", "Mira", "--json")))["token"]
    assert len(listed(run)) == 2
    remember(run, "Her brother builds boats", subject="Mira")
    assert "no longer those of the preview" in run("bulk", "forget", "--subject", "Mira", "--confirm", code).stderr
    assert len(listed(run)) == 3
    code = json.loads(ok(run("bulk", "forget", "--subject", "Mira", "--json")))["token"]
    assert ok(run("bulk", "forget", "--subject", "Mira", "--confirm", code)) == "Forgotten: 3 memories.\n"
    assert listed(run) == []
    assert "filter is empty" in run("bulk", "retract").stderr


def test_a_document_is_listed_shown_and_deleted(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "guide.md"
    path.write_text("# Kettles\n\nFill the kettle with water before it is switched on.\n")
    ok(run("ingest", str(path)))
    assert "Kettles (1 passage, of 20" in ok(run("documents"))
    assert "Fill the kettle" in ok(run("documents", "show", str(path)))
    assert "--yes" in run("documents", "delete", str(path)).stderr
    assert "with 1 memory" in ok(run("documents", "delete", str(path), "--yes"))
    assert ok(run("documents")).startswith("No documents")
    assert listed(run, "--kind", "passage", "--state", "all") == []


def test_a_passage_that_its_document_no_longer_has_is_not_recalled(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "ferry.md"
    for hour in ("nine", "ten"):
        path.write_text(f"# Ferry\n\nThe ferry to Hydra leaves at {hour}.\n")
        ok(run("ingest", str(path)))
    found = ok(run("recall", "ferry to Hydra", "--min-relevance", "0"))
    assert "at ten" in found and "at nine" not in found


def test_slash_commands_print_lists_as_the_commands_do(home: Path, tmp_path: Path) -> None:
    create_agents(home, name := f"a{new_id().hex}")
    path = tmp_path / "mill.md"
    path.write_text("# Mills\n\nThe mill grinds on Mondays.\n")
    ok(typed(home, "ingest", str(path), "--agent", name))
    lines = (
        "/list-memories --text mill\n/documents\n/session-stats\n/recall --min-relevance 0 mill\n/recall zz\n/conflicts"
    )
    shown = ok(chatted(home, f"Hello.\n{lines}", "--agent", name))
    assert ok(typed(home, "documents", "--agent", name)) in shown
    assert re.search(r"passage +ACTIVE +\d{4}-\d\d-\d\d .*The mill grinds", shown) and "importance  text" in shown
    assert "A model receives" in shown and "No facts contradict each other." in shown
    assert "The mill grinds on Mondays." in shown and "memory_id" not in shown and "min_relevance" not in shown


def test_an_agent_is_shown_and_deleted_with_the_code_of_the_preview(home: Path) -> None:
    ok(typed(home, "agents", "create", "work"))
    ok(typed(home, "remember", "The kettle is blue", "--agent", "work"))
    assert "1  fact       NEW" in ok(typed(home, "agents", "show", "work"))
    preview = ok(typed(home, "agents", "delete", "work"))
    code = preview.partition("--confirm ")[2].split("`")[0]
    assert "work" in ok(typed(home, "agents"))
    ok(typed(home, "agents", "delete", "work", "--confirm", code))
    assert "work" not in ok(typed(home, "agents"))
    assert "cannot be deleted" in typed(home, "agents", "delete", "default", "--confirm", "x").stderr
