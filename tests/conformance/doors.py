"""The doors of one running daemon: each runs an operation with the same arguments and returns its data or its error."""

import io
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple, cast

from newton.agent.loop.turn import TurnRunner
from newton.client import ApiError
from newton.environment import SettingSources, read_sources
from newton.errors import NewtonError
from newton.operations.caller import OperationCaller
from newton.operations.declaration import Door, Operation
from newton.operations.runner import parse_arguments, run_operation, to_data
from newton.runtime.chat_backend.local import LocalAgent
from newton.runtime.chat_backend.remote import RemoteAgent
from newton.runtime.cli.app import run_hosted_command
from newton.runtime.cli.command_context import CommandContext, TerminalStyle, use_context
from newton.runtime.cli.command_server import DaemonHost
from newton.runtime.cli.operation_commands import list_options
from newton.runtime.cli.talk import operation_lines
from newton.runtime.wiring import AgentServices
from tests.system.served import Api

Arguments = Mapping[str, Any]


class Outcome(NamedTuple):
    """What a door answered: the data of the result, or the code of the error."""

    data: Any = None
    code: str | None = None


@dataclass(slots=True)
class RecordedTerminal:
    """A terminal that records what a command prints."""

    out: io.StringIO = field(default_factory=io.StringIO)
    err: io.StringIO = field(default_factory=io.StringIO)

    def write(self, text: str, *, to_stderr: bool = False) -> None:
        (self.err if to_stderr else self.out).write(text)

    def flush(self, *, to_stderr: bool = False) -> None: ...

    def asks(self) -> bool:
        return False

    def shows_progress(self) -> bool:
        return False

    def has_open_line(self) -> bool:
        return False

    def columns(self) -> int | None:
        return None

    def style(self) -> TerminalStyle:
        return "text"

    def ask(self, question: str) -> str:
        raise EOFError(question)

    def read_input(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class DoorCall:
    """An operation with its arguments, for an agent of a daemon whose admin token is `token`."""

    api: Api
    agent: str
    token: str
    operation: Operation
    arguments: Arguments

    async def services(self) -> AgentServices:
        return await self.api.app.state.agents.get(self.agent)


async def call_http(call: DoorCall, key: str | None = None) -> Outcome:
    operation, given = call.operation, dict(call.arguments)
    path = operation.path.format(**{name: given.pop(name, "-") for name in operation.path_fields})
    query, body = (given, None) if operation.method in ("GET", "DELETE") else (None, given or None)
    async with call.api.http(call.token, **({"Idempotency-Key": key} if key else {})) as http:
        response = await http.request(operation.method, path, params=query, json=body)
    body = response.json()
    return Outcome(body) if response.is_success else Outcome(code=body["type"].removeprefix("urn:newton:"))


async def call_client(call: DoorCall) -> Outcome:
    async with call.api.client(call.token) as client:
        try:
            return Outcome(await client.run_operation(call.operation.name, call.arguments))
        except ApiError as error:
            return Outcome(code=error.code)


async def call_mcp(call: DoorCall) -> Outcome:
    async with call.api.client(call.token) as client:
        try:
            return Outcome(await client.call_tool(call.operation.name, call.arguments))
        except ApiError as error:
            return Outcome(code=error.code)


def to_command_line(operation: Operation, arguments: Arguments) -> list[str]:
    """The words of the command with these arguments."""
    assert operation.command is not None
    words = operation.command.split()
    for option, path in list_options(operation).items():
        value = reduce(lambda known, name: known.get(name, {}), path, arguments)
        if path[0] not in operation.positional and value != {}:
            for one in _to_list(value):
                words += [f"--{option.replace('_', '-')}", *([] if one is True else [str(one)])]
    return [*words, *(str(arguments[name]) for name in operation.positional if name in arguments)]


async def call_command(call: DoorCall) -> Outcome:
    state, terminal = call.api.app.state, RecordedTerminal()
    sources: SettingSources = read_sources()
    host = DaemonHost(agents=state.agents, state=state.daemon_state, sources=sources)
    yes = ["--yes"] if "question" in call.operation.options else []
    words = [*to_command_line(call.operation, call.arguments), *yes, "--json", "--agent", call.agent]
    with use_context(CommandContext(terminal=terminal, sources=sources, host=host)):
        await run_hosted_command(words)
    if errors := terminal.err.getvalue():
        return Outcome(code=json.loads(errors)["error"]["code"])
    return Outcome(json.loads(terminal.out.getvalue()))


def _to_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def to_line(command: operation_lines.SlashCommand, arguments: Arguments) -> str:
    """The words of a slash command after its name: the options, then the other values."""
    options = [
        f'--{name.replace("_", "-")} "{one}"' for name in command.options for one in _to_list(arguments.get(name, []))
    ]
    words = [str(arguments[name]) for name in command.parameters if name in arguments]
    quoted = [f'"{word}"' for word in words[:-1]]
    return " ".join([*options, *quoted, *words[-1:]])


async def call_chat(call: DoorCall) -> Outcome:
    newton = await call.services()
    turn_runner: TurnRunner = newton.turn_runner(None)
    return await _call_backend(call, LocalAgent(newton=newton, turn_runner=turn_runner))


async def call_remote_chat(call: DoorCall) -> Outcome:
    async with call.api.client(call.token) as client:
        info = await client.get_token_info()
        return await _call_backend(call, RemoteAgent(client=client, token_info=info))


async def _call_backend(call: DoorCall, backend: LocalAgent | RemoteAgent) -> Outcome:
    command = operation_lines.SLASH_COMMANDS[f"/{call.operation.name.replace('_', '-')}"]
    try:
        given = operation_lines.parse_arguments(command, to_line(command, call.arguments), session="s")
        result = await backend.run_operation(call.operation, given)
    except (NewtonError, ApiError) as error:
        return Outcome(code=error.code)
    return Outcome(to_data(call.operation, result))


async def call_model(call: DoorCall) -> Outcome:
    """Run the operation directly with the trust of a model, which is what a door for models does."""
    caller = OperationCaller(newton=(await call.services()).with_trust("agent"), origin="mcp")
    try:
        given = parse_arguments(call.operation, call.arguments)
        outcome = await run_operation(call.operation, given, caller)
    except NewtonError as error:
        return Outcome(code=error.code)
    return Outcome(to_data(call.operation, outcome.result, shortens_ids=True))


DoorFunction = Callable[[DoorCall], Awaitable[Outcome]]


class PlacedDoor(NamedTuple):
    """A door, and the interface of which it is one."""

    interface: Door
    call: DoorFunction


# Each person's door is compared with HTTP, and MCP with a call by a model.
PERSONS: Mapping[str, PlacedDoor] = {
    "http": PlacedDoor("http", call_http),
    "client": PlacedDoor("client", call_client),
    "cli": PlacedDoor("cli", call_command),
    "chat": PlacedDoor("chat", call_chat),
    "remote chat": PlacedDoor("chat", call_remote_chat),
}
MODELS: Mapping[str, PlacedDoor] = {"model": PlacedDoor("mcp", call_model), "mcp": PlacedDoor("mcp", call_mcp)}
