"""Decisions and guardrails as a person types them, on a real PostgreSQL."""

import asyncio
import csv
import json
from pathlib import Path

import asyncpg
import pytest

from newton.runtime.cli.app import expand_default_command
from tests.system.typed import Done, create_agents, ok, typed
from tests.system.typed import typed as run

ROOT = Path(__file__).parents[2]
DECIDE = ("decide", "Use Redis for the session cache", "--confidence", "0.85", "--reason", "analysis:Reads are many")


@pytest.mark.slow
def test_a_decision_from_its_record_to_its_lesson(home: Path) -> None:
    # S002-20
    more = ("--stakes", "high", "--category", "cache", "--tag", "redis", "--review-due", "2999-01-01", "--json")
    made = json.loads(ok(run(home, *DECIDE, *more)))
    assert (made["is_new"], made["base_rate"]) == (True, {"category": "cache", "reviewed": 0, "success_rate": None})
    assert made["quality_parts"]["reasoned"] == 0.2
    which = made["decision_id"][-8:]
    assert ok(run(home, "think", which, "What if it is cold?")) == "Thought added.\n"
    assert ok(run(home, "decisions", "--due")) == "No matching decision.\n"
    assert "[pending" not in ok(run(home, "decisions"))
    assert ok(run(home, "done", which)) == "The decision is marked as done. Record the outcome with `newton review`.\n"
    assert ok(run(home, "review", which, "success", "--lesson", "warm it up")) == "Reviewed: success.\n"
    assert "success  Use Redis for the session cache\n          lesson: warm it up\n" in ok(run(home, "outcomes"))
    again = run(home, "review", which, "failure")
    assert (again.returncode, "already reviewed: success" in again.stderr) == (2, True)
    shown = ok(run(home, "decisions", "show", which))
    for said in ("What if it is cold?", "Lesson: warm it up", "PENDING: it was done", "Tags: redis"):
        assert said in shown
    (listed,) = json.loads(ok(run(home, "decisions", "--category", "cache", "--json")))["items"]
    assert (listed["outcome"], listed["confidence"], listed["review_method"]) == ("success", 0.85, "hand")
    assert ok(run(home, "decisions", "categories")).split() == ["1", "decision", "1", "reviewed", "cache"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("decide", "something"), "The confidence is missing"),
        (("decide", "something", "--confidence", "1.01"), "less than or equal to 1"),
        (("decide", "something", "--confidence", "nan"), "finite number"),
        (("decide", "something", "--confidence", "0.5", "--reason", "guess:so"), "is not a valid reason"),
        (("decide", "something", "--confidence", "0.5", "--review-due", "2001-01-01"), "not after the decision"),
        (
            ("decide", "x", "--confidence", "0.5", "--reason", "analysis:y", "--supersedes", "ffffffff"),
            "There is no decision ffffffff",
        ),
        (("review", "ffffffff", "success"), "There is no decision ffffffff"),
        (("decisions", "amend", "ffffffff"), "There is no decision ffffffff"),
        (("decisions", "--category", "half \udcff"), "surrogate"),
        (("guard", "check", "x", "--confidence", "0.5", "--category", "half \udcff"), "surrogate"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_recorded(home: Path, words: tuple[str, ...], said: str) -> None:
    before = ok(run(home, "decisions", "--json"))
    done = run(home, *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert ok(run(home, "decisions", "--json")) == before


def test_a_ledger_that_somebody_touched_is_reported_and_an_erased_one_is_whole(home: Path, behind: str) -> None:
    agent = ("--agent", "watched")
    first, second = (json.loads(ok(run(home, *DECIDE, "--json", *agent)))["decision_id"] for _ in range(2))
    assert (
        ok(run(home, "decisions", "erase", first, "--reason", "asked for", "--yes", *agent))
        == "Text of the decision erased.\n"
    )
    assert "the decision log is unchanged (3 records)" in run(home, "doctor", "--verify", *agent).stdout
    assert "ledger" not in run(home, "doctor", *agent).stdout

    async def touch() -> None:
        owner = await asyncpg.connect(behind)
        await owner.execute(
            "update brain.decision_records set origin = 'nobody' where record_id = $1::text::uuid", second
        )
        await owner.close()

    asyncio.run(touch())
    done = run(home, "doctor", "--verify", *agent)
    assert done.returncode == 1
    assert "✗ the decision log is broken at record 2" in done.stdout


def test_decisions_alone_lists_them() -> None:
    assert expand_default_command(["decisions"]) == ["decisions", "list"]
    assert expand_default_command(["decisions", "--due"]) == ["decisions", "list", "--due"]
    for words in (["decisions", "show", "x"], ["decisions", "--help"], ["skills"], []):
        assert expand_default_command(words) == words


@pytest.mark.slow
def test_public_forecasts_come_out_as_others_computed_them(home: Path, tmp_path: Path) -> None:
    forecasts = ROOT.parent / "shared" / "bench" / "forecasts"
    if not forecasts.is_dir():
        pytest.skip("the public forecasts are not here")
    golden = json.loads((forecasts / "golden.json").read_text(encoding="utf-8"))["nhl_games"]
    with (forecasts / "nhl_games.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["prob1_outcome"] in ("0", "1")]
    lines = [
        {
            "type": "decision",
            "description": f"{row['team1']} beat {row['team2']}",
            "ref": f"{row['date']} {row['team1']}",
            "confidence": float(row["prob1"]),
            "at": f"{row['date']}T12:00:00Z",
            "outcome": "success" if row["prob1_outcome"] == "1" else "failure",
        }
        for row in rows
    ]
    path = tmp_path / "forecasts.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    assert ok(run(home, "import", str(path), "--agent", "forecaster")).startswith("1401 new, 0 unchanged")
    said = json.loads(ok(run(home, "calibration", "--json", "--agent", "forecaster")))
    figures = [name for name in golden if name != "bins"]
    assert {name: said[name] for name in figures} == pytest.approx({name: golden[name] for name in figures}, abs=1e-9)
    assert [[b[name] for name in ("bin", "n", "observed")] for b in said["bins"]] == [
        [b[name] for name in ("bin", "n", "observed")] for b in golden["bins"]
    ]
    assert (
        "✓ the decision log is unchanged (2,802 records)"
        in run(home, "doctor", "--verify", "--agent", "forecaster").stdout
    )


def test_a_guardrail_stops_a_decision_before_it_is_recorded(home: Path) -> None:
    done = run(home, "decide", "Drop it", "--confidence", "0.3", "--stakes", "high", "--reason", "analysis:unused")
    assert (done.returncode, "unsure-at-high-stakes" in done.stderr) == (2, True)
    assert "Drop it" not in ok(run(home, "decisions"))
    ok(run(home, "agents", "create", "bold"))
    assert ok(run(home, "guard", "retire", "unsure-at-high-stakes", "--agent", "bold"))
    words = ("--confidence", "0.3", "--stakes", "high", "--reason", "analysis:unused", "--agent", "bold")
    assert "Recorded as" in ok(run(home, "decide", "Drop it", *words))


def test_metrics_are_told_as_a_table_and_as_json(home: Path) -> None:
    # S002-22
    ok(run(home, "agents", "create", "newborn"))
    told = ok(run(home, "metrics", "--agent", "newborn"))
    assert "context relevance" in told and "too few" in told
    made = json.loads(ok(run(home, "metrics", "--days", "30", "--json")))
    assert {
        "since",
        "until",
        "turns",
        "metrics",
        "frames",
        "profiles",
        "days",
        "memories",
        "prompt_differences",
    } == set(made)
    refused = run(home, "metrics", "--days", "0")
    assert (refused.returncode, "days: " in refused.stderr) == (2, True)


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
