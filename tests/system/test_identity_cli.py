"""Commands as a person types them, on a real PostgreSQL: identity, memories, skills, tasks and profiles."""

import json
import re
from pathlib import Path

import pytest

from newton.content.skills import read_skill
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


def test_what_a_fact_replaced_is_printed_and_found_in_its_history(home: Path) -> None:
    about = ("--subject", "Ana", "--attribute", "lives in")
    first = json.loads(ok(typed(home, "remember", "Ana lives in Porto.", *about, "--json")))
    assert (first["replaced"], first["contested"], first["warning"]) == ([], [], None)
    old = first["memory_id"][-8:]
    said = ok(typed(home, "remember", "Ana lives in Bergen.", *about))
    assert said.splitlines()[1] == f"  Replaced: {old} Ana lives in Porto."
    new = said.splitlines()[0].partition("(")[2].rstrip(")")
    assert f"superseded by: {new} Ana lives in Bergen." in ok(typed(home, "history", old))
    changes = json.loads(ok(typed(home, "history", old, "--json")))["changes"]
    assert changes[-1]["replaced_by"]["text"] == "Ana lives in Bergen."


def test_a_statement_of_a_person_is_stored_with_a_warning(home: Path) -> None:
    ok(typed(home, "censors", "add", "deploy on Fridays", "--reason", "nobody is there to help", "--action", "block"))
    for words in (("We never deploy on Fridays.",), ("We had to deploy on Fridays.", "--episode", "The outage")):
        done = typed(home, "remember", *words)
        assert done.returncode == 0 and "Remembered." in done.stdout
        assert "is stored nevertheless" in done.stderr and "nobody is there to help" in done.stderr


def test_an_import_refuses_a_censor_of_a_domain_that_no_frame_names(home: Path) -> None:
    lines = [
        {"type": "censor", "ref": "c1", "trigger": "push to main", "reason": "review first", "domain": "gardening"},
        {"type": "censor", "ref": "c2", "trigger": "sell the boat", "reason": "it is not ours"},
    ]
    path = home / "censors.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = typed(home, "import", str(path))
    assert "No frame has the domain 'gardening'." in done.stdout + done.stderr
    assert "Omit the domain, or give one of" in done.stdout + done.stderr
    triggers = {one["trigger"] for one in json.loads(ok(typed(home, "censors", "list", "--json")))["items"]}
    assert "sell the boat" in triggers and "push to main" not in triggers


SKILL = "---\nname: rotate-keys\ndescription: Rotate the keys.\n---\n1. Create a key.\n2. {last}\n"


def test_a_skill_is_a_procedure_of_the_person_and_a_changed_one_a_new_version(home: Path) -> None:
    file = home / "skills" / "rotate-keys" / "SKILL.md"
    file.parent.mkdir(parents=True)
    for last, said in (("Revoke it.", "added"), ("Revoke it.", "unchanged"), ("Revoke the old one.", "added")):
        file.write_text(SKILL.format(last=last))
        assert f"rotate-keys: {said}" in ok(typed(home, "skills", "add", str(home / "skills")))
    listed = json.loads(ok(typed(home, "procedures", "list", "--json")))["items"]
    (skill,) = [one for one in listed if one["name"] == "rotate-keys"]
    assert (skill["version"], skill["is_proposed"]) == (2, False)
    (memory,) = json.loads(ok(typed(home, "list", "--kind", "procedure", "--text", "rotate keys", "--json")))["items"]
    assert (memory["trust"], memory["origin"]) == ("user", "cli")
    assert "Retired" in ok(typed(home, "skills", "remove", "rotate-keys"))


def test_one_bad_skill_costs_neither_the_others_nor_a_command(home: Path) -> None:
    """A skill without steps is stored as well, and its procedure stays while its file is broken."""
    file, bad = home / "broken" / "mend-a-tap" / "SKILL.md", home / "broken" / "bad" / "SKILL.md"
    for one in (file, bad):
        one.parent.mkdir(parents=True)
    file.write_text("---\ndescription: Mend a tap.\nlicense: MIT\n---\nUse a spanner.\n")
    bad.write_text("no front matter")
    own = {"NEWTON_PROCEDURES_DIR": str(home / "broken")}
    done = typed(home, "procedures", "list", **own)
    assert done.returncode == 0 and f"{bad}:1: the file does not begin with front matter" in done.stderr
    assert "mend-a-tap" in done.stdout
    file.write_text("---\ndescription: [")
    other = home / "broken" / "cut-wood" / "SKILL.md"  # a change, so that the procedures are compared with the files
    other.parent.mkdir()
    other.write_text("---\ndescription: Cut wood.\n---\nUse a saw.\n")
    listed = json.loads(ok(typed(home, "procedures", "list", "--json", **own)))["items"]
    assert [one["state"] for one in listed if one["name"] == "mend-a-tap"] == ["ACTIVE"]
    added = typed(home, "skills", "add", str(home / "broken"), "--json")
    assert added.returncode == 2
    assert [str(bad) in one or str(file) in one for one in json.loads(added.stdout)["rejected"]] == [True, True]


def test_fields_of_other_programs_are_exported_again(home: Path) -> None:
    file = home / "glass" / "cut-glass" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(
        "---\nname: cut-glass\ndescription: Cut glass.\nmetadata: {author: Ada, tags: [a]}\n"
        "'a: b': 1\n'# c': {'d: e': [2]}\n'\"f\"': 3\n'true': 4\n---\nScore it.\n"
    )
    ok(typed(home, "skills", "add", str(home / "glass")))
    ok(typed(home, "export", str(home / "mirror"), "--markdown"))
    exported = read_skill(home / "mirror" / "procedures" / "cut-glass" / "SKILL.md")
    assert exported == read_skill(file)


def test_a_prohibition_is_listed_and_revoked_by_name(home: Path) -> None:
    assert "Forbidden: files delete" in ok(typed(home, "permissions", "deny", "files", "delete"))
    assert "files delete" in ok(typed(home, "permissions"))
    assert "no longer forbidden" in ok(typed(home, "permissions", "revoke", "files delete"))
    assert typed(home, "permissions", "revoke", "files delete").returncode != 0


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
def test_what_working_memory_cannot_do_is_refused_with_a_remedy(home: Path, words: list[str], said: str) -> None:
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
