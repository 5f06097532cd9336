"""Files with stored texts, which only their owner can read."""

import os
from pathlib import Path


def write_private_text(path: Path, text: str) -> None:
    """Write a text to a file that only its owner can read, also if the file exists. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        if path.is_file():  # not a device or a pipe
            os.fchmod(descriptor, 0o600)
        file.write(text)
