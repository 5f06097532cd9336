"""Whatever reads leaves each row of the database as it is, on each interface, but for counters of accesses."""

import asyncio
import io
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from newton.cognition.request import ContextBuildRequest
from newton.db.pool import Database
from newton.dialogue import artifact_store, sessions
from newton.ids import derive_agent_id
from newton.operations.declaration import load_operations
from newton.runtime.interface_matrix import load_verbs
from newton.runtime.mcp_servers import servers
from newton.runtime.tools.tool_registry import TOOLS
from tests.conformance.test_doors import RECORDED
from tests.db.world import STOVE_LOG, contexts, live
from tests.operations import Operation, list_operations
from tests.stored_rows import StoredRows, list_empty_tables, watch
from tests.support import teller
from tests.system.browsing import browser
from tests.system.known_values import AGENT, LINES, PREVIEWED, SESSION, choose_value, read_values
from tests.system.served import OPERATOR, Api, served
from tests.system.test_mcp import speaking
from tests.system.typed import Done, piped, typed

SERVER = Path(__file__).parents[1] / "mcp_stdio_server.py"
EXPECTED_EXITS = (0, 1, 2, 3, 4)


@pytest.fixture
async def values(db: Database, tmp_path: Path) -> dict[str, Any]:
    """The values of inputs, once each table has a row."""
    agent_id = await live(db, AGENT)
    async with db.transaction(agent_id) as tx:
        session_id = await sessions.get_session_id(tx, agent_id=agent_id, ref=SESSION)
        again = replace(STOVE_LOG, text="the stove is cold\n")
        await artifact_store.add(tx, [again], session_id=session_id, ctx=teller(agent_id))
    await contexts(db).build(ContextBuildRequest(agent_id=agent_id, input="are the cups white?", tokens=500))
    return await read_values(db, tmp_path)


@pytest.fixture
async def stored(dsn: str, values: dict[str, Any]) -> AsyncIterator[StoredRows]:
    made = await watch(dsn)
    assert await list_empty_tables(made.conn) == [], "an empty table shows no write to its rows"
    yield made
    await made.conn.close()


@pytest.fixture
async def api(db: Database, tmp_path: Path, values: dict[str, Any]) -> AsyncIterator[Api]:
    command = {"command": sys.executable, "args": [str(SERVER), "good", str(tmp_path / "calls")], "trust": True}
    servers.add_server(tmp_path, "files", command)
    async with served(db, tmp_path) as made:
        yield made


# Some reads need more than the schema requires: a session that no connection names.
NEEDED_TOO = {
    "artifact_files": ("session", "force"),
    "read_artifact": ("name", "session"),
    **dict.fromkeys(("artifact_text", "diff_artifact", "artifacts"), ("session",)),
    "export": ("force",),
    "dashboard": ("daemon", "token_file"),
}
# Options by which an operation that reads otherwise does something, because the caller says so.
_ACTING = ("check_censors counts", "censors check counts")
ACTING_OPTIONS = {tuple(one.rsplit(" ", 1)) for one in _ACTING}
# Inputs without which an operation shows what it would do, and such with which it stores nothing.
CONFIRMING, PREVIEWING = (
    {"token", "confirm", "yes"},
    {"preview": True, "dry_run": True, "private": True, "store": False},
)
# Options that are refused with the value that is given here, by interface and operation.
REFUSED_OPTIONS: Mapping[tuple[str, str], set[str]] = {
    ("cli", "backup"): {"json"},  # the folder has the backup of the call before
    ("cli", "db requirements"): {"owner"},
    ("cli", "export"): {"markdown"},
    **{(door, name): {"pack"} for name in ("frames", "frame") for door in ("cli", "http")},
    **{("cli", f"frames {name}"): {"pack"} for name in ("list", "show")},
    ("cli", "decisions preview"): {"frame", "reason", "review_due"},
    ("cli", "guard check"): {"frame", "reason", "review_due"},
    ("cli", "list"): {"cursor", "field", "source", "state"},
    ("http", "check_guardrails"): {"frame", "look_again_at", "reasons"},
    ("http", "create_embeddings"): {"dimensions", "model"},
    ("http", "diff_artifact"): {"new", "old"},
    ("http", "artifact_text"): {"version"},
    ("http", "calibration"): {"since"},
    ("http", "get_response"): {"stream"},
    **{(door, "bundles"): {"cursor"} for door in ("cli", "http", "mcp")},
    ("http", "decisions"): {"cursor", "outcome", "stakes"},
    ("http", "list_memories"): {
        *("fields", "created_since", "created_until", "cursor", "since", "source", "states", "until"),
    },
    **{(door, name): {"cursor"} for door in ("http", "mcp") for name in ("messages", "sessions", "conflicts")},
    **{("cli", name): {"cursor"} for name in ("conflicts list", "decisions list", "sessions list", "sessions log")},
    ("mcp", "decisions"): {"cursor"},
    ("http", "item_namespaces"): {"max_depth"},
    ("http", "outcomes"): {"outcome"},
    ("http", "preview"): {"frame", "look_again_at", "reasons"},
    ("http", "read_artifact"): {"version"},
    ("http", "stream_events"): {"after"},
    ("http", "create_context"): {"decay_hours", "order"},
    ("mcp", "list_memories"): {"cursor", "fields", "source", "states"},
    ("mcp", "preview"): {"frame", "look_again_at", "reasons"},
}
REFUSED_TO_AGENTS = {("mcp", "forget"), ("mcp", "delete_document")}  # what they name is the person's
UNKNOWN_AGENT = "nobody"
NEEDS_A_CLUSTER = "db distribute"
BEGINNING = " heart.watermarks: "  # how far a turn has read, when it begins with what is left to do
HANDLE_SIGNALS = {"ask", "import"}
NO_MODEL = 503  # the status of a turn


