"""Hooks of coding agents beside a daemon: what they hand over, what they are given, and what happens without one."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from newton.ids import derive_agent_id
from newton.runtime.hooks import hook_runner, spool
from newton.runtime.hooks.hook_input import HookOptions
from tests.system.daemons import Daemon
from tests.system.servers import wait
from tests.system.typed import ok, typed

EXAMPLES = Path(__file__).parents[1] / "data" / "hooks"
CLAUDE, CODEX = "claude-code", "codex"
FORBIDDEN = {
    "trigger": "git push --force",
    "reason": "Two people lost work by it.",
    "match_mode": "phrase",
    "action": "block",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A coding agent in a project, and the memory that its hooks use."""

    daemon: Daemon
    data_dir: Path
    name: str
    project: Path
    session: str = field(default_factory=lambda: uuid4().hex)
    transcript: Path | None = None

    def event(self, program: str, name: str, **fields: Any) -> str:
        """The documented input, in the project and the session of this agent."""
        values = json.loads((EXAMPLES / program / f"{name}.json").read_text(encoding="utf-8"))
        ids = {key: self.session for key in ("session_id", "thread-id") if key in values}
        at = {"transcript_path": str(self.transcript or self.project / "none.jsonl")} if program == CLAUDE else {}
        return json.dumps({**values, **ids, **at, "cwd": str(self.project), **fields})

    def runs(self, program: str, name: str, *, env: Mapping[str, str] = {}, **fields: Any) -> tuple[str, list[str]]:
        """The output of a hook, and its notes."""
        options = HookOptions(self.name, data_dir=str(self.data_dir), program=program)
        return hook_runner.run_hook(self.event(program, name, **fields), options, env)

    def given(self, program: str, name: str, **fields: Any) -> str:
        """The text that a hook adds; "" for none."""
        output, notes = self.runs(program, name, **fields)
        assert notes == []
        return json.loads(output)["hookSpecificOutput"]["additionalContext"] if output else ""

    def client(self) -> httpx2.Client:
        return self.daemon.client(**{"X-Newton-Agent": self.name})

    def messages(self) -> list[dict[str, Any]]:
        with self.client() as client:
            sessions = [one["session"] for one in client.get("/v1/sessions").json()["items"]]
            (mine,) = [name for name in sessions if name.endswith(self.session)]
            return client.get(f"/v1/sessions/{mine}/messages").json()["items"]

    def memories(self, kind: str, query: str) -> list[dict[str, Any]]:
        with self.client() as client:
            found = client.post("/v1/recall", json={"query": query, "kinds": [kind]}).json()
        return found["items"]

    def elsewhere(self, project: str) -> "Agent":
        """The same memory, in a new session of another project."""
        folder = self.project.parent / project
        folder.mkdir(exist_ok=True)
        return replace(self, project=folder, session=uuid4().hex)


@pytest.fixture
def agent(served: Daemon, house: Path, tmp_path: Path) -> Agent:
    """A coding agent with a new memory, in the project `shop`."""
    name = f"hooks{uuid4().hex[:8]}"
    served.begins(name)
    project = tmp_path / "shop"
    project.mkdir()
    return Agent(daemon=served, data_dir=house / "data", name=name, project=project)


def test_what_one_session_says_is_given_to_another_project(agent: Agent) -> None:
    assert agent.given(CLAUDE, "SessionStart") == ""
    assert agent.given(CLAUDE, "UserPromptSubmit") == ""
    for name in ("PostToolUse", "PostToolUse-edit", "Stop", "SessionEnd"):
        assert agent.runs(CLAUDE, name) == ("", [])
    other = agent.elsewhere("blog")
    start = other.given(CLAUDE, "SessionStart")
    assert "The cart uses Decimal now" in start and "wrote /home/ana/shop/cart.py" in start
    shown = other.given(CODEX, "UserPromptSubmit", prompt="What is the staging server called?")
    assert "staging server is called heron" in shown
    assert shown.startswith("<newton-memory>") and "instruction" in shown and "Current Approach" not in shown


