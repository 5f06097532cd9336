"""Files with stored texts, which only their owner can read."""

import os
from pathlib import Path

from newton.errors import InputError
from newton.runtime.cli.command_context import current_terminal
from newton.runtime.cli.printing import fit_lines, say


def write_private_text(path: Path, text: str) -> None:
    """Write a text to a file that only its owner can read, also if the file exists. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        if path.is_file():  # not a device or a pipe
            os.fchmod(descriptor, 0o600)
        file.write(text)


def write_page(path: Path, content: str) -> None:
    """Write an HTML page to a file that only its owner can read.

    Raises InputError if the file cannot be written.
    """
    try:
        write_private_text(path, content)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}.", hint="Give a file in a writable folder."
        ) from None
    say(fit_lines(f"Written to {path}.", current_terminal().columns()), to_stderr=True)
