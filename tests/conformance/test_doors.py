"""Each operation does and answers the same through every door: data, rows, error codes and limits."""

import json
import re
import shlex
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from newton.db.pool import Database, Tx
from newton.heart.speakers import Speaker
from newton.operations.declaration import EXAMPLE, Operation, load_operations
from newton.operations.runner import TOKEN
from newton.runtime.access.tokens import TokenScope
from newton.runtime.cli.app import expand_default_command, parse_command_line
from newton.runtime.cli.operation_commands import to_arguments
from tests.conformance.doors import MODELS, PERSONS, DoorCall, DoorFunction, Outcome, PlacedDoor, call_http, call_mcp
from tests.conformance.worlds import BUILT_FIELDS, begin_world, build_contexts, list_changes, to_comparable
from tests.stored_rows import read_rows
from tests.system.served import Api, served

OPERATIONS = load_operations()
NAMES = sorted(OPERATIONS)
# It needs a token that reads, and runs outside a transaction: what it adds is the record of what was read.
RECORDED = {"context"}
WRITES = [name for name in NAMES if OPERATIONS[name].effect != "reads"]
# By the module that declares them: one API runs all of a module, because its start costs more than a call.
GROUPS: Mapping[str, list[Operation]] = {
    module: [one for one in OPERATIONS.values() if one.run.__module__ == module]
    for module in sorted({one.run.__module__ for one in OPERATIONS.values()})
}
of_each_module = pytest.mark.parametrize("operations", GROUPS.values(), ids=[one.rpartition(".")[2] for one in GROUPS])


class Answer(NamedTuple):
    """What came of a call: the comparable data or the code of the error, and the changed rows."""

    data: Any
    code: str | None
    changes: list[str]


@pytest_asyncio.fixture
async def api(db: Database, tmp_path: Path) -> AsyncGenerator[Api]:
    async with served(db, tmp_path) as running:
        yield running


@pytest_asyncio.fixture
async def owner(dsn: str) -> AsyncIterator[Tx]:
    connection = await asyncpg.connect(dsn)
    yield connection
    await connection.close()


def read_example(operation: Operation) -> dict[str, Any]:
    """The arguments of the example in the help: a command, or JSON if the operation has no command."""
    text = " ".join((operation.run.__doc__ or "").split()).partition(f"{EXAMPLE} ")[2]
    if not operation.command:
        return json.loads(text)
    text = text.removeprefix("newton ")
    _, bound = parse_command_line(expand_default_command(shlex.split(text)))
    return to_arguments(operation, bound.arguments)


