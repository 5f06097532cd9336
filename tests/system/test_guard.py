"""`newton guard` as a person meets it: on a real PostgreSQL."""

import json
from pathlib import Path

import pytest

from tests.system.typed import Done, create_agents, typed


def guard(home: Path, *words: str, **more: str) -> Done:
    return typed(home, "guard", *words, **more)


def test_a_choice_is_tried_and_told_what_is_wrong_with_it(home: Path) -> None:
    create_agents(home, "tried")
    tried = ("check", "Drop the old table", "--stakes", "high", "--confidence", "0.4", "--agent", "tried")
    blocked = guard(home, *tried, "--reason", "analysis: nobody reads it")
    assert blocked.returncode == 1, blocked.stderr
    assert "BLOCKED unsure-at-high-stakes: Find out more" in blocked.stdout
    assert "WARNED  one-kind-of-reason: Look for a reason of another kind" in blocked.stdout
    assert "passed  no-reason\n" in blocked.stdout
    sure = guard(home, "check", "Buy pens", "--confidence", "0.9", "--reason", "empirical:there are none", "--json")
    assert sure.returncode == 0, sure.stderr
    told = json.loads(sure.stdout)
    assert told["blocked"] is False
    assert {given["verdict"] for given in told["guardrails"]} == {"passed"}


def test_a_person_adds_and_retires_one(home: Path) -> None:
    mine = ("--agent", "mine")
    create_agents(home, "mine", "other")
    added = guard(home, "add", "slow-down", "category == 'money'", "--message", "Sleep on it.", *mine)
    assert (added.returncode, added.stdout) == (0, "Guardrail added.\n"), added.stderr
    spend = ("check", "Buy it", "--confidence", "0.9", "--category", "money", "--reason", "intuition:nice")
    assert "BLOCKED slow-down: Sleep on it." in guard(home, *spend, *mine).stdout
    assert guard(home, *spend, "--agent", "other").returncode == 0
    assert guard(home, "retire", "slow-down", *mine).stdout == "Guardrail disabled.\n"
    assert guard(home, "retire", "no-reason", *mine).stdout == "Guardrail disabled.\n"
    assert guard(home, "check", "Buy it", "--confidence", "0.9", *mine).returncode == 0
    assert "RETIRED no-reason: size(reasons) == 0" in guard(home, "list", *mine).stdout
    assert guard(home, "restore", "no-reason", *mine).stdout == "Guardrail restored.\n"
    listed = json.loads(guard(home, "list", "--json", *mine).stdout)["items"]
    assert [(given["name"], given["is_active"]) for given in listed][2:4] == [
        ("one-kind-of-reason", True),
        ("one-kind-of-reason-when-critical", True),
    ]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["add", "typo", "sakes == 'high'", "--message", "m"], "Did you mean 'stakes'?"),
        (["add", "huge", "1" + "+1" * 50_000, "--message", "m"], "The expression has 100,001 characters."),
        (
            ["add", "number", "confidence", "--message", "m"],
            "The expression returns float; a guardrail must return true or false.",
        ),
        (["add", "zero", "record.open / record.judged > 1", "--message", "m"], "division by zero"),
        (["retire", "no-raeson"], "Did you mean 'no-reason'?"),
        (["restore", "no-raeson"], "Did you mean 'no-reason'?"),
        (["check", "x", "--confidence", "1.5"], "confidence: Input should be less than or equal to 1."),
        (["check", "x", "--confidence", "0.5", "--reason", "analisis:x"], "Did you mean 'analysis'?"),
        (["check", "x", "--confidence", "0.5", "--reason", "because"], "Write KIND:TEXT."),
        (["check", "x"], "requires --confidence"),
    ],
)
def test_bad_words_are_refused_with_a_remedy(home: Path, words: list[str], complaint: str) -> None:
    refused = guard(home, *words)
    assert refused.returncode == 2
    assert complaint in refused.stderr + refused.stdout
    assert "Traceback" not in refused.stderr


def test_a_broken_file_of_ones_own_names_its_line(home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "name: mine\nexpression: nonsense\nseverity: warn\nmessage: m\ndescription: d\n"
    )
    refused = guard(home, "list", NEWTON_GUARDRAILS_DIR=str(tmp_path))
    assert refused.returncode == 2
    assert f"{tmp_path}/mine.yaml:2: expression is invalid: 'nonsense' is not a known variable" in refused.stderr
