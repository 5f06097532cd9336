"""Lists of memories, and contexts after the fact, as a person asks for them at the command line."""

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


FERRY = "The ferry is called Artemis"
QUESTION = "What is the ferry called?"


class Agent:
    """A mind that knows two things and was asked once."""

    def __init__(self, home: Path, name: str) -> None:
        self._home, self._name = home, name
        self.does("remember", FERRY)
        self.does("remember", "The ferry to Samos leaves at nine")
        self.does("context", QUESTION, "--max-tokens", "300")

    def types(self, *words: str) -> Done:
        return typed(self._home, *words, "--agent", self._name)

    def does(self, *words: str) -> str:
        return ok(self.types(*words))


def test_a_context_is_explained_in_another_process(home: Path) -> None:
    agent = Agent(home, "why")
    whole = agent.does("why")
    for part in (f"input: {QUESTION}", "frame question (", "\nprofile ", "    1. "):
        assert part in whole
    one = agent.does("why", "latest", "artemis")
    assert one.startswith(f"{FERRY}\nfact ")
    assert "similarity 1.000 × " in one and "\nNEW" in one and "trust user" in one
    plain = json.loads(agent.does("why", "latest", "1", "--json"))
    assert plain["text"] == FERRY and plain["number"] == 1 and plain["contributions"]["similarity"] > 0
    assert agent.types("why", "latest", "zebra").returncode == 2
    for none in ("0", "-1", "2026"):
        refused = agent.types("why", "latest", none)
        assert refused.returncode == 2 and "Give a number from 1 to 2, an id" in refused.stderr, none
    several = agent.types("why", "latest", "ferry")
    assert several.returncode == 2 and "2 memories of this context match 'ferry'" in several.stderr
    assert f"  {FERRY}" in several.stderr and "  The ferry to Samos leaves at nine" in several.stderr


@pytest.mark.slow
def test_a_context_is_made_once_more_and_compared(home: Path) -> None:
    agent = Agent(home, "again")
    told = rf'\w{{8}} of [\d-]+ [\d:]+, \d+ tokens, 2 items, "{re.escape(QUESTION)}": identical\n'
    assert re.fullmatch(told, agent.does("replay"))
    assert "no context before the latest" in agent.types("diff").stderr
    agent.does("context", QUESTION, "--max-tokens", "18")
    small, large = [one["bundle_id"] for one in json.loads(agent.does("bundles", "--json"))["items"]]
    assert f"only in {large[-8:]}" in agent.does("diff", small, large)
    assert agent.does("diff", small[-8:], small) == "The contexts are identical.\n"
    assert agent.does("diff") == agent.does("diff", large) == agent.does("diff", large, small)
    listed = agent.does("bundles", "--limit", "1")
    assert listed.startswith(small[-8:]) and listed.endswith(f"{QUESTION}\n")
    replayed = json.loads(agent.does("replay", large, "--json"))
    assert (replayed["identical"], replayed["differences"], replayed["changes_since"]) == (True, [], [])


def test_a_filter_that_left_nothing_is_said(home: Path) -> None:
    # S001-31
    agent = Agent(home, "filters")
    asked = ("context", QUESTION, "--kind", "episode")
    assert "(No memory matches these filters: kinds episode)" in agent.types(*asked).stderr
    assert json.loads(agent.does(*asked, "--json"))["left_nothing"] == {"kinds": ["episode"]}
    nothing = agent.does("recall", QUESTION, "--kind", "episode")
    assert nothing.startswith("Nothing known answers this. ") and "`--min-relevance 0`" in nothing


def test_evidence_is_told_as_it_is_and_not_as_a_part_of_the_best(home: Path) -> None:
    agent = Agent(home, "evidence")
    first = json.loads(agent.does("recall", QUESTION, "--json"))["items"][0]
    assert first["relevance"] == 1.0 != first["evidence"]
    assert "     -  fact " in agent.does("recall", QUESTION).splitlines()[0], "two texts are too few to judge answers"
    best = json.loads(agent.does("context", QUESTION, "--max-tokens", "300", "--json"))["items"][0]
    assert best["features"]["similarity"] == 1.0 != best["evidence"]
    assert f"best evidence {best['evidence']:.2f}" in agent.types("context", QUESTION, "--max-tokens", "300").stderr


def test_a_context_of_the_past_knows_only_what_was_known(home: Path) -> None:
    agent = Agent(home, "past")
    assert "Artemis" not in agent.does("context", QUESTION, "--as-of", "2020-01-01", "--max-tokens", "300")
    assert "as of 2020-01-01 00:00" in agent.does("why")
    future = agent.types("context", QUESTION, "--as-of", "2999-01-01")
    assert future.returncode == 2 and "is in the future" in future.stderr
    for words in (["bundles", "--limit", "0"], ["why", "xyz"], ["replay", "ffffffffff"]):
        assert agent.types(*words).returncode == 2
