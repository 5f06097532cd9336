"""Confirmation tokens of destructive actions.

The token of one memory is an HMAC over what is to be done, valid for a few minutes. Its key is drawn when the process
starts and is not stored, so a restart invalidates it. The token of a preview is a hash of it, because a command
confirms in another process what it has previewed.
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
    """Return a token for an action that `parts` describe completely."""
    expires_at = int((now + LIFETIME).timestamp())
    return f"{expires_at:x}-{_sign(expires_at, parts)}"


def verify_token(token: str, *parts: str, now: datetime) -> None:
    """Raise ConflictError unless the confirmation token was created for the same `parts` and has not expired.

    `parts` are the id of the agent and the state of the memories concerned, so any change of these makes it invalid.
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
            "The confirmation token is invalid: it has expired, or the memory has changed since.",
            hint="Send the request without a token: the answer lists what it would delete, and has a new token.",
        )


def hash_preview(*parts: str) -> str:
    """Return a token that confirms the preview that `parts` describe completely. Every process returns the same one."""
    return digest(*parts).hex()[:MAC_DIGITS]


def verify_preview(token: str | None, present: str) -> None:
    """Raise ConflictError unless the token is that of the `present` preview."""
    if token != present:
        raise ConflictError(
            "The token is invalid: what would be changed differs from the preview.",
            hint="Send the request without a token; the answer has a new preview and a new token.",
        )


def _sign(expires_at: int, parts: tuple[str, ...]) -> str:
    return hmac.new(_KEY, digest(str(expires_at), *parts), "sha256").hexdigest()[:MAC_DIGITS]
