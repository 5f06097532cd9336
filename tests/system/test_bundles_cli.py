"""Contexts after the fact, as a person asks about them at the command line."""

import json
import re
from pathlib import Path

import pytest

from tests.system.typed import Done, ok, typed

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
