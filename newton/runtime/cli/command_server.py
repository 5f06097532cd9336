"""Server in the daemon that runs the commands of local callers. See `newton.runtime.daemon_socket`."""

import asyncio
import json
import traceback
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from newton.environment import SettingSources
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.bootstrap import find_or_create_agent
from newton.runtime.cli.app import run_hosted_command
from newton.runtime.cli.command_context import CommandContext, RunInProcessError, TerminalStyle, use_context
from newton.runtime.cli.formatting import print_new_project
from newton.runtime.daemon_socket import COMMANDS_PATH, Message, encode
from newton.runtime.daemon_state import DaemonState
from newton.runtime.error_status import EXIT_FAILED, EXIT_INTERRUPTED
from newton.runtime.wiring import AgentServices
from newton.settings import Settings

MAX_RUNNING = 32  # a further caller runs its command itself


@dataclass(slots=True, kw_only=True)
class CallerTerminal:
    """Terminal of a caller: `output` is sent to the caller's process, which prints it."""

    output: asyncio.Queue[bytes]
    can_ask: bool
    has_progress: bool
    width: int | None
    shown_style: TerminalStyle
    has_output: bool = False
    is_line_open: bool = False

    def write(self, text: str, *, to_stderr: bool = False) -> None:
        if text and not to_stderr:
            self.is_line_open = not text.endswith("\n")
        self._send({"stderr" if to_stderr else "stdout": text})

    def flush(self, *, to_stderr: bool = False) -> None:
        self._send({"stderr" if to_stderr else "stdout": "", "flush": True})

    def asks(self) -> bool:
        return self.can_ask

    def has_open_line(self) -> bool:
        return self.is_line_open

    def shows_progress(self) -> bool:
        return self.has_progress

    def columns(self) -> int | None:
        return self.width

    def style(self) -> TerminalStyle:
        return self.shown_style

    def ask(self, question: str) -> str:
        """Raise RunInProcessError, because waiting for the answer would block the daemon."""
        raise RunInProcessError

    def read_input(self) -> str:
        """Raise RunInProcessError, because the daemon does not have the standard input of the caller."""
        raise RunInProcessError

    def _send(self, message: Message) -> None:
        self.has_output = True
        self.output.put_nowait(encode(message))


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonHost:
    """Access to the daemon's agents for the command of one caller, whose settings must equal those of the daemon."""

    agents: AgentRegistry
    state: DaemonState
    sources: SettingSources

    @asynccontextmanager
    async def open_agent(
        self, settings: Settings, *, on_new_agent: Callable[[str], None] | None = None
    ) -> AsyncGenerator[AgentServices]:
        # in a thread, because it reads folders
        if differing := await asyncio.to_thread(self.state.list_differences, settings, self.sources):
            names = ", ".join(differing)
            raise RunInProcessError(
                f"The daemon did not run the command: it was started with another value of {names}."
                " The command runs without it."
            )
        scope = self.agents.default.scope
        await find_or_create_agent(scope.db, settings.agent, scope.clock, on_new_agent)
        newton = await self.agents.get_current(settings.agent)
        on_new = partial(print_new_project, agent=settings.agent) if on_new_agent else None
        yield await self.agents.enter_project(newton, settings.project, on_new=on_new)


@dataclass(slots=True, kw_only=True)
class CommandServer:
    """ASGI application that runs the commands of local callers."""

    agents: AgentRegistry
    state: DaemonState
    _running: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the command of a request. A refused request is not read, so that its caller can run the command."""
        is_known = scope["path"] == COMMANDS_PATH
        if not is_known or self._running >= MAX_RUNNING:
            await Response(status_code=503 if is_known else 404)(scope, receive, send)
            return
        self._running += 1
        try:
            request = await _read_request(receive)
            await send({"type": "http.response.start", "status": 200})
            last = {"exit": EXIT_INTERRUPTED} if request is None else await self._run(request, receive, send)
            await send({"type": "http.response.body", "body": encode(last)})
        finally:
            self._running -= 1

    async def _run(self, request: Message, receive: Receive, send: Send) -> Message:
        output = asyncio.Queue[bytes]()
        terminal = CallerTerminal(output=output, **request["terminal"])
        sources = SettingSources(**request["sources"])
        host = DaemonHost(agents=self.agents, state=self.state, sources=sources)
        context = CommandContext(terminal=terminal, sources=sources, host=host)
        command = asyncio.create_task(_run_command(context, request["argv"]))
        command.add_done_callback(lambda _: output.put_nowait(b""))
        watcher = asyncio.create_task(_cancel_on_message(receive, command))
        try:
            while piece := await output.get():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            watcher.cancel()
            command.cancel()
            await asyncio.wait({command})
        last = _to_result(command, terminal)
        if not output.empty():  # a traceback
            await send({"type": "http.response.body", "body": output.get_nowait(), "more_body": True})
        return last


async def _read_request(receive: Receive) -> Message | None:
    """Return the message of a request, after which the request stays open; None if the caller has ended it already."""
    line = b""
    while not line.endswith(b"\n"):
        message = await receive()
        if not message.get("more_body"):  # also without a connection
            return None
        line += message["body"]
    return json.loads(line)


async def _run_command(context: CommandContext, argv: list[str]) -> int:
    with use_context(context):
        return await run_hosted_command(argv)


async def _cancel_on_message(receive: Receive, command: "asyncio.Task[int]") -> None:
    """Cancel the command as soon as its caller ends the request or disconnects."""
    await receive()
    command.cancel()


def _to_result(command: "asyncio.Task[int]", terminal: CallerTerminal) -> Message:
    """Return the last message to the caller of an ended command: its exit status, or that the daemon declines it."""
    if command.cancelled():
        return {"exit": EXIT_INTERRUPTED}
    error = command.exception()
    if error is None:
        return {"exit": command.result()}
    if isinstance(error, RunInProcessError) and not terminal.has_output:
        return {"declined": error.notice}
    terminal.write("".join(traceback.format_exception(error)), to_stderr=True)
    return {"exit": EXIT_FAILED}
