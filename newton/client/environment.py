"""The URL and the token of the daemon, from arguments or environment variables."""

import os

from .errors import ApiError

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
DEFAULT_URL = "http://127.0.0.1:8700"
URL_VARIABLE, TOKEN_VARIABLE = "NEWTON_URL", "NEWTON_TOKEN"


def resolve_url(url: str | None) -> str:
    """Return `url`, NEWTON_URL or the default URL. Raises ApiError if its scheme is not http or https."""
    found = url or os.environ.get(URL_VARIABLE, "").strip() or DEFAULT_URL
    if not found.startswith(("http://", "https://")):
        detail = f"{found!r} is not the URL of a daemon."
        raise ApiError("config_error", detail, hint=f"Write the URL as {DEFAULT_URL}.", title="Invalid configuration")
    return found


def resolve_token(token: str | None) -> str:
    """Return `token` or NEWTON_TOKEN. Raises ApiError if there is none, or if an HTTP header cannot hold it."""
    found = token or os.environ.get(TOKEN_VARIABLE, "").strip()
    if not found or not found.isascii() or not found.isprintable():
        detail = "The token is invalid." if found else "No token is given."
        hint = (
            f"Set {TOKEN_VARIABLE}, or pass `token`; `newton tokens create NAME` on the daemon's host creates a token."
        )
        raise ApiError("config_error", detail, hint=hint, title="Invalid configuration")
    return found