def test_the_roles_names_and_trust_are_those_of_the_speakers(agent: Agent) -> None:
    for name in ("UserPromptSubmit", "PostToolUseFailure", "Stop", "SubagentStop"):
        agent.runs(CLAUDE, name)
    assert [(one["role"], one["name"]) for one in agent.messages()] == [("user", None), ("assistant", "Claude Code")]
    (prompt, *_) = agent.memories("exchange", "staging server heron")
    assert prompt["trust"] == "user"
    asked, shown = "Why does npm test fail?", "ran npm test · exit 1 · Exit code 1 Error: connect ECONNREFUSED"
    given = [one.given(CLAUDE, "UserPromptSubmit", prompt=asked) for one in (agent, agent.elsewhere("blog"))]
    assert [shown in text for text in given] == [False, True]  # S001-28: the program itself has it already


def test_nothing_is_stored_twice_when_hooks_fire_again(agent: Agent) -> None:
    agent = replace(agent, session="5b1c0f3e-7a52-4c1b-9a63-0d4e8f2a6c11", transcript=agent.project / "t.jsonl")
    lines = (EXAMPLES / CLAUDE / "transcript.jsonl").read_text(encoding="utf-8").splitlines()
    assert agent.transcript is not None
    agent.transcript.write_text("\n".join(lines[:3]), encoding="utf-8")
    for _ in range(2):
        agent.runs(CLAUDE, "UserPromptSubmit")
    agent.transcript.write_text("\n".join(lines[:-2]), encoding="utf-8")
    for name in ("PostToolUse", "Stop", "PreCompact") * 2:
        agent.runs(CLAUDE, name)
    assert [one["content"][:9] for one in agent.messages()] == ["Our stagi", "The cart "]
    assert len(agent.memories("event", "pytest")) == 1
    shutil.copy(EXAMPLES / CLAUDE / "transcript.jsonl", agent.transcript)  # what was missed comes with the transcript
    for _ in range(2):
        assert agent.runs(CLAUDE, "SessionEnd") == ("", [])
    assert [one["content"][:9] for one in agent.messages()] == ["Our stagi", "The cart ", "Thanks. T", "Noted: ha"]


def test_the_two_ways_of_codex_store_one_turn_once(agent: Agent) -> None:
    for name in ("UserPromptSubmit", "Stop", "notify", "notify"):
        assert agent.runs(CODEX, name) == ("", [])
    assert [(one["role"], one["content"][:8]) for one in agent.messages()] == [
        ("user", "Releases"),
        ("assistant", "The tota"),
    ]


def test_the_end_of_a_session_makes_an_episode(agent: Agent) -> None:
    for name in ("UserPromptSubmit", "Stop", "SessionEnd", "SessionEnd"):
        assert agent.runs(CLAUDE, name) == ("", [])
    (episode,) = agent.memories("episode", "staging server heron")
    assert "Claude Code" in episode["text"]
    assert agent.elsewhere("blog").runs(CLAUDE, "SessionEnd") == ("", [])  # a session in which nothing was said


def test_messages_of_the_same_project_come_first(agent: Agent) -> None:
    said = "The release branch of this service is named {}."
    for project, branch in (("blog", "heron"), ("shop", "stork"), ("wiki", "crane")):
        agent.elsewhere(project).runs(CODEX, "UserPromptSubmit", prompt=said.format(branch))
    for project, branch in (("blog", "heron"), ("shop", "stork"), ("wiki", "crane")):
        question = "How is the release branch of this service named?"
        here = agent.elsewhere(project)
        assert branch in here.given(CODEX, "UserPromptSubmit", prompt=question)
        hook = hook_runner.parse_input(here.event(CODEX, "Stop"), program=CODEX, project_dir=None)
        body = {"input": question, "session": hook.session, "omit_session_messages": True}
        with agent.client() as client:
            items = client.post("/v1/context", json=body).json()["items"]
        scores = {one["text"]: one["score"] for one in items if "named" in one["text"]}
        assert len(scores) >= 3 and branch in max(scores, key=scores.__getitem__)


def test_the_messages_of_the_session_itself_are_not_repeated_before_it_is_compacted(agent: Agent) -> None:
    agent.runs(CLAUDE, "UserPromptSubmit")
    question = "What is the staging server called?"
    assert agent.given(CLAUDE, "UserPromptSubmit", prompt=question) == ""
    assert "heron" not in agent.given(CLAUDE, "SessionStart", source="resume")


