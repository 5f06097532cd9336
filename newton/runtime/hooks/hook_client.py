"""The process of `newton hook`: hands an event to the daemon of this machine, or handles the event itself.

Python starts for every event of a coding agent, so this module imports little. The daemon has all modules loaded and
handles the event with the function that this process would call: `newton.runtime.hooks.hook_runner.run_hook`.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from importlib import import_module
from pathlib import Path

from newton.runtime.daemon_socket import HOOKS_PATH, LocalRequest
from newton.runtime.hooks.hook_options import (
    PROJECT_VARIABLE,
    TOKEN_VARIABLE,
    URL_VARIABLE,
    HookOptions,
    InvalidFlagError,
    find_data_dir,
    parse_flags,
)

ACCEPT_SECONDS = 0.5  # a daemon that does not take the event within this time is too busy, or hangs
ANSWER_SECONDS = 5.0  # longer than a hook in the daemon waits for its requests
NAMESPACE_FILE = "/proc/self/ns/mnt"

HookAnswer = tuple[str, list[str]]  # the text for standard output, and lines for standard error


def is_hook_call(arguments: Sequence[str]) -> bool:
    """Return whether the arguments after `newton hook` run a hook: only flags, and the JSON that Codex appends."""
    head = arguments[0] if arguments else ""
    return not head or (head.startswith(("-", "{")) and "--help" not in arguments and "-h" not in arguments)


def main(arguments: Sequence[str]) -> int:
    """Run a hook with the arguments after `newton hook`, and return the exit status.

    The status is 0, or 1 for invalid flags; it is never 2, with which a hook would block the coding agent.
    """
    flags, argument = list(arguments), None
    if flags and flags[-1].startswith("{"):
        argument = flags.pop()
    try:
        options = parse_flags(flags)
    except InvalidFlagError as error:
        sys.stderr.write(f"newton hook: {error}\n")
        return 1
    env = os.environ  # noqa: TID251 (an import of newton.environment would take a part of the time of a hook)
    raw = argument if argument is not None else sys.stdin.buffer.read().decode("utf-8", "replace")
    output, notes = ask_daemon(raw, options, env) or _run_here(raw, options, env)
    if output:
        sys.stdout.write(output + "\n")
    for note in notes:
        sys.stderr.write(f"newton hook: {one_line(note)}\n")
    return 0


def ask_daemon(raw: str, options: HookOptions, env: Mapping[str, str]) -> HookAnswer | None:
    """Let the daemon of the data folder handle an event, over its socket, and return the answer.

    Return None if this process has to handle the event: the environment names another daemon, no daemon of this version
    answers in time, or the daemon sees other files. An event that is handled twice is stored once.
    """
    if env.get(URL_VARIABLE) or env.get(TOKEN_VARIABLE):
        return None
    request = LocalRequest.open(find_data_dir(options.data_dir, env), HOOKS_PATH, seconds=ACCEPT_SECONDS)
    if request is None:
        return None
    event = {
        "input": raw,
        "options": options._replace(data_dir=None)._asdict(),
        "project_dir": env.get(PROJECT_VARIABLE),
        "namespace": read_namespace(),
    }
    with closing(request), suppress(OSError):
        request.send(event, seconds=ANSWER_SECONDS)
        answer = request.read() or {}
        return (answer["output"], answer["notes"]) if "output" in answer else None
    return None


def read_namespace() -> str:
    """Return the mount namespace of this process, "" if unknown. Processes of one namespace see the same files.

    A service manager or a container may hide the transcripts of the coding agent from the daemon.
    """
    try:
        return str(Path(NAMESPACE_FILE).readlink())
    except OSError:
        return ""


def one_line(note: str) -> str:
    """Return a note as one line of at most 400 printable characters."""
    return "".join(char if char.isprintable() else " " for char in note)[:400]


def _run_here(raw: str, options: HookOptions, env: Mapping[str, str]) -> HookAnswer:
    return import_module("newton.runtime.hooks.hook_runner").run_hook(raw, options, env)
