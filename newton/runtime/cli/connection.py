"""Whom a conversation is held with: the agent of this process, or the one that a daemon has."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter

from newton.client import Client
from newton.client.connection import LOOPBACK_HOSTS
from newton.errors import ConfigError, InputError, UnauthorizedError
from newton.runtime.access import operator_token
from newton.runtime.bootstrap import open_newton
from newton.runtime.chat_backend.local import LocalAgent
from newton.runtime.chat_backend.protocol import ChatBackend
from newton.runtime.chat_backend.remote import RemoteAgent
from newton.runtime.cli.conversations.sessions import print_progress
from newton.runtime.model_factory import build_chat_model
from newton.settings import Settings, read_token

MAX_ATTEMPTS = 3  # a person waits
TOKEN_HINT = "Give --token-file or set NEWTON_TOKEN; `newton tokens create NAME` makes one where the daemon runs."

DaemonOption = Annotated[
    str | None, Parameter(help="Where a daemon answers, such as http://127.0.0.1:8700; without it, in this process.")
]
TokenFileOption = Annotated[
    Path | None,
    Parameter(help="A file with the token for it; else NEWTON_TOKEN; else, on this machine, the operator's own."),
]


@asynccontextmanager
async def open_chat_backend(
    settings: Settings, daemon: str | None, token_file: Path | None, *, is_agent_explicit: bool
) -> AsyncGenerator[ChatBackend]:
    """The agent that the settings name, ready to be talked with; `named` says that the command line names it.

    Raises InputError, ConfigError, and what the daemon answers to who asks for it.
    """
    if daemon is None:
        if token_file is not None:
            raise InputError("A token is for a daemon.", hint="Say with --daemon where that is.")
        async with open_newton(settings) as newton:
            yield LocalAgent(
                newton=newton, turn_runner=newton.turn_runner(build_chat_model(settings), on_event=print_progress)
            )
        return
    url = _check_daemon_url(daemon)
    shown = _find_token(settings, url, token_file)
    operators = shown.startswith(operator_token.PREFIX) and "agent" in settings.model_fields_set
    async with Client(
        url, token=shown, agent=settings.agent if is_agent_explicit or operators else None, max_attempts=MAX_ATTEMPTS
    ) as client:
        try:
            who = await client.get_token_info()
        except UnauthorizedError:
            raise UnauthorizedError(f"The daemon at {url} does not know this token.", hint=TOKEN_HINT) from None
        yield RemoteAgent(client=client, token_info=who, on_compaction=print_progress)


def _check_daemon_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        known = False
    if not known:
        raise InputError(f"{url!r} is no address of a daemon.", hint="Write it as http://127.0.0.1:8700.")
    return url


def _find_token(settings: Settings, url: str, file: Path | None) -> str:
    if file is not None:
        return _check_token(_read_token_file(file), f"{file} holds")
    if (given := read_token()) is not None:
        return _check_token(given.get_secret_value(), "NEWTON_TOKEN is")
    if urlsplit(url).hostname in LOOPBACK_HOSTS and (settings.home / operator_token.TOKEN_FILE).exists():
        return operator_token.load_or_create_token(settings.home)
    raise ConfigError("There is no token for that daemon.", hint=TOKEN_HINT)


def _read_token_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        hint = "Name a file that holds a token alone."
        raise InputError(f"{file} cannot be read: {error.strerror}.", hint=hint) from None


def _check_token(text: str, source: str) -> str:
    if not text.isascii() or not text.isprintable() or not text or " " in text:
        raise InputError(f"{source} no token.", hint=TOKEN_HINT)
    return text
