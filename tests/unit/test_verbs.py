"""The table of verbs agrees with the interfaces: each has every verb, or the table says why not."""

from collections.abc import Iterator

import pytest
from cyclopts import App

from newton.agent.loop.tools import TOOLS as MODEL_TOOLS
from newton.client import Client
from newton.runtime.cli.app import build_app
from newton.runtime.cli.command_index import load_commands
from newton.runtime.cli.command_registry import SYNONYMS
from newton.runtime.cli.talk.operation_lines import SLASH_COMMANDS
from newton.runtime.cli.talk.slash_commands import BUILTIN_COMMANDS
from newton.runtime.interface_matrix import INTERFACES, AbsenceReason, load_verbs
from newton.runtime.tools.tool_registry import TOOLS
from tests.browser.page_acts import ACTS
from tests.browser.page_paths import DOWNLOADS, PARAMETER, QUERIES, VARIANTS, build_page_path, list_routes
from tests.docs.reference import describe_api

VERBS = load_verbs()

# methods of the client that any verb uses, and that are none themselves
PLUMBING = {"get", "get_items", "post", "request", "stream", "iter_pages", "call_tool", "run_operation", "aclose"}


def commands(app: App, before: tuple[str, ...] = ()) -> Iterator[str]:
    for name in app:
        if name.startswith("-"):
            continue
        inner = app[name]
        if any(not one.startswith("-") for one in inner):
            yield from commands(inner, (*before, name))
        else:
            yield " ".join((*before, name))


def real_names(interface: str) -> set[str]:
    match interface:
        case "cli":
            return {"help", *commands(build_app())}  # whose pages cyclopts does not build
        case "http":
            operations = [one for path in describe_api()["paths"].values() for one in path.values()]
            return {one["operationId"] for one in operations}
        case "mcp":
            return set(TOOLS)
        case "client":
            return {name for name in dir(Client) if not name.startswith("_")} - PLUMBING
        case _:
            return {*BUILTIN_COMMANDS, *SLASH_COMMANDS}


@pytest.mark.parametrize("interface", INTERFACES)
def test_the_table_names_exactly_what_each_interface_has(interface: str) -> None:
    listed = [name for row in VERBS for name in row.names(interface)]
    assert sorted(listed) == sorted(set(listed)), "a name is in two rows"
    real = real_names(interface)
    assert real - set(listed) == set(), "add these to a row of newton/runtime/interface_matrix.yaml"
    assert set(listed) - real == set(), "these do not exist"


def test_no_cell_is_empty_without_a_reason() -> None:
    empty = [
        row.name for row in VERBS for cell in row.cells.values() if not isinstance(cell, AbsenceReason) and not cell
    ]
    assert empty == []
    reasons = [cell.text for row in VERBS for cell in row.cells.values() if isinstance(cell, AbsenceReason)]
    assert all(text.endswith(".") and len(text.split()) >= 3 for text in reasons)
    assert len({row.name for row in VERBS}) == len(VERBS)


def test_what_every_interface_must_have() -> None:
    wanted = {
        *("remember", "recall", "expand", "forget", "supersede", "confirm", "retract", "create_context"),
        *("decide", "think", "done", "review", "outcomes", "decisions", "calibration", "bundles", "why", "sessions"),
        *("tasks", "procedures", "procedure_outcome", "censors", "add_censor", "retire_censor"),
        *("metrics", "identity", "propose_identity"),
    }
    rows = {row.name: row for row in VERBS}
    assert {
        name for name in wanted if any(isinstance(cell, AbsenceReason) for cell in rows[name].cells.values())
    } == set()
    # in the chat, each answer has built one
    assert [door for door, cell in rows["context"].cells.items() if isinstance(cell, AbsenceReason)] == ["chat"]
    assert rows["last_context"].names("chat") == ("/context",)


def test_tools_and_slash_commands_describe_themselves() -> None:
    assert {name for name, tool in TOOLS.items() if len(tool.description) < 60} == set()
    assert {name for name, tool in TOOLS.items() if not tool.description.endswith(".")} == set()
    fields = [
        (name, field)
        for name, tool in TOOLS.items()
        for field, schema in tool.schema.get("properties", {}).items()
        if "description" not in schema and "$ref" not in schema
    ]
    assert fields == []
    for name, command in SLASH_COMMANDS.items():
        fields = set(command.operation.input_model.model_fields)
        assert fields >= {*command.parameters, *(["session"] if command.uses_session else [])}, name
    known = load_commands().keys()
    assert known >= SYNONYMS.keys()
    assert known.isdisjoint(other for others in SYNONYMS.values() for other in others)


def test_the_model_and_mcp_share_the_inputs_of_a_tool() -> None:
    shared = set(MODEL_TOOLS) & set(TOOLS)
    assert set(MODEL_TOOLS) == shared
    for name in shared:
        assert MODEL_TOOLS[name].input_model.model_fields.keys() <= TOOLS[name].input_model.model_fields.keys(), name


def test_every_page_and_every_action_is_visited_in_the_browser() -> None:
    known = {"memory_id", "decision_id", "bundle_id", "other_bundle_id", "session"}
    paths = [build_page_path(path, dict.fromkeys(known, "x")) for path in list_routes("GET") if path not in DOWNLOADS]
    assert not any(PARAMETER.search(path) for path in paths)
    assert len(paths) >= 25
    assert set(QUERIES) <= set(list_routes("GET"))
    assert all(path.partition("?")[0] in list_routes("GET") for path in VARIANTS)
    assert {act.route for act in ACTS} == set(list_routes("POST")), "add these to tests/browser/page_acts.py"
