"""Client that runs a command in the daemon of the data folder. To start fast, it imports no third-party package."""

import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from newton.environment import SettingSources, read_sources
from newton.errors import ConfigError, DaemonStoppedError
from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.command_registry import HELP_FLAGS, IN_PROCESS_COMMANDS
from newton.runtime.cli.printing import print_error, say
from newton.runtime.daemon_socket import COMMANDS_PATH, LocalRequest, Message
from newton.runtime.error_status import EXIT_INTERRUPTED, get_error_status

ACCEPT_SECONDS = 2.0  # a daemon that does not take the request within this time is too busy, or hangs


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
        request = LocalRequest.open(Path(sources.home), COMMANDS_PATH, seconds=ACCEPT_SECONDS)
        return None if request is None else _run(request, argv, sources)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _run(request: LocalRequest, argv: Sequence[str], sources: SettingSources) -> int | None:
    """Send a command to the daemon, print its output, and return its exit status; None if the daemon declines it."""
    terminal = current_terminal()
    shown = {"width": terminal.columns(), "shown_style": terminal.style(), "has_progress": terminal.shows_progress()}
    command = {
        "argv": list(argv),
        "sources": {**asdict(sources), "file_values": dict(sources.file_values)},
        "terminal": {**shown, "can_ask": terminal.asks()},
    }
    with _cancel_on_interrupt(request):
        try:
            request.send(command)
        except (TypeError, OSError):  # a value that JSON has not, which no setting accepts; a daemon that just ended
            return None
        while message := request.read():
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
def _cancel_on_interrupt(request: LocalRequest) -> Generator[None]:
    """End the request on the first Ctrl-C, which cancels the command; raise KeyboardInterrupt on the second.

    At the end of the block, close the connection.
    """

    def cancel(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        request.end()

    earlier = signal.getsignal(signal.SIGINT)
    if earlier is signal.default_int_handler:  # a command in the background ignores Ctrl-C
        signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, earlier)
        request.close()
