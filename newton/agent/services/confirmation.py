"""Confirmation tokens of destructive actions: a caller sees what would happen, and confirms it with the token.

The token is a plain hash of the preview, because on the command line another process checks it.
"""

from newton.errors import ConflictError
from newton.memory.memory import digest

TOKEN_DIGITS = 16


def hash_preview(*parts: str) -> str:
    """Return a token by which a caller confirms a preview. `parts` must describe the preview completely.

    It is the same in every process.
    """
    return digest(*parts).hex()[:TOKEN_DIGITS]


def verify_preview(token: str | None, present: str) -> None:
    """Raise ConflictError unless a caller's `token` is that of the preview as it would be now (`present`)."""
    if token != present:
        raise ConflictError(
            "The token is invalid: the data to change are no longer those of the preview.",
            hint="Send the request without a token; the answer has a new preview and a new token.",
        )