def fill_ids(operation: Operation, arguments: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    lists = {
        name: [ids.get(name[:-1], one) for one in value] for name, value in arguments.items() if name[-4:] == "_ids"
    }
    return lists | {
        name: ids.get(f"{operation.name}.{name}", ids.get(name, value)) if name.endswith("_id") else value
        for name, value in arguments.items()
        if name not in lists
    }


@asynccontextmanager
async def _watch(owner: Tx) -> AsyncGenerator[list[str]]:
    changes: list[str] = []
    before = await read_rows(owner)
    yield changes
    changes += list_changes(before, await read_rows(owner))


class World(NamedTuple):
    """An agent in which the examples of the operations find what they act on, and an admin token for it."""

    agent: str
    token: str
    ids: Mapping[str, str]


async def begin_agent(api: Api, speaker: Speaker = "person") -> World:
    agent = uuid4().hex[:12]
    token = await api.token(agent, speaker=speaker)
    return World(agent, token, await begin_world(await api.app.state.agents.get(agent), speaker))


async def run(api: Api, owner: Tx, door: DoorFunction, operation: Operation, world: World) -> Answer:
    """Run the example of an operation through a door."""
    async with _watch(owner) as changes:
        given = fill_ids(operation, read_example(operation), world.ids)
        call = await confirm(DoorCall(api, world.agent, world.token, operation, given), door)
        outcome: Outcome = await door(call)
    if operation.name in RECORDED:  # the stored context has times and scores, which differ by milliseconds
        tables = {" ".join(one.split()[:2]) for one in changes}
        return Answer(to_comparable(outcome.data, BUILT_FIELDS), outcome.code, sorted(tables))
    return Answer(to_comparable(outcome.data), outcome.code, changes)


async def confirm(call: DoorCall, door: DoorFunction) -> DoorCall:
    """The call with the token that the same call without it returns, if the operation takes one."""
    if TOKEN not in call.operation.parameters:
        return call
    return replace(call, arguments={**call.arguments, TOKEN: (await door(call)).data[TOKEN]})


def compare(answers: Mapping[str, Answer]) -> None:
    if answers:
        first, *others = answers
        for name in others:
            for part, known, found in zip(Answer._fields, answers[first], answers[name], strict=True):
                assert found == known, f"{part} of {name} is not that of {first}"


def list_doors(operation: Operation, doors: Mapping[str, PlacedDoor]) -> dict[str, DoorFunction]:
    return {name: one.call for name, one in doors.items() if operation.is_at(one.interface)}


UNCHANGING = {"fit_relevance"}  # the world has too few contexts for a fit


def check(operation: Operation, answers: Mapping[str, Answer]) -> None:
    for one, answer in answers.items():
        assert answer.code is None, (operation.name, one, answer)
        writes = (operation.effect != "reads" and operation.name not in UNCHANGING) or operation.name in RECORDED
        assert bool(answer.changes) == writes, (operation.name, one, answer.changes)
    compare(answers)


# Each door needs a world of its own, so that the ordinary run has one of those that share the code of the client.
FEW = {name: PERSONS[name] for name in ("http", "cli", "remote chat")}


@of_each_module
@pytest.mark.parametrize(
    "speakers", [FEW, pytest.param(PERSONS, marks=pytest.mark.slow), MODELS], ids=["few persons", "persons", "models"]
)
async def test_a_write_is_the_same_at_every_door(
    api: Api, owner: Tx, operations: Sequence[Operation], speakers: Mapping[str, PlacedDoor]
) -> None:
    speaker: Speaker = "model" if speakers is MODELS else "person"
    for operation in (one for one in operations if one.name in {*WRITES, *RECORDED}):
        answers = {
            name: await run(api, owner, door, operation, await begin_agent(api, speaker))
            for name, door in list_doors(operation, speakers).items()
        }
        check(operation, answers)


@pytest.mark.parametrize("speakers", [PERSONS, MODELS], ids=["persons", "models"])
async def test_each_read_is_the_same_at_every_door(api: Api, owner: Tx, speakers: Mapping[str, PlacedDoor]) -> None:
    world = await begin_agent(api)  # one for all, because a read changes nothing
    await build_contexts(await api.app.state.agents.get(world.agent))
    for operation in (OPERATIONS[name] for name in NAMES if name not in {*WRITES, *RECORDED}):
        doors = list_doors(operation, speakers)
        check(operation, {one: await run(api, owner, door, operation, world) for one, door in doors.items()})


# By keyword of a schema, a value that is beyond the limit.
BEYOND: Mapping[str, Callable[[float], str | int]] = {
    "maxLength": lambda limit: "x" * (int(limit) + 1),
    "maximum": lambda limit: int(limit) + 1,
    "minimum": lambda limit: int(limit) - 1,
    "enum": lambda _: "nonsense",
}


def list_invalid(operation: Operation, arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Arguments of which one is beyond a limit that the schema states, or no value of its type."""
    for name, schema in operation.input_model.model_json_schema()["properties"].items():
        for key, exceed in BEYOND.items():
            options = [schema, *schema.get("anyOf", ())]
            limits = [one[key] for one in options if key in one]
            if limits:
                yield {**arguments, name: exceed(limits[0])}


@of_each_module
async def test_each_door_refuses_the_same_with_the_same_code(
    api: Api, owner: Tx, operations: Sequence[Operation]
) -> None:
    token = await api.token("ana", speaker="person")
    for operation in operations:
        arguments = read_example(operation)
        doors = list_doors(operation, {**PERSONS, **MODELS})
        tried = [(given, "invalid_input") for given in list_invalid(operation, arguments)]
        if ids := [one for one in arguments if one.endswith("_id")]:
            tried.append((arguments | {ids[0]: "abcdef01"}, "not_found"))
        for given, expected in tried:
            async with _watch(owner) as changes:
                calls = {one: await door(DoorCall(api, "ana", token, operation, given)) for one, door in doors.items()}
            codes = {one: outcome.code for one, outcome in calls.items()}
            assert codes == dict.fromkeys(doors, expected), (operation.name, given)
            assert changes == [], operation.name


STORED_ANSWER = "select response_body from runtime.idempotency_keys where key = $1"
TOLD = "French|villages|crate|planning|Bob|Robert|metric|the mill|Tea"  # words of persons in the world of the examples
LESS: Mapping[str, TokenScope] = {"write": "read", "admin": "write"}


@pytest.mark.slow
@of_each_module
async def test_a_write_needs_its_scope_and_takes_effect_once_for_a_key(
    api: Api, owner: Tx, operations: Sequence[Operation]
) -> None:
    for operation in (one for one in operations if one.name in WRITES):
        world = await begin_agent(api)
        given = fill_ids(operation, read_example(operation), world.ids)
        less = await api.token(world.agent, LESS[operation.scope], speaker="person")
        call = DoorCall(api, world.agent, less, operation, given)
        refusing = [call_http, call_mcp] if operation.is_at("mcp") else [call_http]
        assert {(await door(call)).code for door in refusing} == {"forbidden"}, operation.name
        call = await confirm(
            replace(call, token=await api.token(world.agent, operation.scope, speaker="person")), call_http
        )
        first = await call_http(call, key=operation.name)
        async with _watch(owner) as changes:
            again = await call_http(call, key=operation.name)
        assert (again.data, first.code, changes) == (first.data, None, []), operation.name
        stored = await owner.fetchval(STORED_ANSWER, operation.name)
        assert "report" in operation.options or json.loads(stored) == first.data, operation.name
        assert not re.search(TOLD, stored), operation.name
