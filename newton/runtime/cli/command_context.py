"""The context of a running command: its terminal, the settings of its caller, and the daemon if one runs it."""

import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from newton.environment import SettingSources, is_dumb_terminal, wants_no_color

if TYPE_CHECKING:
    from newton.runtime.wiring import AgentServices
    from newton.settings import Settings

# What a terminal can show: only text, also styles such as bold, or colors, too.
TerminalStyle = Literal["text", "styles", "colors"]


class RunInProcessError(Exception):
    """Error of a command that the daemon cannot run, so that the caller's process must run it.

    `notice` is the reason, which is shown to the user; None shows nothing.
    """

    def __init__(self, notice: str | None = None) -> None:
        super().__init__(notice)
        self.notice = notice


class CommandTerminal(Protocol):
    """Interface to the standard streams of the process that called a command."""

    def write(self, text: str, *, to_stderr: bool = False) -> None: ...

    def flush(self, *, to_stderr: bool = False) -> None: ...

    def asks(self) -> bool:
        """Return True if standard input is a terminal, so that the user can answer questions."""
        ...

    def shows_progress(self) -> bool:
        """Return True if standard error is a terminal that can replace a line, so that progress can be shown."""
        ...

    def has_open_line(self) -> bool:
        """Return True if the last line of standard output was not ended."""
        ...

    def columns(self) -> int | None:
        """Return the width of the terminal in characters; None if standard output is not a terminal."""
        ...

    def style(self) -> TerminalStyle:
        """Return what standard output can show: only text, also styles such as bold, or also colors."""
        ...

    def ask(self, question: str) -> str:
        """Print a question and return the line that the user types."""
        ...

    def read_input(self) -> str:
        """Return all of standard input. Raises RunInProcessError in the daemon, which does not have it."""
        ...


class AgentHost(Protocol):
    """Interface by which a command that runs inside the daemon opens agents of the daemon."""

    def open_agent(
        self, settings: "Settings", *, on_new_agent: Callable[[str], None] | None = None
    ) -> "AbstractAsyncContextManager[AgentServices]":
        """Open the agent that `settings` name. Raises RunInProcessError if the daemon has other settings."""
        ...


class ProcessTerminal:
    """Terminal that uses the standard streams of this process."""

    _is_line_open = False

    def write(self, text: str, *, to_stderr: bool = False) -> None:
        if text and not to_stderr:
            self._is_line_open = not text.endswith("\n")
        (sys.stderr if to_stderr else sys.stdout).write(text)

    def flush(self, *, to_stderr: bool = False) -> None:
        (sys.stderr if to_stderr else sys.stdout).flush()

    def asks(self) -> bool:
        return sys.stdin.isatty()

    def shows_progress(self) -> bool:
        return sys.stderr.isatty() and not is_dumb_terminal()

    def has_open_line(self) -> bool:
        return self._is_line_open

    def columns(self) -> int | None:
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

    def style(self) -> TerminalStyle:
        if not sys.stdout.isatty() or is_dumb_terminal():
            return "text"
        return "styles" if wants_no_color() else "colors"

    def ask(self, question: str) -> str:
        return input(question)

    def read_input(self) -> str:
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """The terminal, setting sources and daemon of a running command.

    `sources` are the settings of the caller and `host` is the daemon; both are None if the command runs in a process of
    its own. `project` is the project that the command line names; None leaves it to the settings.
    """

    terminal: CommandTerminal = field(default_factory=ProcessTerminal)
    sources: SettingSources | None = None
    host: AgentHost | None = None
    project: str | None = None


_OWN_PROCESS = CommandContext()
_context: ContextVar[CommandContext] = ContextVar("command_context", default=_OWN_PROCESS)


def current_context() -> CommandContext:
    """Return the context of the running command: its terminal, setting sources and daemon."""
    return _context.get()


def current_terminal() -> CommandTerminal:
    """Return the terminal of the running command."""
    return _context.get().terminal


@contextmanager
def use_context(context: CommandContext) -> Generator[None]:
    """Make `context` the current one within the block, and in the asyncio tasks and threads that the block starts."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)


def require_own_process() -> None:
    """Raise RunInProcessError in a daemon. Commands call it before they use the files or the network of the caller."""
    if _context.get().host is not None:
        raise RunInProcessError
