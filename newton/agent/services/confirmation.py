"""Confirmation tokens of destructive actions: a caller sees what would happen, and confirms it with the token.

The token for deleting one memory is an HMAC of the action, valid for LIFETIME. Its key is created at the start of the
process and not stored, so a restart invalidates the token. The token of a preview is a plain hash of the preview,
because on the command line another process checks it.
"""

import hmac
import secrets
from datetime import UTC, datetime, timedelta

from newton.errors import ConflictError
from newton.memory.memory import digest

LIFETIME = timedelta(minutes=10)
MAC_DIGITS = 16

_KEY = secrets.token_bytes(32)


def create_token(*parts: str, now: datetime) -> str:
    """Return a token, valid for LIFETIME, that confirms the action which `parts` describe completely."""
    expires_at = int((now + LIFETIME).timestamp())
    return f"{expires_at:x}-{_sign(expires_at, parts)}"


def verify_token(token: str, *parts: str, now: datetime) -> None:
    """Raise ConflictError unless the token was created for the same `parts` and has not expired.

    `parts` are the id of the agent and the state of the memories concerned; a change of these invalidates the token.
    """
    time, _, mac = token.partition("-")
    try:
        expires_at = int(time, 16)
        is_valid = hmac.compare_digest(mac.encode(), _sign(expires_at, parts).encode())
        is_current = is_valid and now <= datetime.fromtimestamp(expires_at, UTC)
    except (ValueError, OverflowError, OSError):
        is_current = False
    if not is_current:
        raise ConflictError(
            "The confirmation token is invalid: it has expired, or the memory has changed.",
            hint="Send the request without a token; the answer lists what would be deleted, and has a new token.",
        )


def hash_preview(*parts: str) -> str:
    """Return a token that confirms the preview which `parts` describe completely. It is the same in every process."""
    return digest(*parts).hex()[:MAC_DIGITS]


def verify_preview(token: str | None, present: str) -> None:
    """Raise ConflictError unless `token` equals `present`, the token of the preview as it would be now."""
    if token != present:
        raise ConflictError(
            "The token is invalid: the data to change are no longer those of the preview.",
            hint="Send the request without a token; the answer has a new preview and a new token.",
        )


def _sign(expires_at: int, parts: tuple[str, ...]) -> str:
    return hmac.new(_KEY, digest(str(expires_at), *parts), "sha256").hexdigest()[:MAC_DIGITS]
