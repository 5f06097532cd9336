"""The stack of tasks as a person types it."""

import json
from pathlib import Path

import pytest

from tests.system.typed import create_agents, ok, typed


@pytest.fixture(scope="module")
def home(home: Path) -> Path:
    ok(typed(home, "tasks", "push", "Begin", "--session", "first"))
    return home


@pytest.mark.slow
def test_a_stack_is_worked_on_and_drawn(home: Path) -> None:
    # S001-35, S001-36, S001-41
    ok(typed(home, "tasks", "push", "Ship the release", "--session", "plan"))
    made = ok(typed(home, "tasks", "push", "Make it fast"))
    assert made == "Task 2 of plan (level 2): Make it fast\n", "where it went though no session was named"
    ok(typed(home, "tasks", "push", "Cache it"))
    replanned = ok(typed(home, "tasks", "fail", "cold each morning", "--replacement-goal", "Add an index"))
    assert replanned.splitlines()[-1] == "      4. Add an index  ← current"
    ok(typed(home, "tasks", "pop", "12 ms now"))
    ok(typed(home, "tasks", "push", "Ask Mira"))
    ok(typed(home, "tasks", "block", "she is away"))
    assert ok(typed(home, "tasks", "--session", "plan")).splitlines() == [
        "▸ 1. Ship the release",
        "   ▸ 2. Make it fast  ← current",
        "      ✗ 3. Cache it",
        "           cold each morning",
        "      ✓ 4. Add an index (replaces 3)",
        "           12 ms now",
        "      ‖ 5. Ask Mira",
        "           she is away",
    ]
    resumed = ok(typed(home, "tasks", "resume", "5"))
    assert resumed == ok(typed(home, "tasks", "path"))
    assert resumed.splitlines() == ["1. Ship the release", "   2. Make it fast", "      5. Ask Mira  ← current"]
    told = json.loads(ok(typed(home, "tasks", "--json")))["items"]
    assert [(task["number"], task["status"], task["is_current"]) for task in told][-1] == (5, "active", True)
    assert told[3]["replaces_task_id"] == told[2]["task_id"] and told[3]["note"] == "12 ms now"
    assert "12 ms now" in ok(typed(home, "recall", "Add an index"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pop"], "RESULT"),
        (["push", " "], "goal: The text is empty"),
        (["pop", "done", "--agent", "nobody"], "There is no session yet"),
        (["resume", "77"], "The session has no task 77"),
        (["path", "--session", "nowhere"], "There is no session 'nowhere'"),
        (["push", "x" * 1_001], "the maximum is 1,000"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_remedy(home: Path, words: list[str], said: str) -> None:
    create_agents(home, "nobody")
    done = typed(home, "tasks", *words)
    assert done.returncode == 2
    assert said in done.stderr
