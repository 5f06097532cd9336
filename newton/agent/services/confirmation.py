"""Confirmation tokens of destructive actions: a caller sees what would happen, and confirms it with the token.

The token is a plain hash of the preview, because on the command line another process checks it.
"""

from newton.errors import ConflictError
from newton.memory.memory import digest

TOKEN_DIGITS = 16


def hash_preview(*parts: str) -> str:
    """Return a token that confirms the preview which `parts` describe completely. It is the same in every process."""
    return digest(*parts).hex()[:TOKEN_DIGITS]


def verify_preview(token: str | None, present: str) -> None:
    """Raise ConflictError unless `token` equals `present`, the token of the preview as it would be now."""
    if token != present:
        raise ConflictError(
            "The token is invalid: the data to change are no longer those of the preview.",
            hint="Send the request without a token; the answer has a new preview and a new token.",
        )
