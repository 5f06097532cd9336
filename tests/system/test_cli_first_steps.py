"""What a person meets who types commands for the first time: agents, hints, lists, defaults and empty input."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from tests.system.typed import chatted, ok, seen, typed

READING = [
    "recall keys",
    "bundles",
    "why",
    "sessions",
    "metrics",
    "mcp",
    "context keys",
    "entities",
    "decisions",
    "jobs",
    "identity",
    "guard",
    "censors",
    "tokens",
    "calibration",
    "metrics",
    "tokens create laptop",
    "export -",
]


def test_a_mistyped_agent_is_refused_by_what_only_reads(home: Path) -> None:
    ok(typed(home, "remember", "The spare keys are at Noor's", "--agent", "household"))
    for command in READING:
        done = typed(home, *command.split(), "--agent", "houshold")
        assert (done.returncode, done.stdout) == (2, ""), command
        assert "There is no agent 'houshold'" in done.stderr, command
        assert "Did you mean 'household'? The agents are: " in done.stderr, command
    assert "houshold" not in ok(typed(home, "agents"))


def test_an_mcp_client_is_told_why_the_server_does_not_start(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ok(typed(home, "agents", "create", "household"))
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"jsonrpc": "2.0", "id": 7, "method": "initialize"}\n'))
    done = typed(home, "mcp", "--agent", "houshold")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["id"], answer["error"]["data"]["type"]) == (2, 7, "urn:newton:not_found")
    assert "Did you mean 'household'?" in answer["error"]["message"]


def test_the_texts_are_shown_before_they_are_deleted(home: Path) -> None:
    ok(typed(home, "remember", "The bicycle stands in the yard"))
    short_id = ok(typed(home, "recall", "bicycle")).split()[0]
    unknown = typed(home, "forget", "bicycle")
    assert (unknown.returncode, "'bicycle' is not the id" in unknown.stderr) == (2, True)
    asked = typed(home, "forget", short_id)
    assert asked.returncode == 2 and "with --yes to confirm" in asked.stderr
    assert f"{short_id} fact: The bicycle stands in the yard" in asked.stderr
    assert "bicycle" in ok(typed(home, "recall", "bicycle"))
    assert typed(home, "forget", short_id, "--yes").stderr == ""


def test_what_writes_says_that_it_creates_an_agent(home: Path) -> None:
    first = typed(home, "remember", "The boiler was serviced in May", "--agent", "cellar")
    again = typed(home, "remember", "The filter is changed each year", "--agent", "cellar")
    assert "`newton agents delete cellar` deletes it" in first.stderr
    assert ("Created agent cellar.\n" in first.stderr, "Created" in again.stderr) == (True, False)
    assert ok(typed(home, "recall", "boiler")) and "Created" not in typed(home, "recall", "boiler").stderr


def test_an_agent_is_created_once_and_under_a_valid_name(home: Path) -> None:
    assert "Created the agent garden." in ok(typed(home, "agents", "create", "garden"))
    assert ok(typed(home, "agents", "create", "garden")) == "The agent garden exists already; nothing changed.\n"
    for name in ("bad name/", "../up", "-x", "a b"):
        done = typed(home, "agents", "create", "--", name)
        assert done.returncode == 2 and "Use letters, digits" in done.stderr
    assert json.loads(ok(typed(home, "agents", "create", "Łukasz.home-2", "--json")))["is_new"] is True


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("sessions log nope", "`newton sessions` lists"),
        ("working-memory --session nope", "`newton sessions` lists"),
        ("review deadbeef success", "`newton decisions` shows the ids"),
        ("review nope success", "`newton decisions` shows the ids"),
        ("censors retire deadbeef", "`newton censors` shows the ids"),
        ("show deadbeef", "`newton recall` shows the ids"),
        ("censors add gossip", "requires --reason."),
        ("guard add quiet true", "requires --message."),
        ("guard check Sell", "requires --confidence."),
        ("remember", "requires CONTENT."),
    ],
)
def test_an_error_names_the_command_or_option_that_helps(home: Path, command: str, hint: str) -> None:
    done = typed(home, *command.split())
    assert (done.returncode, hint in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("words", [[""], ["  "], [], ["", "--confidence", "0.8"], ["Sell the car"]])
def test_a_decision_without_its_parts_is_refused_without_a_terminal(
    home: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    done = typed(home, "decide", *words)
    missing = "confidence" if words == ["Sell the car"] else "description"
    assert (done.returncode, f"The {missing} is missing." in done.stderr) == (2, True)


@pytest.mark.parametrize("lines", [b"", b"\n\n", b"/help\n/quit\n", b"/switch later\n"])
def test_a_chat_in_which_nothing_is_said_stores_no_session(home: Path, lines: bytes) -> None:
    ok(chatted(home, lines, "--agent", "silent", "--session", "evening"))
    assert json.loads(ok(typed(home, "sessions", "--agent", "silent", "--json")))["items"] == []


def test_a_chat_can_begin_with_a_command_of_its_session(home: Path) -> None:
    text = "/tasks push Paint the fence\nWhich colour?\n/branch other\n"
    done = chatted(home, text, "--session", "fence")
    assert "There is no session" not in done.stdout + done.stderr
    assert {one["session"] for one in json.loads(ok(typed(home, "sessions", "--json")))["items"]} >= {"fence", "other"}


def test_a_search_without_a_match_says_so(home: Path) -> None:
    mine = ("--agent", "family")
    for fact in ("My daughter is allergic to peanuts", "We moved to Lisbon in 2019", "Grandma's birthday is in June"):
        seen(home, "remember", fact, *mine)
    note = "Nothing matches well; these are the nearest memories.\n"
    for query, has_match in {
        "quantum physics": False,
        "xylophone": False,
        "food my kid must avoid": True,
        "peanuts": True,
        "Which city did we move to?": True,
    }.items():
        shown = seen(home, "recall", query, "--kind", "fact", *mine)
        assert shown.startswith(note) is not has_match, (query, shown)
        found = json.loads(seen(home, "recall", query, "--kind", "fact", "--json", *mine))
        assert found["has_match"] is has_match and found["items"]


@pytest.mark.parametrize("group", ["agents", "attributes", "censors", "decisions", "guard", "jobs", "procedures"])
def test_a_group_alone_lists(home: Path, group: str) -> None:
    times = re.compile(r"next [-0-9: ]+")  # the minute may change between the two
    listed, alone = ok(typed(home, group, "list")), ok(typed(home, group))
    assert times.sub("next ", alone) == times.sub("next ", listed)
    assert "Usage: newton" in ok(typed(home, group, "--help"))


@pytest.mark.parametrize("command", ["remember", "recall", "guard check", "decide", "context", "guard add"])
def test_help_shows_no_default_that_says_nothing(home: Path, command: str) -> None:
    text = re.sub(r"[\s│]+", " ", ok(typed(home, *command.split(), "--help")))
    assert not re.search(r'\[default: (False|None|""|\(\))\]', text)
    assert command != "guard add" or "[default: block]" in text


@pytest.mark.slow
def test_doctor_shows_only_settings_in_use(home: Path) -> None:
    def names(**settings: str) -> set[str]:
        return set(json.loads(typed(home, "doctor", "--json", **settings).stdout)["settings"])

    others = {"embedding_model", "embedding_dimensions", "openai_model"}
    assert names(NEWTON_EMBEDDING_PROVIDER="local") & others == set()
    dead = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "NEWTON_LLM_TIMEOUT": "1"}
    assert names(NEWTON_EMBEDDING_PROVIDER="openai", **dead) >= others


def test_a_time_without_memories_is_shown_to_the_minute(home: Path) -> None:
    done = typed(home, "context", "What is planned?", "--since", "2090-03-01", "--until", "2090-03-02T09:30:00Z")
    assert "since 2090-03-01 00:00; until 2090-03-02 09:30)" in done.stderr


def test_the_quality_of_a_decision_names_what_is_missing(home: Path) -> None:
    said = ok(
        typed(
            home, "decide", "Sell the car", "--confidence", "0.8", "--reason", "analysis:we cycle", "--context", "May"
        )
    )
    missing = "Quality 0.45. Missing: reasons of two kinds, two alternatives, expected outcome, review date."
    assert missing in said
    (decision,) = re.findall(r"Recorded as (\w+)\.", said)
    assert missing in ok(typed(home, "decisions", "show", decision))
