"""Connection of `newton chat` and `newton ask` to an agent, on this machine or in a daemon."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter

from newton.client import ApiError, Client
from newton.client.environment import LOOPBACK_HOSTS
from newton.environment import read_token
from newton.errors import ConfigError, InputError, ProviderError, UnauthorizedError
from newton.providers.chat import ModelSelector
from newton.runtime.access import operator_token
from newton.runtime.chat_backend.daemon_errors import convert_api_errors
from newton.runtime.chat_backend.local import LocalAgent
from newton.runtime.chat_backend.protocol import ChatBackend
from newton.runtime.chat_backend.remote import RemoteAgent
from newton.runtime.cli.command_agent import open_agent
from newton.runtime.cli.command_context import require_own_process
from newton.runtime.cli.formatting import print_new_agent
from newton.runtime.cli.progress import print_progress
from newton.settings import Settings

MAX_ATTEMPTS = 3
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


@asynccontextmanager
async def open_chat_backend(
    settings: Settings, daemon: str | None, token_file: Path | None, *, is_agent_explicit: bool
) -> AsyncGenerator[ChatBackend]:
    """Yield a local agent or, if `daemon` is a URL, a connection to that daemon whose token is verified.

    `is_agent_explicit` is True if the command line names the agent. Raises InputError for an invalid URL or token file,
    ConfigError without a token, and the errors that the daemon returns.
    """
    if daemon is None:
        if token_file is not None:
            raise InputError("--token-file requires --daemon.", hint="Give the URL of the daemon with --daemon.")
        async with open_agent(settings, on_new_agent=print_new_agent) as newton:
            model = newton.chat_model
            if isinstance(model, ModelSelector):
                with suppress(ProviderError):  # the turn tells why the model is unknown
                    await model.resolve_name()
            yield LocalAgent(newton=newton, turn_runner=newton.turn_runner(model, on_event=print_progress))
        return
    require_own_process()
    url = check_daemon_url(daemon)
    token = find_token(settings, url, token_file)
    is_operator = token.startswith(operator_token.PREFIX) and "agent" in settings.model_fields_set
    agent = settings.agent if is_agent_explicit or is_operator else None
    with convert_api_errors():
        async with Client(url, token=token, agent=agent, max_attempts=MAX_ATTEMPTS) as client:
            try:
                token_info = await client.get_token_info()
            except ApiError as error:
                if error.code != UnauthorizedError.code:
                    raise
                raise UnauthorizedError(f"The daemon at {url} rejects the token.", hint=TOKEN_HINT) from None
            yield RemoteAgent(client=client, token_info=token_info, on_event=print_progress)


def check_daemon_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        valid = False
    if not valid:
        raise InputError(f"{url!r} is not the URL of a daemon.", hint="Write the URL as http://127.0.0.1:8700.")
    return url


def find_token(settings: Settings, url: str, file: Path | None) -> str:
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
