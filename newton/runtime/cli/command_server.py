"""Server in the daemon that runs the commands and hooks of local callers. See `newton.runtime.command_socket`."""

import asyncio
import json
import os
import socket
import traceback
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from newton import __version__
from newton.environment import SettingSources
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.bootstrap import find_or_create_agent
from newton.runtime.cli.app import run_hosted_command
from newton.runtime.cli.command_context import CommandContext, RunInProcessError, TerminalStyle, use_context
from newton.runtime.command_socket import CommandSocket, Message, encode, is_own_peer
from newton.runtime.daemon_state import DaemonState
from newton.runtime.error_status import EXIT_FAILED, EXIT_INTERRUPTED
from newton.runtime.hooks.hook_client import read_namespace
from newton.runtime.hooks.hook_options import PROJECT_VARIABLE, HookOptions
from newton.runtime.hooks.hook_runner import run_hook
from newton.runtime.wiring import AgentServices
from newton.settings import Settings

MAX_CONNECTIONS = 32  # a further caller runs its command itself
MAX_HOOKS = 8  # events of coding agents that are handled at the same time
MAX_REQUEST_BYTES = 8 * 1024 * 1024
REQUEST_SECONDS = 10.0  # timeout for the request of a caller


@dataclass(slots=True, kw_only=True)
class CallerTerminal:
    """Terminal of a caller: output is sent to the caller's process, which prints it."""

    writer: asyncio.StreamWriter
    can_ask: bool
    has_progress: bool
    width: int | None = None
    shown_style: TerminalStyle = "text"
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
        self.writer.write(encode(message))


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonHost:
    """Access to the daemon's agents for one caller, whose settings must equal those of the daemon."""

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
        yield await self.agents.get_current(settings.agent)


@dataclass(slots=True, kw_only=True)
class CommandServer:
    """Server that accepts commands on the Unix domain socket of the data folder."""

    agents: AgentRegistry
    state: DaemonState
    _socket: CommandSocket | None = None
    _server: asyncio.Server | None = None
    _connections: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _is_stopping: bool = False
    # of their own: the requests of a hook need the threads of the event loop, for example to compute embeddings
    _hook_threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(MAX_HOOKS, "hook"))

    async def start(self) -> None:
        """Start listening. Raises SocketUnavailableError if the socket cannot be used."""
        self._socket = CommandSocket.listen(self.agents.default.settings.home)
        self._server = await asyncio.start_unix_server(
            self._accept, sock=self._socket.listener, limit=MAX_REQUEST_BYTES
        )

    async def stop(self, *, drain_seconds: float) -> None:
        """Accept no more callers, wait `drain_seconds` for the running commands, and cancel those still running."""
        self._is_stopping = True
        if self._socket is None or self._server is None:
            return
        self._server.close()
        self._socket.close()
        if self._connections:
            await asyncio.wait(self._connections, timeout=drain_seconds)
        running = set(self._connections)
        for connection in running:
            connection.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._hook_threads.shutdown(wait=False, cancel_futures=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(OSError, ValueError):  # the caller has gone, or sends no message
                if _is_own_user(writer) and len(self._connections) <= MAX_CONNECTIONS and not self._is_stopping:
                    writer.write(encode({"version": __version__}))
                    await self._serve(reader, writer)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(REQUEST_SECONDS):
            line = await reader.readline()
        request: Mapping[str, Any] = json.loads(line) if line else {}
        if "argv" in request:
            await self._run(request, reader, writer)
        elif "hook" in request:
            writer.write(encode(await self._run_hook(request["hook"])))
            await writer.drain()

    async def _run(
        self, request: Mapping[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        terminal = CallerTerminal(
            writer=writer,
            can_ask=request["asks"],
            has_progress=request["shows_progress"],
            width=request["columns"],
            shown_style=request["style"],
        )
        sources = _decode_sources(request["sources"])
        host = DaemonHost(agents=self.agents, state=self.state, sources=sources)
        context = CommandContext(terminal=terminal, sources=sources, host=host)
        command = asyncio.create_task(_run_command(context, request["argv"]))
        watcher = asyncio.create_task(_cancel_on_message(reader, command))
        try:
            await asyncio.wait({command})
        finally:
            watcher.cancel()
            command.cancel()
            await asyncio.wait({command})
        writer.write(encode(_to_result(command, terminal)))
        await writer.drain()

    async def _run_hook(self, request: Mapping[str, Any]) -> Message:
        """Handle an event of a coding agent in a thread, because it reads files and waits for requests to this daemon.

        Decline it if the caller sees other files than the daemon.
        """
        if request["namespace"] != read_namespace():
            return {"declined": None}
        options = HookOptions(**request["options"])._replace(data_dir=str(self.agents.default.settings.home))
        project = {PROJECT_VARIABLE: request["project_dir"]} if request["project_dir"] else {}
        loop = asyncio.get_running_loop()
        output, notes = await loop.run_in_executor(self._hook_threads, run_hook, request["input"], options, project)
        return {"output": output, "notes": notes}


async def _run_command(context: CommandContext, argv: list[str]) -> int:
    with use_context(context):
        return await run_hosted_command(argv)


async def _cancel_on_message(reader: asyncio.StreamReader, command: "asyncio.Task[int]") -> None:
    """Cancel the command as soon as its caller sends any message or disconnects."""
    with suppress(OSError, ValueError):
        await reader.readline()
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


def _decode_sources(fields: Mapping[str, Any]) -> SettingSources:
    return SettingSources(**fields)


def _is_own_user(writer: asyncio.StreamWriter) -> bool:
    """Return True if the caller runs as the same system user as the daemon; this user is the operator."""
    # the transport's own socket object has no getsockopt
    with socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno())) as connection:
        return is_own_peer(connection)
