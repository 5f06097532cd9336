"""Finished tool calls, of whatever program, become events by their arguments and their output."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.heart.events.event_types import MAX_LINE_CHARACTERS, render_details, render_line, validate_event
from newton.heart.events.tool_results import MAX_OUTPUT_CHARACTERS, ToolOutcome, to_event
from tests.support import NOON

LISTING = "total 8\n-rw-r--r-- a.py"


def made(tool: str, arguments: object, output: str, *, is_error: bool = False) -> tuple[str, dict[str, Any]]:
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    event = to_event(ToolOutcome(tool, given, output, is_error), occurred_at=NOON)
    return event.type, dict(event.payload)


@pytest.mark.parametrize(
    ("tool", "arguments", "output", "type", "payload"),
    [
        ("bash", {"command": "ls"}, LISTING, "shell_exec", {"command": "ls", "stdout": LISTING}),
        ("exec", {"cmd": ["ls", "-l"]}, "a", "shell_exec", {"command": "ls -l", "stdout": "a"}),
        ("runInTerminal", {"input": "ls"}, "a", "shell_exec", {"command": "ls", "stdout": "a"}),
        ("terminal", "ls -l", "a", "shell_exec", {"command": "ls -l", "stdout": "a"}),
        ("bash", {"command": "t"}, "no\nexit code: 2", "shell_exec", {"command": "t", "exit_code": 2, "stdout": "no"}),
        ("bash", {"command": "t"}, "[exit 1]\nno", "shell_exec", {"command": "t", "exit_code": 1, "stdout": "no"}),
        (
            "bash",
            {"command": "t"},
            json.dumps({"stdout": "out", "stderr": "err", "exit_code": 3}),
            "shell_exec",
            {"command": "t", "exit_code": 3, "stdout": "out", "stderr": "err"},
        ),
        (
            "bash",
            {"command": "t"},
            "Traceback (most recent call last):\nKeyError: 'a'",
            "shell_exec",
            {"command": "t", "outcome": "failed", "stdout": "Traceback (most recent call last):\nKeyError: 'a'"},
        ),
        ("read_file", {"path": "a.py"}, "x = 1", "file_read", {"path": "a.py", "content": "x = 1"}),
        (
            "view",
            {"file_path": "a.py", "start_line": 2, "end_line": 9},
            "x",
            "file_read",
            {"path": "a.py", "lines": [2, 9], "content": "x"},
        ),
        ("str_replace", {"path": "a.py", "new_str": "y"}, "done", "file_write", {"path": "a.py", "outcome": "done"}),
        ("write", {"filename": "a.py", "content": "y"}, "", "file_write", {"path": "a.py", "outcome": ""}),
        (
            "read_file",
            {"path": "a.py"},
            "Error: no such file\nin /home",
            "error",
            {"message": "read_file a.py: Error: no such file", "stack": "in /home"},
        ),
        ("query", {"sql": "select 1"}, '{"error": "no table"}', "error", {"message": "query: no table", "stack": ""}),
        (
            "weather",
            {"place": "Porto"},
            "Rain.",
            "tool_call",
            {"tool": "weather", "input": {"place": "Porto"}, "output": "Rain."},
        ),
    ],
)
def test_a_call_becomes_the_event_that_its_fields_say(
    tool: str, arguments: object, output: str, type: str, payload: dict[str, Any]
) -> None:
    # S001-28
    assert made(tool, arguments, output) == (type, payload)


def test_a_caller_may_say_that_a_call_failed_and_secrets_go_before_the_cut() -> None:
    assert made("weather", {}, "no answer", is_error=True) == ("error", {"message": "weather: no answer", "stack": ""})
    assert made("bash", {"command": "t"}, "no", is_error=True)[1]["outcome"] == "failed"
    # a secret is redacted before the output is cut
    token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    for before in range(MAX_OUTPUT_CHARACTERS // 2 - 60, MAX_OUTPUT_CHARACTERS // 2 + 60, 7):
        payload = made("bash", {"command": f"echo {token}"}, "a" * before + " " + token + " " + "b" * 9_000)[1]
        assert token[:12] not in json.dumps(payload) and token[-12:] not in json.dumps(payload)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["command", "cmd", "path", "content", "input", "error", "stdout", "exit_code", "offset", "limit"]
)


@given(
    st.sampled_from(["bash", "read_file", "edit", "weather"]) | st.text(max_size=9),
    st.dictionaries(NAMES | st.text(max_size=5), JSON, max_size=4).map(json.dumps) | st.text(max_size=40),
    st.text(max_size=300) | st.dictionaries(NAMES, JSON, max_size=4).map(json.dumps) | st.text().map(lambda t: t * 900),
    st.booleans(),
)
def test_any_call_becomes_one_valid_event_of_bounded_size(
    tool: str, arguments: str, output: str, is_error: bool
) -> None:
    event = to_event(ToolOutcome(tool, arguments, output, is_error), occurred_at=NOON)
    assert validate_event(event.type, event.occurred_at, event.payload) == event
    assert len(render_line(event)) <= MAX_LINE_CHARACTERS
    assert len(render_details(event)) <= MAX_OUTPUT_CHARACTERS + 2
