"""The URL of a daemon and a token for it, from the options of a command and from the environment."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter

from newton.client.environment import LOOPBACK_HOSTS
from newton.environment import read_token
from newton.errors import ConfigError, InputError
from newton.runtime.access import operator_token
from newton.settings import Settings

TOKEN_HINT = (
    "Give --token-file or set NEWTON_TOKEN. `newton tokens create NAME` on the daemon's machine creates a token."
)

DaemonOption = Annotated[
    str | None,
    Parameter(
        help="URL of a daemon, such as http://127.0.0.1:8700; if omitted, the data folder of this machine is used."
    ),
]
TokenFileOption = Annotated[
    Path | None,
    Parameter(
        help="File that contains a token for --daemon (default: NEWTON_TOKEN, or the operator's token on this machine)."
    ),
]


def check_daemon_url(url: str) -> str:
    """Return the URL of a daemon unchanged. Raises InputError if it is not an HTTP URL without a user name."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        valid = False
    if not valid:
        raise InputError(f"{url!r} is not the URL of a daemon.", hint="Write the URL as http://127.0.0.1:8700.")
    return url


def find_token(settings: Settings, url: str, file: Path | None) -> str:
    """Return the token in `file`, else NEWTON_TOKEN, else the operator's token for a `url` on this machine.

    Raises ConfigError if there is none.
    """
    if file is not None:
        return _check_token(_read_token_file(file), str(file))
    if (token := read_token()) is not None:
        return _check_token(token, "NEWTON_TOKEN")
    if urlsplit(url).hostname in LOOPBACK_HOSTS and (settings.home / operator_token.TOKEN_FILE).exists():
        return operator_token.load_or_create_token(settings.home)
    raise ConfigError("No token for the daemon is given.", hint=TOKEN_HINT)


def _read_token_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise InputError(
            f"{file} cannot be read: {error.strerror}.", hint="Give a file that contains a token."
        ) from None


def _check_token(text: str, source: str) -> str:
    if not text.isascii() or not text.isprintable() or not text or " " in text:
        raise InputError(f"{source} contains no valid token.", hint=TOKEN_HINT)
    return text
