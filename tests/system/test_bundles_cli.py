"""Contexts after the fact, as a person asks about them at the command line."""

import json
from pathlib import Path

from tests.system.typed import Done, ok, typed

FERRY = "The ferry is called Artemis"
QUESTION = "What is the ferry called?"


class Agent:
    """A mind that knows two things and was asked once."""

    def __init__(self, home: Path, name: str) -> None:
        self._home, self._name = home, name
        self.does("remember", FERRY)
        self.does("remember", "The ferry to Samos leaves at nine")
        self.does("context", QUESTION, "--budget", "300")

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
    assert "similarity 1.000 × " in one and "NEW · on the word of the user" in one
    plain = json.loads(agent.does("why", "latest", "1", "--json"))
    assert plain["text"] == FERRY and plain["number"] == 1 and plain["contributions"]["similarity"] > 0
    assert agent.types("why", "latest", "zebra").returncode == 2


def test_a_context_is_made_once_more_and_compared(home: Path) -> None:
    agent = Agent(home, "again")
    assert agent.does("replay") == "identical\n"
    agent.does("context", QUESTION, "--budget", "18")
    small, large = [one["bundle_id"] for one in json.loads(agent.does("bundles", "--json"))]
    assert f"only in {large[-8:]}" in agent.does("diff", small, large)
    assert agent.does("diff", small[-8:], small) == "They are the same.\n"
    listed = agent.does("bundles", "--limit", "1")
    assert listed.startswith(small[-8:]) and listed.endswith(f"{QUESTION}\n")
    replayed = json.loads(agent.does("replay", large, "--json"))
    assert (replayed["identical"], replayed["differences"], replayed["since"]) == (True, [], [])


def test_a_context_of_the_past_knows_only_what_was_known(home: Path) -> None:
    agent = Agent(home, "past")
    assert "Artemis" not in agent.does("context", QUESTION, "--as-of", "2020-01-01", "--budget", "300")
    assert "as of 2020-01-01 00:00" in agent.does("why")
    future = agent.types("context", QUESTION, "--as-of", "2999-01-01")
    assert future.returncode == 2 and "has not been yet" in future.stderr
    for words in (["bundles", "--limit", "0"], ["why", "xyz"], ["replay", "ffffffffff"]):
        assert agent.types(*words).returncode == 2
