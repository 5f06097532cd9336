"""The secrets that this process has, by value, and the files that have them, so that neither is stored as memory."""

import contextlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from stat import S_ISREG
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from newton.environment import (
    SECRET_NAME,
    SERVERS_FILE,
    SETTINGS_FILE,
    list_secret_files,
    read_referenced_variables,
    read_secret_variables,
)
from newton.memory.redaction.labelled_values import is_mixed
from newton.memory.redaction.own_secrets import OWN_SECRETS, contains_own_secret
from newton.runtime.access.operator_token import TOKEN_FILE
from newton.setting_types import McpServerSettings
from newton.settings import Settings

FILES_WITH_SECRETS = (TOKEN_FILE, SETTINGS_FILE, SERVERS_FILE)  # in the data folder
MAX_COPY_BYTES = 4_096  # a larger file that has a secret is a document, from which the secret is removed


def register_secrets(settings: Settings, servers: Mapping[str, McpServerSettings]) -> None:
    """Let the redaction recognize the secrets of the settings, the environment, the data folder and the MCP servers."""
    values = chain(
        _iter_settings(settings), _iter_environment(), chain.from_iterable(map(_iter_server, servers.values()))
    )
    OWN_SECRETS.replace("settings", dict.fromkeys(values))


class SecretFiles:
    """The files that have secrets of Newton: of the data folder and the settings, their links and their copies."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def contains(self, path: Path) -> bool:
        """Return whether the file is one of these, by its inode, or a small file that contains a secret."""
        try:
            status = path.stat()
            if (status.st_dev, status.st_ino) in self._ids:
                return True
            return status.st_size <= MAX_COPY_BYTES and contains_own_secret(path.read_text("utf-8", "replace"))
        except OSError:  # the reader of documents says why it cannot be read
            return False

    @cached_property
    def _ids(self) -> frozenset[tuple[int, int]]:
        ids = set[tuple[int, int]]()
        for path in (*(self._settings.home / name for name in FILES_WITH_SECRETS), *list_secret_files()):
            with contextlib.suppress(OSError):
                status = path.stat()
                if S_ISREG(status.st_mode):
                    ids.add((status.st_dev, status.st_ino))
        return frozenset(ids)


def _iter_settings(settings: Settings) -> Iterator[str]:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        yield (settings.home / TOKEN_FILE).read_text(encoding="utf-8")
    keys = (settings.openai_api_key, settings.anthropic_api_key, *(one.api_key for one in settings.models.values()))
    yield from (key.get_secret_value() for key in keys if key)
    if settings.database_url:
        yield from _iter_passwords(settings.database_url)


def _iter_passwords(url: SecretStr) -> Iterator[str]:
    """Yield the password of a connection string, as it is written there and as it is."""
    with contextlib.suppress(ValueError):
        if password := urlsplit(url.get_secret_value()).password:
            yield from (password, unquote(password))


def _iter_environment() -> Iterator[str]:
    for name, value in read_secret_variables().items():
        if name.lower().endswith("database_url"):
            yield from _iter_passwords(SecretStr(value))
        elif _looks_secret(value):
            yield value


def _iter_server(server: McpServerSettings) -> Iterator[str]:
    for text in (server.command or "", *server.args, server.url or "", *server.env.values(), *server.headers.values()):
        yield from filter(_looks_secret, read_referenced_variables(text))
    for name, value in (*server.env.items(), *server.headers.items()):
        if SECRET_NAME.search(name) and "${" not in value:
            yield value.rpartition(" ")[2]  # after "Bearer"


def _looks_secret(value: str) -> bool:
    """Return whether the value of a variable can be a secret: no path, address or word."""
    is_word = not is_mixed(value) or any(map(str.isspace, value))
    return not (is_word or value.startswith(("/", "~", ".")) or "://" in value)
