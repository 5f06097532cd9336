"""Hints name the operations of the interface that shows them."""

import re
from pathlib import Path

import pytest

from newton.agent.loop.tools import ToolResult
from newton.errors import InputError, UnauthorizedError
from newton.runtime.api.problems import to_json_rpc_error, to_problem
from newton.runtime.cli.command_index import load_commands
from newton.runtime.hint_names import HintInterface, load_routes, rename_commands
from newton.runtime.interface_matrix import load_verbs
from newton.runtime.tools.tool_registry import to_error_result

PACKAGE = Path(__file__).parents[2] / "newton"


@pytest.mark.parametrize(
    ("interface", "expected"),
    [
        ("cli", "`newton censors relax 4f2a --reason REASON` makes it warn, `newton conflicts` lists, `newton serve`."),
        (
            "http",
            "`POST /v1/censors/{censor_id}/relax` with `4f2a` makes it warn, `GET /v1/conflicts` lists,"
            " `newton serve`.",
        ),
        (
            "mcp",
            "`newton censors relax 4f2a --reason REASON` makes it warn, `conflicts` lists, `newton serve`.",
        ),
        ("chat", "`/relax-censor 4f2a REASON` makes it warn, `/conflicts` lists, `newton serve`."),
    ],
)
def test_a_command_becomes_the_operation_of_the_interface(interface: HintInterface, expected: str) -> None:
    hint = "`newton censors relax 4f2a --reason REASON` makes it warn, `newton conflicts` lists, `newton serve`."
    assert rename_commands(hint, interface) == expected


def test_arguments_and_tokens_are_named_where_the_interface_takes_them() -> None:
    assert rename_commands("`newton tasks resume 3`", "http") == "`POST /v1/tasks/resume` with `3`"
    assert (
        rename_commands("`newton review ID success`", "http")
        == "`POST /v1/decisions/{decision_id}/review` with `success`"
    )
    assert rename_commands("`newton identity accept 4f2a`", "mcp") == "`newton identity accept 4f2a`", "not `identity`"
    assert rename_commands("`newton sessions log talk`", "http") == "`GET /v1/sessions/{session}/messages` with `talk`"
    # the chat reads routes of a remote agent too
    assert (
        rename_commands("`POST /v1/censors/{censor_id}/relax` with `4f2a` makes it warn.", "chat")
        == "`/relax-censor` with `4f2a` makes it warn."
    )
    assert rename_commands("`GET /v1/nothing` is none.", "chat") == "`GET /v1/nothing` is none."
    error = UnauthorizedError("There is no token.", hint="`newton tokens create NAME` creates one.")
    assert to_problem(error).hint == error.hint


def test_each_interface_renames_the_errors_that_it_shows() -> None:
    error = InputError("It is contested.", hint="`newton conflicts` lists the pairs.")
    assert to_problem(error).hint == "`GET /v1/conflicts` lists the pairs."
    assert "`conflicts` lists" in to_json_rpc_error(error)["error"]["message"]
    assert to_error_result(error) == ToolResult(
        {"error": "It is contested.", "hint": "`conflicts` lists the pairs.", "code": "invalid_input"}, is_error=True
    )
    assert error.hint == "`newton conflicts` lists the pairs."


def test_every_command_and_operation_exists() -> None:
    known = {name for row in load_verbs() for name in row.names("cli")}
    mentioned = [
        (path.name, found.split())
        for path in PACKAGE.rglob("*.py")
        for found in re.findall(r"`newton ([a-z][^`{…]*)`", path.read_text(encoding="utf-8"))
    ]
    assert len(mentioned) > 100
    unknown = [
        (name, " ".join(words))
        for name, words in mentioned
        if words[0] not in known | load_commands().keys() and " ".join(words[:2]) not in known
    ]
    assert unknown == []
    assert {name for row in load_verbs() for name in row.names("http")} == load_routes().keys()