def test_nothing_is_given_or_stored_for_what_no_person_said(agent: Agent) -> None:
    agent.runs(CLAUDE, "UserPromptSubmit")
    for prompt in ("/clear", "<task-notification>staging server heron</task-notification>"):
        assert agent.given(CLAUDE, "UserPromptSubmit", prompt=prompt) == ""
    assert agent.given(CLAUDE, "Notification") == ""
    assert len(agent.messages()) == 1
    other = agent.elsewhere("blog")
    assert other.given(CLAUDE, "UserPromptSubmit", prompt="Explain quantum chromodynamics") == ""


@pytest.mark.parametrize(
    ("program", "name"), [(CLAUDE, "PreToolUse"), (CLAUDE, "PreToolUse-write"), (CODEX, "PreToolUse-patch")]
)
def test_a_blocking_censor_stops_a_tool_call(agent: Agent, program: str, name: str) -> None:
    assert agent.runs(program, name) == ("", [])
    with agent.client() as client:
        assert client.post("/v1/censors", json=FORBIDDEN).status_code == 201
    output, notes = agent.runs(program, name)
    answer = json.loads(output)["hookSpecificOutput"]
    assert (set(json.loads(output)), notes) == ({"hookSpecificOutput"}, [])
    assert (answer["hookEventName"], answer["permissionDecision"]) == ("PreToolUse", "deny")
    assert "Two people lost work by it." in answer["permissionDecisionReason"]
    assert agent.runs(program, name, tool_input={"command": "git status"}) == ("", [])


def test_a_warning_censor_lets_the_call_go_on(agent: Agent) -> None:
    with agent.client() as client:
        client.post("/v1/censors", json={**FORBIDDEN, "action": "warn"})
    output, _ = agent.runs(CLAUDE, "PreToolUse")
    answer = json.loads(output)["hookSpecificOutput"]
    assert "permissionDecision" not in answer and "lost work" in answer["additionalContext"]


def test_secrets_are_redacted(agent: Agent) -> None:
    key = "sk-proj-" + "a1B2" * 12
    agent.runs(CLAUDE, "UserPromptSubmit", prompt=f"Use the key {key} for the tests.")
    agent.runs(CLAUDE, "PostToolUse", tool_input={"command": f"curl -H 'Authorization: Bearer {key}' x"})
    assert key not in json.dumps([agent.messages(), agent.memories("event", "curl")])
    assert "REDACTED" in agent.messages()[0]["content"]


def test_without_a_daemon_the_agent_goes_on_and_a_later_hook_hands_over(agent: Agent, tmp_path: Path) -> None:
    alone = replace(agent, data_dir=tmp_path / "data")
    for name in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"):
        output, notes = alone.runs(CLAUDE, name)
        assert output == "" and len(notes) == 1 and "newton serve" in notes[0]
    assert spool.count_entries(alone.data_dir) == 3
    (other := agent.elsewhere("blog")).runs(CLAUDE, "UserPromptSubmit", prompt="Let us write about birds.")
    back = {"NEWTON_URL": agent.daemon.url, "NEWTON_TOKEN": agent.daemon.token}
    late = replace(other, data_dir=alone.data_dir)
    assert late.runs(CLAUDE, "Stop", env=back) == ("", [])  # its second request is for what waits
    assert spool.count_entries(alone.data_dir) == 0
    assert [one["role"] for one in agent.messages()] == ["user", "assistant"]
    assert len(agent.memories("event", "pytest")) == 1


def test_what_waits_of_a_session_is_stored_before_its_next_message(agent: Agent, tmp_path: Path) -> None:
    alone = replace(agent, data_dir=tmp_path / "data")
    gone = {"NEWTON_URL": "http://127.0.0.1:9", "NEWTON_TOKEN": agent.daemon.token}
    assert "does not answer" in alone.runs(CLAUDE, "UserPromptSubmit", env=gone)[1][0]
    back = {"NEWTON_URL": agent.daemon.url, "NEWTON_TOKEN": agent.daemon.token}
    assert alone.runs(CLAUDE, "Stop", env=back) == ("", [])
    assert [one["role"] for one in agent.messages()] == ["user", "assistant"]


def test_a_wrong_token_loses_nothing(agent: Agent, tmp_path: Path) -> None:
    alone = replace(agent, data_dir=tmp_path / "data")
    wrong = {"NEWTON_URL": agent.daemon.url, "NEWTON_TOKEN": "nwo_wrong"}
    _, (note,) = alone.runs(CLAUDE, "UserPromptSubmit", env=wrong)
    assert "not stored yet; a later hook tries again" in note and spool.count_entries(alone.data_dir) == 1