@dataclass(slots=True)
class Changes:
    """What operations changed, and which of them failed, or were not refused as expected."""

    stored: StoredRows
    lines: list[str] = field(default_factory=list[str])
    calls: int = 0
    refused: int = 0

    async def look(self, operation: Operation, given: Mapping[str, Any], *, failure: str = "") -> None:
        """Note the changes since the last look, and the failure of a call, unless it is one of REFUSED_OPTIONS."""
        call = f"{operation.interface} {operation.name} {dict(given)}"
        changed = [line for line in await self.stored.look() if operation.name != "ask" or BEGINNING not in line]
        self.lines += [f"{call}: {line}" for line in changed]
        self.calls += 1
        refused = REFUSED_OPTIONS.get((operation.interface, operation.name), set())
        is_refused = bool({*given} & refused) or (operation.interface, operation.name) in REFUSED_TO_AGENTS
        self.refused += is_refused
        if bool(failure) != is_refused:
            self.lines.append(f"{call} {f'failed: {failure}' if failure else 'was not refused'}")

    def check(self) -> None:
        sys.stdout.write(f"{self.calls} calls, {self.refused} of them refused as expected\n")
        assert not self.lines, "\n".join(self.lines)


def of(interface: str) -> list[Operation]:
    reads = (one for one in list_operations() if one.effect == "reads" and one.interface == interface)
    return [one for one in reads if one.name not in {*RECORDED, "with-memory"}]  # a prompt with a context


