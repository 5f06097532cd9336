"""The operator's token: valid for every agent, stored in a file that only the user of the daemon can read."""

import hmac
import os
import secrets
from pathlib import Path

from newton.errors import ConfigError
from newton.runtime.access.token_text import encode

PREFIX = "nwo_"
TOKEN_FILE = "operator.token"


def load_or_create_token(home: Path) -> str:
    """Return the operator's token; create its file on first use.

    Raises ConfigError if the file contains no token or if other users can read it.
    """
    path = home / TOKEN_FILE
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return read_token(path)
    text = PREFIX + encode(secrets.token_bytes(32))
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    return text


def is_same_token(candidate: str, token: str) -> bool:
    """Return whether two tokens are equal; the comparison takes constant time."""
    return hmac.compare_digest(candidate.encode(), token.encode())


def read_token(path: Path) -> str:
    """Return the token in a file. Raises OSError if the file cannot be read, and ConfigError if it has no token or
    other users can read it.
    """
    if path.stat().st_mode & 0o077:
        raise ConfigError(
            f"Other users can read {path}.", hint=f"Run `chmod 600 {path}`, or delete it to get a new token."
        )
    text = path.read_text(encoding="utf-8").strip()
    if not text.startswith(PREFIX):
        raise ConfigError(
            f"{path} contains no token.", hint=f"Delete {path}; the next start of the daemon creates a new token."
        )
    return text