def test_a_message_that_is_refused_takes_no_other_with_it(agent: Agent, tmp_path: Path) -> None:
    alone = replace(agent, data_dir=tmp_path / "data")
    hook = hook_runner.parse_input(alone.event(CLAUDE, "Stop"), program=CLAUDE, project_dir=None)
    good, bad = {"role": "user", "content": "Good.", "ref": "g"}, {"role": "nobody", "content": "x", "ref": "r"}
    event: dict[str, Any] = {"ref": "e", "event_type": "Not A Type", "payload": {}}
    spool.add_entry(alone.data_dir, spool.SpoolEntry(agent.name, hook.session, [bad, good], [event]))
    back = {"NEWTON_URL": agent.daemon.url, "NEWTON_TOKEN": agent.daemon.token}
    _, (note,) = alone.runs(CLAUDE, "Stop", env=back)
    assert note.startswith("the message of 'nobody' with the ref 'r' (and 1 more) is not stored: role: Input should be")
    assert spool.count_entries(alone.data_dir) == 0, "what is refused does not wait for ever"
    assert [one["role"] for one in agent.messages()] == ["user", "assistant"]
    changed = {**good, "content": "Other words."}
    spool.add_entry(alone.data_dir, spool.SpoolEntry(agent.name, hook.session, [changed], []))
    _, (note,) = alone.runs(CLAUDE, "UserPromptSubmit", env=back)
    assert "'user' with the ref 'g'" in note and spool.count_entries(alone.data_dir) == 0
    assert [one["role"] for one in agent.messages()] == ["user", "assistant", "user"]


def test_items_are_skipped_only_if_the_request_says_so(agent: Agent) -> None:
    good, bad = {"role": "user", "content": "Good."}, {"role": "nobody", "content": "x"}
    with agent.client() as client:

        def post(**body: Any) -> httpx2.Response:
            return client.post("/v1/sessions/skipping/messages", json=body)

        assert post(messages=[good, bad]).status_code == 422
        assert client.get("/v1/sessions/skipping/messages").status_code == 404
        assert post(messages=[bad], on_invalid="skip").status_code == 422, "nothing would be stored"
        assert post(messages=[good], events="none", on_invalid="skip").status_code == 422
        answer = post(messages=[bad, good, good], events=[{"ref": "e"}], on_invalid="skip").json()
    assert answer["positions"] == [0, 1]
    assert [one["item"] for one in answer["refused"]] == ["messages[0]", "events[0]"]
    assert answer["refused"][0]["detail"].startswith("role: ")


def test_an_agent_of_the_project_is_created_when_it_is_needed(agent: Agent, tmp_path: Path) -> None:
    options = HookOptions(per_project=True, data_dir=str(tmp_path / "data"), program=CLAUDE)
    env = {"NEWTON_URL": agent.daemon.url, "NEWTON_TOKEN": agent.daemon.token}
    for name in ("UserPromptSubmit", "Stop"):
        hook_runner.run_hook(agent.event(CLAUDE, name), options, env)
    hook = hook_runner.parse_input(agent.event(CLAUDE, "Stop"), program=CLAUDE, project_dir=None)
    own = replace(agent, name=hook.project_key)
    assert [one["role"] for one in own.messages()] == ["user", "assistant"]
    with agent.client() as client:
        assert client.get("/v1/sessions").json()["items"] == []


def test_hooks_use_the_project_of_the_flag_or_the_environment(agent: Agent) -> None:
    flags = HookOptions(agent.name, data_dir=str(agent.data_dir), program=CLAUDE, project="shop")
    hook_runner.run_hook(agent.event(CLAUDE, "UserPromptSubmit"), flags, {})
    agent.runs(CLAUDE, "Stop", env={"NEWTON_PROJECT": "shop"})
    project = {"X-Newton-Agent": agent.name, "X-Newton-Project": "shop"}
    with agent.daemon.client(**project) as shop, agent.client() as person:
        (session,) = shop.get("/v1/sessions").json()["items"]
        messages = shop.get(f"/v1/sessions/{session['session']}/messages").json()["items"]
        assert [one["role"] for one in messages] == ["user", "assistant"]
        assert person.get("/v1/sessions").json()["items"] == []