def needed_inputs(operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    names = NEEDED_TOO.get(operation.verb, ())
    needed = [one for one in operation.parameters if one.is_required or one.name in names]
    return {one.name: choose_value(operation, one, values) for one in needed}


def each_call(operation: Operation, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The inputs of calls: those that are needed, and with each option in turn."""
    needed = needed_inputs(operation, values)
    yield needed
    for option in operation.options:
        if option.name not in needed and (operation.name, option.name) not in ACTING_OPTIONS:
            yield {**needed, option.name: choose_value(operation, option, values)}


def previewed(interface: str) -> list[Operation]:
    """What can show beforehand what it would do."""
    return [
        one
        for one in list_operations()
        if one.effect != "reads" and one.interface == interface
        if one.name != NEEDS_A_CLUSTER and {option.name for option in one.options} & {*CONFIRMING, *PREVIEWING}
    ]


def preview_inputs(operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    flags: dict[str, Any] = {
        one.name: [] if one.schema.get("type") == "array" else PREVIEWING[one.name]
        for one in operation.options
        if one.name in PREVIEWING
    }
    return {**needed_inputs(operation, values), **flags}


def to_request(operation: Operation, given: dict[str, Any]) -> dict[str, Any]:
    """The parts of an HTTP request."""
    places = {one.name: one.place for one in operation.parameters}
    path = operation.path
    for name in [name for name in given if places[name] == "path"]:
        path = path.replace(f"{{{name}}}", str(given[name])).replace(f"{{{name}:path}}", str(given[name]))
    parts: dict[str, Any] = {"method": operation.method, "url": path}
    if query := {name: value for name, value in given.items() if places[name] == "query"}:
        parts["params"] = query
    if any(place == "body" for place in places.values()):
        parts["json"] = {name: value for name, value in given.items() if places[name] == "body"}
    if operation.name == "import_memories":
        parts |= {"content": LINES, "headers": {"Content-Type": "application/x-ndjson"}}
    return parts


async def ask(http: httpx2.AsyncClient, operation: Operation, given: dict[str, Any]) -> int:
    """The status of a request; of a stream only the beginning is read."""
    async with http.stream(**to_request(operation, given)) as answer:
        if "event-stream" not in answer.headers.get("content-type", ""):
            await answer.aread()
        return answer.status_code


async def test_no_route_that_reads_changes_a_row(api: Api, stored: StoredRows, values: dict[str, Any]) -> None:
    changes = Changes(stored)
    async with api.http(**{"X-Newton-Agent": AGENT}) as http:
        for operation in of("http"):
            status = await ask(http, operation, given := needed_inputs(operation, values))
            await changes.look(operation, given, failure=str(status) if status >= 400 else "")
        for operation in previewed("http"):
            status = await ask(http, operation, given := preview_inputs(operation, values))
            is_wrong = status >= 400 and status != NO_MODEL
            await changes.look(operation, given, failure=str(status) if is_wrong else "")
    changes.check()


@pytest.mark.slow
async def test_no_option_of_a_route_that_reads_changes_a_row(
    api: Api, stored: StoredRows, values: dict[str, Any]
) -> None:
    changes = Changes(stored)
    async with api.http(**{"X-Newton-Agent": AGENT}) as http:
        for operation in of("http"):
            for given in each_call(operation, values):
                status = await ask(http, operation, given)
                assert status < 500, (operation.name, given)
                await changes.look(operation, given, failure=str(status) if status >= 400 else "")
    changes.check()


@pytest.mark.slow
async def test_no_tool_resource_or_prompt_that_reads_changes_a_row(
    api: Api, stored: StoredRows, values: dict[str, Any]
) -> None:
    changes = Changes(stored)
    async with speaking(api.url, await api.token(AGENT)) as client:
        await stored.look()  # the token is new
        for operation in of("mcp"):
            for given in each_call(operation, values):
                result = await client.call_tool(operation.name, given)
                await changes.look(operation, given, failure=str(result.content) if result.is_error else "")
        for operation in previewed("mcp"):
            given = preview_inputs(operation, values)
            result = await client.call_tool(operation.name, given)
            await changes.look(operation, given, failure=str(result.content) if result.is_error else "")
        for operation in of("resource"):
            uri = re.sub(r"\{\?.*", "", operation.name).format(**values)
            await client.read_resource(uri)
            await changes.look(operation, {"uri": uri})
        for operation in of("prompt"):
            await client.get_prompt(operation.name, {})
            await changes.look(operation, {})
        await client.list_resources()
        assert await stored.look() == []
    changes.check()


@pytest.mark.slow
async def test_no_page_that_reads_changes_a_row(api: Api, stored: StoredRows, values: dict[str, Any]) -> None:
    changes = Changes(stored)
    query = {"q": "kettle", "subject": values["entity"], "name": values["entity"], "into": values["into"], "other": "1"}
    async with browser(api, **{"X-Newton-Agent": AGENT}) as person:
        for operation in of("dashboard"):
            given = needed_inputs(operation, values)
            path = to_request(operation, given)["url"]
            for shown in ({}, {**query, "other": values["other_id"]}):
                if operation.method == "GET":
                    answer = await person.http.get(path, params=shown)
                else:
                    answer = await person.send(path, text=values["text"], description="Tea", confidence="0.5")
                is_wrong = answer.status_code >= 500 or (answer.status_code >= 400 and bool(shown))
                await changes.look(operation, {**given, **shown}, failure=answer.text[-300:] if is_wrong else "")
    changes.check()


def to_words(operation: Operation, given: Mapping[str, Any]) -> list[str]:
    """A command line."""
    words, places = operation.name.split(), {one.name: one for one in operation.parameters}
    for name, value in given.items():
        parameter = places[name]
        texts = list(map(str, cast("list[object]", value) if isinstance(value, list) else [value]))
        if parameter.schema.get("type") == "boolean":
            words.append(parameter.place)
        elif parameter.place.startswith("-"):
            words += [word for text in texts for word in (parameter.place, text)]
        else:
            words += texts
    return words


@pytest.fixture
async def house(api: Api, dsn: str, stored: StoredRows, values: dict[str, Any], tmp_path: Path) -> Path:
    """The folder of commands on the same database, and the daemon of `api`."""
    (tmp_path / "newton.toml").write_text(f'database_url = "{dsn}"\nagent = "{AGENT}"\n', encoding="utf-8")
    (tmp_path / "token").write_text(OPERATOR, encoding="utf-8")
    values |= {"daemon": api.url, "token_file": str(tmp_path / "token"), "force": True, "agent": UNKNOWN_AGENT}
    await asyncio.to_thread(typed, tmp_path, "doctor")  # the first command stores the procedures that ship with Newton
    await stored.look()
    return tmp_path


@pytest.mark.slow
async def test_no_command_that_reads_changes_a_row(house: Path, stored: StoredRows, values: dict[str, Any]) -> None:
    changes = Changes(stored)
    for operation in of("cli"):
        for given in each_call(operation, values):
            done = await asyncio.to_thread(typed, house, *to_words(operation, given))
            is_unknown = given.get("agent") == UNKNOWN_AGENT and done.returncode in EXPECTED_EXITS[1:]
            changes.refused += is_unknown
            is_wrong = done.returncode != 0 and not is_unknown
            await changes.look(operation, given, failure=done.stderr[-300:] if is_wrong else "")
    changes.check()


async def run_command(house: Path, *words: str) -> Done:
    """Run a command in which nobody types anything: in this process, unless it handles signals."""
    if words[0] in HANDLE_SIGNALS:
        return await piped(house, "", *words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        return await asyncio.to_thread(typed, house, *words)


@pytest.mark.slow
async def test_no_command_that_shows_what_it_would_do_changes_a_row(
    house: Path, stored: StoredRows, values: dict[str, Any]
) -> None:
    await run_command(house, "ask", "Hello.", "--private")
    await stored.look()  # a turn begins with what earlier ones left to do
    changes = Changes(stored)
    for operation in previewed("cli"):
        paths = values["imported"] if operation.name == "import" else [values["path"]]
        for path in paths:
            given = {**preview_inputs(operation, {**values, "path": path}), **PREVIEWED.get(operation.name, {})}
            done = await run_command(house, *to_words(operation, given))
            is_shown = done.returncode == 0 or (done.returncode == 2 and "needs confirmation" in done.stderr)
            changes.refused += done.returncode != 0
            await changes.look(operation, given, failure="" if is_shown else done.stderr[-300:])
    changes.check()


@pytest.mark.slow
async def test_no_slash_command_of_the_chat_alone_changes_a_row(house: Path, stored: StoredRows) -> None:
    # tests/conformance has those that other interfaces offer too
    lines = [one.name for one in of("chat") if one.verb not in load_operations()]
    assert len(lines) > 3
    await piped(house, "/help\n", "chat", "--session", SESSION)  # a chat begins with what is left to do
    await stored.look()
    done = await piped(house, "\n".join(lines), "chat", "--session", SESSION)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done
    changed = [line for line in await stored.look() if BEGINNING not in line]
    assert not changed, "\n".join([*changed, done.stdout])


async def test_what_is_written_is_seen(db: Database, stored: StoredRows) -> None:
    assert await stored.look() == []
    async with db.transaction(derive_agent_id(AGENT)) as tx:
        await tx.execute("update memory.memories set uses = uses + 1, accessed_at = now()")
    assert await stored.look() == [], "that is what reading may do"
    planted = {
        "memory.forgotten": "update memory.forgotten set reason = 'another'",
        "memory.memories": "update memory.memories set importance = coalesce(importance, 0) + 1 where kind = 'fact'",
        "runtime.events": "delete from runtime.events",
        "memory.outbox": "delete from memory.outbox",
    }
    for table, statement in planted.items():
        await stored.conn.execute(statement)
        changed = await stored.look()
        assert changed and {line.split(" ")[1] for line in changed} == {f"{table}:"}, (table, changed)


def test_every_operation_is_classified() -> None:
    names = {(one.interface, one.name) for one in list_operations()}
    assert len(names) > 300
    named = {name for row in load_verbs() for cell in row.cells.values() for name in cell}
    assert [name for row in load_verbs() for name in row.other_effects if name not in named] == []
    effects = {one.name: one.effect for one in list_operations() if one.interface == "mcp"}
    assert [name for name, tool in TOOLS.items() if tool.effect != effects[name]] == []
