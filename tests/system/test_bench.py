"""The benchmarks as a person runs them, on data so small that the figures can be counted by hand."""

import asyncio
import json
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.system.typed import measured

LONG = " ".join(f"Step {n}: water the plant number {n} well." for n in range(40))


def message(ref: str, content: str, role: str = "user") -> dict[str, Any]:
    return {
        "type": "message", "session": "s1", "ref": ref, "role": role, "content": content, "at": "2026-03-01T09:00:00Z",
    }  # fmt: skip


def question(name: str, text: str, kind: str, *gold: str) -> dict[str, Any]:
    return {"id": name, "text": text, "type": kind, "gold": gold}


def write(folder: Path, name: str, messages: list[dict[str, Any]], questions: list[dict[str, Any]]) -> None:
    (folder / f"{name}.ndjson").write_text("".join(f"{json.dumps(given)}\n" for given in messages))
    (folder / f"{name}.queries.jsonl").write_text("".join(f"{json.dumps(given)}\n" for given in questions))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a tool says never enters a context, and the long message only as a summary."""
    data = tmp_path / "data"
    data.mkdir()
    zurich = [message("m1", "I moved to Zurich in May."), message("m2", "The thermometer says 21 degrees.", "tool")]
    asked = [
        question("q1", "Where did I move?", "where", "m1"),
        question("q2", "Where is it how warm?", "where", "m1", "m2"),
        question("q3", "What does the thermometer say?", "what", "m2"),
    ]
    write(data, "zurich", zurich, asked)
    write(
        data,
        "garden",
        [message("m1", LONG, "assistant"), message("m2", "My garden is small.")],
        [question("q1", "How do I water the plants?", "what", "m1")],
    )
    return data


def test_recall_measures_what_can_be_counted_by_hand(folder: Path, tmp_path: Path, server: str) -> None:
    done = measured(tmp_path, "recall", str(folder), "--budget", "1", "--budget", "2000", "--json", DATABASE_URL=server)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    receipt = answer["receipt"]
    tokens = answer["budgets"]["2000"].pop("tokens_mean")
    assert answer["budgets"] == {
        "1": {"evidence": 0.0, "over_budget": 0, "miscounted": 0, "tokens_mean": 0.0},
        "2000": {"evidence": 0.625, "over_budget": 0, "miscounted": 0},  # (1 + 1/2 + 0 + 1) / 4
    }
    assert 10 < tokens < 300
    assert answer["by_type"] == {"what": {"1": 0.0, "2000": 0.5}, "where": {"1": 0.0, "2000": 0.75}}
    assert (answer["questions"], answer["contexts"]) == (4, 8)
    assert answer["import_to_embed"] == pytest.approx(answer["import_per_s"] / answer["embed_per_s"], abs=2e-3)
    assert 0 < answer["context_ms"]["p50"] <= answer["context_ms"]["p95"]
    assert len(receipt["data_sha256"]) == 64
    assert receipt["settings"]["embedding"].startswith("all-MiniLM-L6-v2/int8")
    assert receipt["settings"]["database"] == "external"
    assert asyncio.run(_scratch_databases(server)) == []


async def _scratch_databases(server: str) -> list[str]:
    connection = await asyncpg.connect(server)
    rows = await connection.fetch("select datname from pg_database where datname like 'newton\\_bench\\_%'")
    await connection.close()
    return [row["datname"] for row in rows]


def test_recall_names_gold_that_is_not_there_and_counts_it_as_missed(folder: Path, tmp_path: Path, server: str) -> None:
    write(folder, "garden", [message("m1", "My garden is small.")], [question("q1", "My garden?", "what", "m1", "m7")])
    words = ("recall", str(folder), "--limit", "1", "--budget", "500")
    done = measured(tmp_path, *words, DATABASE_URL=server, NEWTON_EMBEDDING_PROVIDER="none")
    assert done.returncode == 0, done.stderr
    assert "all questions │ 0.500" in " ".join(done.stdout.split())
    assert "garden q1" in done.stderr


def test_recall_refuses_a_folder_without_questions(tmp_path: Path) -> None:
    done = measured(tmp_path, "recall", str(tmp_path))
    assert done.returncode == 2
    assert "contains no" in done.stderr


def test_told_counts_what_is_understood(tmp_path: Path, server: str) -> None:
    """One case of each kind that is right, and one that cannot be: its file says the contrary of what is so."""
    van, biopsy, graz = "We need new tyres for the van.", "My biopsy was at Saint Vincent.", "I live in Graz."
    cases: dict[str, list[dict[str, Any]]] = {
        "commitment": [{"text": graz, "asserted": ["live in Graz"]}, {"text": graz, "unasserted": ["live in Graz"]}],
        "corrections": [
            {"first": "My aunt Milan lives in Brno.", "correction": "sorry, Milena, not Milan", "old": old, "new": new}
            for old, new in (("Milan", "Milena"), ("Milena", "Milan"))
        ],
        "changes": [
            {"older": graz, "newer": newer, "kind": "announced", "gone": "Graz"}
            for newer in ("I moved to Linz.", "My sister lives in Linz.")
        ],
        "lookalikes": [{"older": graz, "newer": newer} for newer in ("My sister lives in Linz.", "I moved to Linz.")],
        "wills": [
            {"before": [van, biopsy], "will": "Forget what I said about the biopsy.", "gone": [gone], "stays": [stays]}
            for gone, stays in (("Vincent", "tyres"), ("tyres", "van"), ("Saint", "Vincent"))
        ],
        "not_wills": [{"text": "I always forget my keys."}, {"text": f"Off the record: {biopsy}"}],
        "talk": [
            {"statement": graz, "message": text} for text in ("Ha, thanks!", "I have a red car.", "I moved to Linz.")
        ],
        "notes": [{"notes": [graz, "The van takes 5W30 oil."]}, {"notes": [graz, "I live in Linz now."]}],
    }
    for kind, told in cases.items():
        (tmp_path / f"{kind}.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in told))
    done = measured(tmp_path, "told", str(tmp_path), "--json", str(tmp_path / "out.json"), DATABASE_URL=server)
    assert done.returncode == 0, done.stderr
    answer = json.loads((tmp_path / "out.json").read_text())
    assert {name: found["outcomes"] for name, found in answer["figures"][tmp_path.name].items()} == {
        "asserted": {"kept": 1},
        "unasserted": {"kept as fact": 1},
        **{key: {"right": 1, "the old is current": 1} for key in ("corrections", "corrections, fragments")},
        **{key: {"right": 1, "the older is current": 1} for key in ("changes", "changes, announced")},
        "lookalikes": {"both current": 1, "replaced": 1},
        "wills": {"done": 1, "words are left": 1, "other words are lost": 1},
        "not_wills": {"kept": 1, "taken for a will": 1},
        "talk": {"nothing": 1, "became a fact": 1, "changed a fact": 1},
        "notes": {"kept": 3, "replaced": 1},
        "notes, stores": {"no conflict": 2},
    }
    assert any(one["held"] == ["I live in Graz."] for one in answer["misses"])


def test_lives_counts_what_is_known_at_the_end(tmp_path: Path, server: str) -> None:
    said = (
        (0, "Hi, I'm Greta. I live in Graz.", "Nice to meet you, Greta from Graz!"),
        (0, "My son Tom plays the trumpet.", "How nice that Tom plays the trumpet."),
        (1, "My dentist is Dr Vogel.", "Dr Vogel is open late on Mondays."),
        (22, "I moved to Linz.", "Linz it is."),
        (22, "My sister lives in Hull.", "I see, Hull."),
        (22, "As I said, my son Tom plays the trumpet.", "Yes, the trumpet."),
    )
    told = [{"id": f"t{n}", "day": day, "text": text, "reply": reply} for n, (day, text, reply) in enumerate(said)]
    words = {"t0": ["graz"], "t1": ["tom", "trumpet"], "t2": ["vogel"], "t3": ["linz"]}
    life = {
        "name": "Greta",
        "told": told,
        "facts": [{"id": f"of {line}", "from": line, "words": of, "about": "user"} for line, of in words.items()],
        "changed": [
            {"old": "of t0", "by": "t3", "kind": "announced", "gone": ["graz"], "new": ["linz"]},
            {"old": "of t2", "by": "t4", "kind": "plain", "gone": ["vogel"], "new": ["hull"]},
        ],
        "questions": [
            {"day": 42, "ask": "Which town is my home?", "want": ["linz"], "not": ["graz"]},
            {"day": 42, "ask": "Who looks after my teeth?", "want": ["vogel"], "not": []},
            {"day": 42, "ask": "Who looks after my teeth?", "want": ["kranz"], "not": ["vogel"]},
        ],
    }
    (tmp_path / "greta.json").write_text(json.dumps(life))
    done = measured(tmp_path, "lives", str(tmp_path), "--json", str(tmp_path / "out.json"), DATABASE_URL=server)
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "out.json").read_text())["figures"]["greta"]
    found = {name: one["outcomes"] for name, one in figures.items()}
    assert {name: found[name] for name in ("about me", "answers", "changes", "contexts", "name")} == {
        "about me": {"shown": 2},
        "answers": {"shown": 2, "not shown": 1},
        "changes": {"right": 1, "the old is current": 1},
        "contexts": {"not stale": 1, "stale": 1},
        "name": {"shown": 1},
    }
    assert found["facts"]["confirmed"] == 1
    assert sum(found["turns"].values()) == len(said) - 3, "each day begins a session"
    assert found["precision, before"]["relevant"] > 0
    assert found["unchanged facts"].keys() == {"kept"}
    assert 0 < found["tokens"]["restated by the assistant"] < found["tokens"]["other tokens"]


@pytest.mark.slow
def test_context_is_measured_beside_the_bare_searches(tmp_path: Path) -> None:
    done = measured(tmp_path, "context", "--memories", "60", "--rounds", "4", "--vectors", "random", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["memories"].items() >= {"exchange": 60, "episode": 3}.items()
    assert answer["bare_ms"]["stages_p50"].keys() == {"embed", "dense", "lexical"}
    assert answer["ratio"] == pytest.approx(answer["context_ms"]["p50"] / answer["bare_ms"]["p50"], abs=1e-2)
    assert answer["receipt"]["settings"]["database"] == "embedded"
    assert not list(tmp_path.iterdir())


@pytest.mark.slow  # both start a database of their own, and one a daemon
def test_the_daemon_is_measured_at_its_work_and_at_its_door(tmp_path: Path) -> None:
    soaked = measured(
        tmp_path, "soak", *("--minutes", "0.2", "--hours", "0.4", "--json"), NEWTON_EMBEDDING_PROVIDER="none"
    )
    assert json.loads(soaked.stdout)["jobs that missed their last scheduled time"] == [], soaked.stderr
    asked = ("--memories", "200", "--rounds", "2", "--rate", "10", "--seconds", "2", "--json")
    served = measured(tmp_path, "http", *asked)
    assert json.loads(served.stdout)["load"]["failed"] == {}, served.stderr
