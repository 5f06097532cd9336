"""Whom a conversation is held with: the agent of this process, or the one that a daemon has."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter

from newton.client import Client
from newton.client.connection import LOOPBACK
from newton.errors import ConfigError, InputError, UnauthorizedError
from newton.runtime.access import operator
from newton.runtime.cli.sessions import progress
from newton.runtime.models import chat_model
from newton.runtime.opening import opened
from newton.runtime.talk.here import Here
from newton.runtime.talk.partner import Partner
from newton.runtime.talk.there import There
from newton.settings import Settings, token

ATTEMPTS = 3  # a person waits
WHENCE = "Give --token-file or set NEWTON_TOKEN; `newton tokens create NAME` makes one where the daemon runs."

Daemon = Annotated[
    str | None, Parameter(help="Where a daemon answers, such as http://127.0.0.1:8700; without it, in this process.")
]
TokenFile = Annotated[
    Path | None,
    Parameter(help="A file with the token for it; else NEWTON_TOKEN; else, on this machine, the operator's own."),
]


@asynccontextmanager
async def met(chosen: Settings, daemon: str | None, token_file: Path | None, *, named: bool) -> AsyncGenerator[Partner]:
    """The agent that the settings name, ready to be talked with; `named` says that the command line names it.

    Raises InputError, ConfigError, and what the daemon answers to who asks for it.
    """
    if daemon is None:
        if token_file is not None:
            raise InputError("A token is for a daemon.", hint="Say with --daemon where that is.")
        async with opened(chosen) as newton:
            yield Here(newton=newton, turns=newton.turns(chat_model(chosen), tell=progress))
        return
    url = _address(daemon)
    shown = _token(chosen, url, token_file)
    operators = shown.startswith(operator.PREFIX) and "agent" in chosen.model_fields_set
    async with Client(
        url, token=shown, agent=chosen.agent if named or operators else None, attempts=ATTEMPTS
    ) as client:
        try:
            who = await client.who()
        except UnauthorizedError:
            raise UnauthorizedError(f"The daemon at {url} does not know this token.", hint=WHENCE) from None
        yield There(client=client, who=who, tell=progress)


def _address(given: str) -> str:
    try:
        parts = urlsplit(given)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        known = False
    if not known:
        raise InputError(f"{given!r} is no address of a daemon.", hint="Write it as http://127.0.0.1:8700.")
    return given


def _token(chosen: Settings, url: str, file: Path | None) -> str:
    if file is not None:
        return _whole(_read(file), f"{file} holds")
    if (given := token()) is not None:
        return _whole(given.get_secret_value(), "NEWTON_TOKEN is")
    if urlsplit(url).hostname in LOOPBACK and (chosen.home / operator.FILE).exists():
        return operator.token_of(chosen.home)
    raise ConfigError("There is no token for that daemon.", hint=WHENCE)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        hint = "Name a file that holds a token alone."
        raise InputError(f"{file} cannot be read: {error.strerror}.", hint=hint) from None


def _whole(text: str, where: str) -> str:
    if not text.isascii() or not text.isprintable() or not text or " " in text:
        raise InputError(f"{where} no token.", hint=WHENCE)
    return text
