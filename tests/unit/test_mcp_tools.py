"""Rules of the tools of MCP servers without a server: permissions, checks of tools, lessons, and settings."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from newton.agent.actions.action_lessons import find_lesson
from newton.agent.actions.action_store import ActionOutcome, ToolAction
from newton.agent.actions.external_tools import ExternalTool
from newton.agent.actions.permissions import ToolPermission, judge
from newton.errors import ConfigError, InputError
from newton.ids import derive_agent_id, new_id
from newton.runtime.cli.talk.attachments import find_files
from newton.runtime.cli.talk.completion import complete_input
from newton.runtime.mcp_servers.servers import add_server, load_servers, remove_server
from newton.runtime.mcp_servers.tool_checks import ListedTool, check_tool
from newton.settings import load
from tests.support import NOON

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
SEND = ListedTool("send", "Send a text.", SCHEMA, {})
HERE, THERE = derive_agent_id("session 1"), derive_agent_id("session 2")


def checked(tool: ListedTool, *, address: str = "npx files", is_trusted: bool = False) -> ExternalTool:
    found = check_tool(tool, server="files", address=address, is_trusted=is_trusted)
    assert isinstance(found, ExternalTool)
    return found


def test_a_tool_runs_freely_only_if_it_reads_and_is_as_a_person_saw_it() -> None:
    tool = checked(SEND)
    changed = [
        checked(SEND._replace(description="Send a text to all.")),
        checked(SEND._replace(schema={**SCHEMA, "required": []})),
        checked(SEND._replace(annotations={"readOnlyHint": True})),
        checked(SEND, address="npx other"),
    ]
    assert checked(SEND).fingerprint == tool.fingerprint
    assert len({tool.fingerprint, *(one.fingerprint for one in changed)}) == 5
    # a tool runs freely only if it reads and its server is trusted
    read = SEND._replace(annotations={"readOnlyHint": True})
    assert checked(read, is_trusted=True).runs_freely
    assert not checked(read).runs_freely and not checked(SEND, is_trusted=True).runs_freely
    assert not checked(SEND._replace(annotations={"readOnlyHint": "yes"}), is_trusted=True).runs_freely


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        (SEND._replace(name="send; rm -rf"), "other characters"),
        (SEND._replace(name="s" * 80), "more than 64"),
        (SEND._replace(schema={"type": "string"}), "not that of an object"),
        (SEND._replace(schema={**SCHEMA, "required": ["other"]}), "does not describe"),
        (SEND._replace(schema={**SCHEMA, "required": [{}]}), "does not describe"),
        (SEND._replace(schema={**SCHEMA, "properties": {"expected_result": {}}, "required": []}), "Newton adds"),
        (SEND._replace(schema={**SCHEMA, "$defs": {"a": {"$ref": "https://example.com/x"}}}), "other documents"),
        (SEND._replace(schema={**SCHEMA, "title": "x" * 20_000}), "12,000"),
    ],
)
def test_a_tool_with_a_wrong_name_or_schema_is_refused_with_the_reason(tool: ListedTool, reason: str) -> None:
    found = check_tool(tool, server="files", address="npx", is_trusted=False)
    assert isinstance(found, str) and reason in found


def test_a_prohibition_comes_first_and_a_permission_holds_for_its_session_and_fingerprint() -> None:
    tool = checked(SEND)
    allowed = ToolPermission(
        permission_id=new_id(), server="files", tool="send", verdict="allow", fingerprint=tool.fingerprint,
        session_id=None, session=None, source="person", created_at=NOON,
    )  # fmt: skip
    denied = replace(allowed, verdict="deny", fingerprint=None)
    here = replace(allowed, session_id=HERE)
    assert judge([], tool.fingerprint, session_id=HERE) == "unknown"
    assert judge([allowed], tool.fingerprint, session_id=HERE) == "allowed"
    assert judge([allowed], b"other", session_id=HERE) == "changed"
    assert judge([allowed, denied], tool.fingerprint, session_id=HERE) == "denied"
    assert judge([here], tool.fingerprint, session_id=THERE) == "unknown"


def action(outcome: ActionOutcome, arguments: str, *, here: bool = True) -> ToolAction:
    return ToolAction(
        action_id=new_id(), session_id=HERE if here else THERE, server="files", tool="send",
        arguments_hash=arguments.encode(), permission="always", outcome=outcome, started_at=NOON, finished_at=NOON,
    )  # fmt: skip


def test_only_repeated_mistakes_are_lessons() -> None:
    failed, other = action("failure", "a"), action("success", "b")
    assert find_lesson([failed] * 2) is None
    assert find_lesson([failed] * 3) == "repeated_failure"
    assert find_lesson([failed, failed, failed, action("success", "a")]) is None
    assert find_lesson([other, failed]) is None
    assert find_lesson([other, failed, other, failed]) == "repeated_recovery"
    assert find_lesson([other, action("failure", "a", here=False), other, failed]) is None


def test_servers_come_from_the_settings_the_data_folder_and_listed_files(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    entry = {"command": "npx", "args": ["files"], "trust": True, "autoApprove": ["*"]}
    file.write_text(json.dumps({"mcpServers": {"files": entry, "off": {"url": "https://a.example", "disabled": True}}}))
    mcp = {"files": [str(file)], "servers": {"files": {"tools": ["read"]}}}
    settings = load({"data_dir": tmp_path, "mcp": mcp}, env={})
    add_server(settings.home, "own", {"url": "https://b.example/mcp", "headers": {"Authorization": "Bearer ${KEY}"}})
    servers = load_servers(settings)
    assert (servers["files"].command, servers["files"].trust, servers["files"].tools) == ("npx", False, ("read",))
    assert (servers["off"].enabled, servers["own"].url) == (False, "https://b.example/mcp")
    assert (settings.home / "mcp.json").stat().st_mode & 0o077 == 0
    with pytest.raises(ConfigError, match="KEY is not set"):
        servers["own"].expand()
    with pytest.raises(InputError, match="already"):
        add_server(settings.home, "own", {"command": "x"})
    with pytest.raises(ConfigError, match="command or a url"):
        add_server(settings.home, "both", {"command": "x", "url": "https://a.example"})
    remove_server(settings.home, "own")
    assert "own" not in load_servers(settings)


def test_completion_knows_commands_names_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").touch()
    (tmp_path / "more").mkdir()
    assert list(complete_input("/fr", ["/frame", "/private"], {})) == [("/frame", -3)]
    assert list(complete_input("/frame t", ["/frame"], {"/frame": ["debug", "task"]})) == [("task", -1)]
    assert list(complete_input("read @n", [], {})) == [("@notes.md", -2)]
    assert list(complete_input("read @mo", [], {})) == [("@more/", -3)]
    assert list(complete_input("write to ana@n", [], {})) == []
    # only existing files are attached
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").touch()
    (tmp_path / "my notes.md").touch()
    text = 'Compare @notes.md, @"my notes.md" and @missing.md with ana@notes.md.'
    assert find_files(text) == [Path("notes.md"), Path("my notes.md")]
