"""Where a command runs: its terminal, the settings of its caller, and the daemon that runs it, if one does."""

import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from newton.environment import SettingSources

if TYPE_CHECKING:
    from newton.runtime.wiring import AgentServices
    from newton.settings import Settings


class RunInProcessError(Exception):
    """A daemon cannot run this command; its caller must. `notice` tells the user why, if it is worth knowing."""

    def __init__(self, notice: str | None = None) -> None:
        super().__init__(notice)
        self.notice = notice


class CommandTerminal(Protocol):
    """The standard streams of the caller of a command."""

    def write(self, text: str, *, to_stderr: bool = False) -> None: ...

    def flush(self, *, to_stderr: bool = False) -> None: ...

    def asks(self) -> bool:
        """Return whether standard input is a terminal, so that the user can be asked."""
        ...

    def shows_progress(self) -> bool:
        """Return whether standard error is a terminal."""
        ...

    def columns(self) -> int | None:
        """Return the width of the terminal; None if standard output is no terminal."""
        ...

    def ask(self, question: str) -> str:
        """Print a question and return the line that the user types."""
        ...


class AgentHost(Protocol):
    """A daemon, as the commands that it runs see it."""

    def open_agent(
        self, settings: "Settings", *, on_new_agent: Callable[[str], None] | None = None
    ) -> "AbstractAsyncContextManager[AgentServices]":
        """Open the services of an agent. Raises RunInProcessError if the daemon has other settings."""
        ...


class ProcessTerminal:
    """The standard streams of this process."""

    def write(self, text: str, *, to_stderr: bool = False) -> None:
        (sys.stderr if to_stderr else sys.stdout).write(text)

    def flush(self, *, to_stderr: bool = False) -> None:
        (sys.stderr if to_stderr else sys.stdout).flush()

    def asks(self) -> bool:
        return sys.stdin.isatty()

    def shows_progress(self) -> bool:
        return sys.stderr.isatty()

    def columns(self) -> int | None:
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None

    def ask(self, question: str) -> str:
        return input(question)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """The surroundings of a command. Without `host` and `sources`, it runs in its own process with its own settings."""

    terminal: CommandTerminal = field(default_factory=ProcessTerminal)
    sources: SettingSources | None = None
    host: AgentHost | None = None


_OWN_PROCESS = CommandContext()
_context: ContextVar[CommandContext] = ContextVar("command_context", default=_OWN_PROCESS)


def current_context() -> CommandContext:
    """Return the context of the running command."""
    return _context.get()


def current_terminal() -> CommandTerminal:
    """Return the terminal of the running command."""
    return _context.get().terminal


@contextmanager
def use_context(context: CommandContext) -> Generator[None]:
    """Run the block, and the tasks and threads that it starts, as a command of this context."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)


def require_own_process() -> None:
    """Raise RunInProcessError in a daemon, for what needs the caller's files or network."""
    if _context.get().host is not None:
        raise RunInProcessError
