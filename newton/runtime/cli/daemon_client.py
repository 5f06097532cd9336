"""Client that runs a command in the daemon of the data folder. To start fast, it imports no third-party package."""

import json
import signal
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from io import BufferedReader
from pathlib import Path

from newton import __version__
from newton.environment import SettingSources, read_sources
from newton.errors import ConfigError, DaemonStoppedError
from newton.runtime import command_socket
from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.command_registry import HELP_FLAGS, IN_PROCESS_COMMANDS
from newton.runtime.cli.printing import print_error, say
from newton.runtime.command_socket import Message
from newton.runtime.error_status import EXIT_INTERRUPTED, get_error_status

GREETING_SECONDS = 2.0  # a daemon that does not greet within this time is too busy, or hangs


class CommandConnection:
    """Connection to a daemon that has sent its greeting and has the same version of Newton."""

    def __init__(self, connection: socket.socket, stream: BufferedReader) -> None:
        self._connection, self._stream = connection, stream

    def send(self, message: Message) -> None:
        """Send a message. Raises TypeError for a value that JSON cannot hold, OSError if the connection is broken."""
        self._connection.sendall(command_socket.encode(message))

    def read(self) -> Message | None:
        """Return the next message, or None if the daemon has closed the connection or does not answer in time."""
        try:
            line = self._stream.readline()
        except OSError:
            return None
        return json.loads(line) if line.endswith(b"\n") else None

    def close(self) -> None:
        self._stream.close()
        self._connection.close()


def run_in_daemon(argv: Sequence[str]) -> int | None:
    """Run a command line in the daemon and return its exit status.

    Return None if no daemon runs, the daemon declines, or the command needs this process. The caller then runs the
    command in this process; nothing has been printed except, in some cases, a notice with the reason.
    """
    if not argv or argv[0] in IN_PROCESS_COMMANDS or not HELP_FLAGS.isdisjoint(argv):
        return None
    try:
        sources = read_sources()
    except ConfigError:
        return None  # the command reports it
    try:
        daemon = open_connection(Path(sources.home))
        return None if daemon is None else _run(daemon, argv, sources)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def open_connection(home: Path) -> CommandConnection | None:
    """Connect to the daemon of a data folder. Return None if none of this version answers in time."""
    connection = command_socket.connect(home)
    if connection is None:
        return None
    connection.settimeout(GREETING_SECONDS)
    daemon = CommandConnection(connection, connection.makefile("rb"))
    greeting = daemon.read()
    if greeting is None or greeting.get("version") != __version__:
        daemon.close()
        return None
    connection.settimeout(None)
    return daemon


def encode_sources(sources: SettingSources) -> dict[str, object]:
    """Return the setting sources as a JSON object for a message to the daemon."""
    return {**asdict(sources), "file_values": dict(sources.file_values)}


def _run(daemon: CommandConnection, argv: Sequence[str], sources: SettingSources) -> int | None:
    terminal = current_terminal()
    with _cancel_on_interrupt(daemon):
        try:
            daemon.send(
                {
                    "argv": list(argv),
                    "sources": encode_sources(sources),
                    "asks": terminal.asks(),
                    "shows_progress": terminal.shows_progress(),
                    "columns": terminal.columns(),
                    "style": terminal.style(),
                }
            )
        except (TypeError, OSError):  # a value that JSON has not, which no setting accepts; a daemon that just ended
            return None
        while message := daemon.read():
            if "exit" in message:
                return message["exit"]
            if "declined" in message:
                _print_notice(message["declined"], argv)
                return None
            _print_output(message)
    return _report_lost_daemon(argv)


def _print_output(message: Message) -> None:
    """Print a part of the command's output."""
    terminal = current_terminal()
    to_stderr = "stderr" in message
    terminal.write(message["stderr"] if to_stderr else message["stdout"], to_stderr=to_stderr)
    if message.get("flush"):
        terminal.flush(to_stderr=to_stderr)


def _print_notice(notice: str | None, argv: Sequence[str]) -> None:
    """Print why the daemon did not run the command. With --json, print nothing: a program may parse both streams."""
    if notice and "--json" not in argv:
        say(f"({notice})", to_stderr=True)


def _report_lost_daemon(argv: Sequence[str]) -> int:
    error = DaemonStoppedError(
        "The daemon stopped before the command was finished.",
        hint="Each change is stored as a whole or not at all. Check whether it was stored, then repeat the command.",
    )
    status = get_error_status(error.code).exit_code
    current_terminal().flush()
    print_error(error, status, as_json="--json" in argv)
    return status


@contextmanager
def _cancel_on_interrupt(daemon: CommandConnection) -> Generator[None]:
    """Tell the daemon on the first Ctrl-C to cancel the command; raise KeyboardInterrupt on the second.

    At the end of the block, close the connection.
    """

    def cancel(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with suppress(OSError):
            daemon.send({"cancel": True})

    earlier = signal.getsignal(signal.SIGINT)
    if earlier is signal.default_int_handler:  # a command in the background ignores Ctrl-C
        signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, earlier)
        daemon.close()
