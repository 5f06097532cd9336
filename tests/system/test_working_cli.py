"""Working memory and profiles as a person types them."""

import json
from pathlib import Path

import pytest

from tests.system.typed import create_agents, ok, typed


@pytest.fixture(scope="module", autouse=True)
def early(home: Path) -> None:
    ok(typed(home, "ask", "Which ferry?", "--agent", "early"))


def test_what_is_at_hand_can_be_seen_and_explained(home: Path) -> None:
    # S000-11, S000-12, S000-25
    ok(typed(home, "remember", "The ferry is called Artemis", "--importance", "9"))
    ok(typed(home, "ask", "Which ferry?", "--session", "quay"))
    important = typed(home, "working-memory", "--session", "quay", "--profile", "important")
    assert ok(important).split("\n\n")[0] == "- The ferry is called Artemis"
    assert "important: 2 of 2 items" in important.stdout and "of 128,000 tokens" in important.stdout
    few = ("--profile", "recent", "--max-tokens", "12", "--why", "--json")
    recent = json.loads(ok(typed(home, "working-memory", *few)))
    assert recent["tokens"] <= recent["limit"] == 12
    assert len(recent["items"]) == len(recent["omitted"]) == recent["item_count"] == recent["omitted_count"] == 1
    why = ok(typed(home, "working-memory", "--why", "--decay-hours", "0.5"))
    assert "selected, as summary (fits): recency 0." in why and " × importance 0.9\n" in why
    stats = ok(typed(home, "working-memory", "stats"))
    assert stats.startswith("2 items, ") and "important   1 context, 2 items, mean age 0.0" in stats


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["working-memory", "--agent", "early", "--profile", "importent"], "Did you mean 'important'?"),  # S000-7
        (["working-memory", "--agent", "early", "--decay-hours", "0"], "decay_hours: Input should be greater than 0"),
        (["working-memory", "--session", "nowhere"], "There is no session 'nowhere'"),
        (["working-memory", "--agent", "nobody"], "No session has a working memory"),
        (["profiles", "show", "newtn"], "Did you mean 'newton'?"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_remedy(home: Path, words: list[str], said: str) -> None:
    create_agents(home, "nobody")
    done = typed(home, *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_profiles_are_listed_and_shown(home: Path) -> None:
    listed = ok(typed(home, "profiles"))
    assert listed == ok(typed(home, "profiles", "list"))
    assert "balanced    Importance times recency" in listed
    assert "0.5 similarity + 0.15 type_priority" in ok(typed(home, "profiles", "show", "newton"))
    assert "half-life 16.6 hours" in ok(typed(home, "profiles", "show", "coding"))
    assert "conversation" in ok(typed(home, "profiles", "show", "auto"))
    assert json.loads(ok(typed(home, "profiles", "show", "custom", "--json")))["expression"].startswith("importance")


def test_a_profile_of_ones_own_scores(home: Path, tmp_path: Path) -> None:
    # S000-F5
    own = "name: mine\ndescription: D.\nexpression: {}\n"
    (tmp_path / "mine.yaml").write_text(own.format("1 - importance"), encoding="utf-8")
    settings = {"NEWTON_PROFILES_DIR": str(tmp_path), "NEWTON_AGENT": "own"}
    ok(typed(home, "remember", "The ferry is called Artemis", "--importance", "9", **settings))
    ok(typed(home, "remember", "The ferry is blue", "--importance", "2", **settings))
    ok(typed(home, "ask", "Which ferry?", **settings))
    worst_first = json.loads(ok(typed(home, "working-memory", "--profile", "mine", "--why", "--json", **settings)))
    assert [item["score"] for item in worst_first["items"]][-1] == pytest.approx(0.1)
    ok(typed(home, "context", "Which ferry?", "--profile", "mine", **settings))
    (tmp_path / "mine.yaml").write_text(own.format("1 - importence"), encoding="utf-8")
    refused = typed(home, "ask", "Which ferry?", **settings)
    assert refused.returncode == 2
    assert "mine.yaml:3: expression is invalid: 'importence' is not a known variable" in refused.stderr
