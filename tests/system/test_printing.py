"""What is kept may hold orders to a terminal: a new title, the clipboard, reversed text. No command passes them on."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.system.typed import Done, ok, typed

ROOT = Path(__file__).parents[2]
ORDERS = "\x1b]0;owned\x07\x1b]52;c;cm0=\x07\x9b31m\u202eevil\x7f[bold]"
SHOWN = r"\x1b]0;owned\x07\x1b]52;c;cm0=\x07\x9b31m\u202eevil\x7f[bold]"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
AGENT = ("--agent", "hostile")


@pytest.fixture(scope="module")
def ids(home: Path) -> Mapping[str, str]:
    """An agent of whom all that may be said holds orders; the ids of a fact, a decision and an entry by name."""
    page = home / "page.md"
    page.write_text(f"# The ferry {ORDERS}\n\nThe ferry sails {ORDERS} at noon.\n", encoding="utf-8")
    reason = (
        "--confidence",
        "0.8",
        "--reason",
        f"analysis:{ORDERS}",
        "--context",
        ORDERS,
    )
    for words in (
        ("remember", f"Ana takes the ferry {ORDERS}", "--subject", "Ana"),
        ("remember", f"The ferry was late {ORDERS}", "--episode", "Sunday"),
        ("ingest", str(page)),
        ("censors", "add", f"push {ORDERS}", "--reason", ORDERS),
        ("decide", f"Take the ferry {ORDERS}", *reason),
        ("guard", "add", "mine", "confidence > 0.1", "--message", ORDERS, "--severity", "warn"),
        ("ask", f"When does the ferry sail {ORDERS}?", "--session", "s"),
        ("tasks", "push", f"Catch the ferry {ORDERS}", "--session", "s"),
        ("context", f"Which ferry {ORDERS}?"),
    ):
        ok(typed(home, *words, *AGENT))
    found = json.loads(ok(typed(home, "recall", "ferry", "--json", "--kind", "fact", *AGENT)))["items"]
    decided = json.loads(ok(typed(home, "decisions", "--json", *AGENT)))["items"]
    return {"FACT": found[0]["memory_id"], "DECISION": decided[0]["decision_id"], "PAGE": str(page)}


def checked(done: "Done | subprocess.CompletedProcess[str]") -> Done:
    for stream in (done.stdout, done.stderr):
        assert not RAW.search(stream), repr(stream)
    return Done(done.returncode, done.stdout, done.stderr)


TELLING = (
    "recall ferry",
    "recall ferry --kind passage",
    "recall ferry --kind episode",
    "context ferry",
    "ask ferry",
    "ask ferry --debug",
    "show FACT",
    "show DECISION",
    "sessions list",
    "sessions log s",
    "sessions view s",
    "tasks --session s",
    "tasks path --session s",
    "decisions",
    "decisions show DECISION",
    "bundles",
    "why",
    "why latest 1",
    "diff",
    "working-memory --session s",
    "working-memory --session s --why",
    "censors list",
    "guard list",
    "guard check ferry --confidence 0.5",
    "decisions preview ferry --confidence 0.5 --reason analysis:cheap",
)
QUIET = (
    "replay",
    "history FACT",
    "entities",
    "identity",
    "identity history",
    "identity proposals",
    "procedures list",
    "censors check push",
    "attributes list",
    "sessions entries s",
    "jobs run lifecycle --dry-run",
    "metrics",
    "erase --subject Ana",
)


@pytest.mark.parametrize("command", TELLING)
def test_a_command_that_shows_what_is_kept_shows_orders_as_text(
    home: Path, ids: Mapping[str, str], command: str
) -> None:
    done = checked(typed(home, *(ids.get(word, word) for word in command.split()), *AGENT))
    assert r"\x1b]" in done.stdout + done.stderr, done


@pytest.mark.parametrize("command", QUIET)
def test_no_other_command_passes_orders_on(home: Path, ids: Mapping[str, str], command: str) -> None:
    checked(typed(home, *(ids.get(word, word) for word in command.split()), *AGENT))


@pytest.mark.parametrize(
    "command", ["recall ferry", "context ferry", "show FACT", "sessions log s", "decisions", "why"]
)
def test_json_says_the_same_without_orders(home: Path, ids: Mapping[str, str], command: str) -> None:
    done = checked(typed(home, *(ids.get(word, word) for word in command.split()), "--json", *AGENT))
    assert json.dumps(ORDERS)[1:-1] in json.dumps(json.loads(done.stdout))


@pytest.mark.parametrize(
    "words",
    [("show", ORDERS), ("nothing" + ORDERS,), ("sessions", "log", ORDERS), ("ingest", ORDERS), ("frames", ORDERS)],
)
def test_a_refusal_shows_orders_as_text(home: Path, words: tuple[str, ...]) -> None:
    for more in ((), ("--json",)):
        assert checked(typed(home, *words, *more)).returncode == 2


def test_marks_of_rich_are_text(home: Path, ids: Mapping[str, str]) -> None:
    assert SHOWN in ok(typed(home, "show", ids["FACT"], *AGENT))


@pytest.mark.slow
def test_a_chat_shows_orders_as_text(home: Path, ids: Mapping[str, str]) -> None:
    said = (
        f"Where is the ferry {ORDERS}?\n/context\n/why 1\n/task\n/remember The quay is wet {ORDERS}\n/nothing{ORDERS}\n"
    )
    own = {k: v for k, v in os.environ.items() if not k.startswith(("NEWTON_", "OPENAI_"))}
    env = {**own, "NEWTON_DATA_DIR": str(home), "NEWTON_EMBEDDING_PROVIDER": "none", "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "newton", "chat", "--session", "s", *AGENT]
    done = subprocess.run(words, input=said, capture_output=True, text=True, timeout=60, check=True, env=env, cwd=home)
    assert SHOWN in checked(done).stdout
    assert r"Unknown command /nothing\x1b]0;owned" in done.stderr
