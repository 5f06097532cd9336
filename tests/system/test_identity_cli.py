"""`newton identity` as a person meets it: on a real PostgreSQL."""

import json
import re
from pathlib import Path

from tests.system.typed import Done, create_agents, ok, typed


def identity(home: Path, *words: str) -> Done:
    return typed(home, "identity", *words)


def ids(listed: str) -> list[str]:
    return re.findall(r"^ *([0-9a-f]{8})  ", listed, flags=re.MULTILINE)


def test_a_person_writes_it_looks_at_it_and_takes_it_back(home: Path) -> None:
    mine = ("--agent", "writer")
    create_agents(home, "writer")
    assert "The identity is empty." in ok(identity(home, *mine))
    assert ok(identity(home, "add", "preference", "Call me Max", "--reason", "it is shorter", *mine)) == "Line added.\n"
    ok(identity(home, "add", "boundary", "Never give legal advice", *mine))
    assert "has this line already" in ok(identity(home, "add", "boundary", "never give legal advice!", *mine))
    context = typed(home, "context", "What may I call you?", *mine)
    assert ok(context).startswith("## Identity\n- Never give legal advice\n- The user says: Call me Max\n## Current")
    boundary, _ = ids(ok(identity(home, *mine)))
    assert ok(identity(home, "change", boundary, "No legal advice", *mine)) == "Line changed.\n"
    ok(identity(home, "remove", ids(ok(identity(home, *mine)))[0], *mine))
    assert ok(identity(home, "rollback", "2", *mine)) == "Restored version 2.\n"
    told = ok(identity(home, "history", *mine))
    assert re.search(r"1  \S+ \S+  added \(user, cli\): it is shorter\n      \+ preference: Call me Max\n", told)
    assert re.search(r"5  \S+ \S+  rolled back to 2 \(user, cli\)\n      \+ boundary: Never give legal advice\n", told)
    shown = json.loads(ok(identity(home, "--json", *mine)))
    assert (shown["version"], [line["text"] for line in shown["lines"]]) == (
        5,
        ["Never give legal advice", "Call me Max"],
    )


def test_what_has_no_room_is_told_to_the_person_and_not_to_the_model(home: Path) -> None:
    mine = ("--agent", "long")
    for n in range(4):
        ok(identity(home, "add", "protocol", f"Protocol {n}: look at each box twice before you go on", *mine))
    context = typed(home, "context", "What now?", "--max-tokens", "50", *mine)
    assert ok(context).startswith("## Identity\n- Protocol 0: look at each box twice before you go on\n- Protocol 1")
    assert "Protocol 3" not in context.stdout
    left = re.search(r"\((\d) lines? of the identity", context.stderr)
    assert left and int(left[1]) == 4 - context.stdout.count("Protocol")
    assert f"{left[1]} more identity lines are not shown" in context.stdout, "the model knows that there are more"
    assert "`newton identity --max-tokens 50` shows which" in context.stderr
    assert "(does not fit)" not in ok(identity(home, *mine))


def test_what_somebody_wants_always_is_in_force_at_once_with_its_day(home: Path) -> None:
    mine = ("--agent", "asked")
    asked = typed(home, "ask", "From now on answer in French.", *mine)
    taken_back = r"\(In force: From now on answer in French\..* `newton identity (\w+) (\w+)` takes it back"
    first = re.search(taken_back, asked.stderr)
    assert first and first[1] == "remove"
    listed = ok(identity(home, *mine))
    assert re.search(r"From now on answer in French  \(said \d{4}-\d\d-\d\d\)\n", listed)
    assert re.search(
        r"- Rule of the user \(\d{4}-\d\d-\d\d\): From now on answer in French\n",
        ok(typed(home, "context", "Bonjour", *mine)),
    )
    changed = typed(home, "ask", "From now on do not answer in French.", *mine)
    command = re.search(r"`newton identity (\w+) (\w+)` takes it back", changed.stderr)
    assert command and command[1] == "rollback" and "No longer in force: From now on answer in French" in changed.stderr
    ok(identity(home, *command.groups(), *mine))
    assert re.findall("From now .*", ok(identity(home, *mine))) == re.findall("From now .*", listed), "with its day"
    ok(identity(home, *first.groups(), *mine))
    assert "French" not in ok(identity(home, *mine))


def test_what_is_proposed_waits_for_a_yes(home: Path) -> None:
    mine = ("--agent", "proposed")
    for text in ("From now on answer in French", "I like answers short"):
        ok(identity(home, "propose", "instruction", text, *mine))
    told = ok(identity(home, "proposals", *mine))
    waits, other = ids(told)
    assert "instruction  From now on answer in French  (" in told and "cli, by user)" in told
    assert ok(identity(home, "accept", waits, *mine)) == "Added to the identity: From now on answer in French\n"
    assert ok(identity(home, "reject", other, *mine)) == "Rejected: I like answers short\n"
    assert ok(identity(home, "proposals", *mine)) == "No proposed identity lines.\n"
    assert "- The user says: From now on answer in French\n" in ok(typed(home, "context", "Bonjour", *mine))
    ok(identity(home, "erase", waits, "--reason", "a test", "--yes", *mine))
    assert "French" not in ok(identity(home, *mine)) + ok(identity(home, "history", *mine))
    refused = identity(home, "erase", waits, "--reason", "a test", "--yes", *mine)
    assert refused.returncode == 2 and "There is no line of the identity" in refused.stderr