@pytest.mark.parametrize("name", [*(path.stem for path in sorted((EXAMPLES / CLAUDE).glob("*.json")))])
def test_a_hook_sends_at_most_two_requests(agent: Agent, name: str) -> None:
    other = agent.elsewhere("blog")
    hook = hook_runner.parse_input(other.event(CLAUDE, "Stop"), program=CLAUDE, project_dir=None)
    for where in (f"{hook.session}-a", f"{hook.session}-b"):
        message = {"role": "user", "content": "Something waits.", "ref": where}
        spool.add_entry(agent.data_dir, spool.SpoolEntry(agent.name, where, [message], []))
    owner = str(derive_agent_id(agent.name))

    def requests() -> int:
        return sum("request_answered" in line and owner in line for line in agent.daemon.said)

    before = requests()
    _, notes = agent.runs(CLAUDE, name)
    with agent.client() as client:
        client.get("/v1/token")  # the log has it after all requests of the hook
    wait(lambda: any("/v1/token" in line and owner in line for line in agent.daemon.said))
    assert notes == [] and requests() - before - 1 <= 2
    for _ in range(2):
        agent.runs(CLAUDE, "Stop")
    assert spool.read_batch(agent.data_dir, agent=agent.name)[1] == []


def run_process(agent: Agent, raw: str, *flags: str, **env: str) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", "newton", "hook", "--agent", agent.name, *flags]
    bare = {name: value for name, value in os.environ.items() if not name.startswith("NEWTON_")}
    settings = {**bare, "NEWTON_DATA_DIR": str(agent.data_dir), **env}
    return subprocess.run(words, input=raw, env=settings, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow
def test_the_command_answers_on_standard_output(agent: Agent) -> None:
    told = run_process(agent, agent.event(CLAUDE, "UserPromptSubmit"))
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
    other = agent.elsewhere("blog")
    asked = run_process(agent, other.event(CLAUDE, "UserPromptSubmit", prompt="What is the staging server called?"))
    assert asked.returncode == 0 and "heron" in json.loads(asked.stdout)["hookSpecificOutput"]["additionalContext"]
    notified = run_process(agent, "", agent.event(CODEX, "notify"))  # `notify` appends its input as an argument
    assert (notified.returncode, notified.stdout, notified.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("raw", "flags", "status", "note"),
    [
        ("{nonsense", (), 0, "not JSON"),
        ('{"hook_event_name": "Lunch", "session_id": "s", "cwd": "/"}', (), 0, "'Lunch' is unknown"),
        ("{}", ("--bogus",), 1, "--bogus"),
    ],
)
def test_the_command_never_blocks_an_agent(
    agent: Agent, raw: str, flags: tuple[str, ...], status: int, note: str
) -> None:
    done = run_process(agent, raw, *flags)
    assert (done.returncode, done.stdout) == (status, "") and note in done.stderr
    assert done.stderr.startswith("newton hook: ") and done.stderr.count("\n") == 1


def test_hooks_are_installed_shown_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    file = home / ".claude" / "settings.json"

    def newton(*words: str) -> Any:
        return typed(home, "hook", *words, NEWTON_DATA_DIR=str(home / "data"))

    refused = newton("install", CLAUDE)
    assert "--yes" in refused.stderr and '+  "hooks"' in refused.stdout
    assert refused.returncode == 2 and not file.exists()
    named = ("install", CLAUDE, "--agent", "work", "--yes")
    assert "needs no change" not in ok(newton(*named)) and "--agent work" in file.read_text(encoding="utf-8")
    assert "needs no change" in ok(newton(*named))
    in_project = {"NEWTON_DATA_DIR": str(home / "data"), "NEWTON_PROJECT": "shop"}
    assert "--agent work --project shop" in ok(typed(home, "hook", *named, **in_project))
    ok(newton("install", CODEX, "--project", "--per-project", "--yes"))
    status = json.loads(ok(newton("status", "--json")))
    installed = [(row["program"], row["scope"]) for row in status["hooks"] if row["commands"]]
    assert installed == [(CLAUDE, "user"), (CODEX, "user"), (CODEX, "project")]  # here the home is the project
    assert (status["daemon"], status["waiting"]) == (None, 0) and "installed" in ok(newton("status"))
    assert ok(newton("uninstall", CLAUDE, "--yes")) and file.read_text(encoding="utf-8") == "{}\n"
    assert newton("install", CLAUDE, "--user", "--project").returncode == 2
