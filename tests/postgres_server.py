"""The PostgreSQL server of the tests: a given one, a container, or the embedded one.

`NEWTON_TEST_DATABASE_URL` names a server; its user must be a superuser. `NEWTON_TEST_SERVER` is `container` or
`embedded`; if it is unset, a container is used when a Docker engine answers, else the embedded server.
"""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from newton.db.embedded_server import temporary_server

ServerKind = Literal["container", "embedded"]
IMAGE = "pgvector/pgvector:pg18"  # the one of docker-compose.yml
SOCKETS = (Path("/var/run/docker.sock"), Path.home() / ".docker/run/docker.sock")
PING_SECONDS = 2
# As in the embedded server of tests: nothing has to survive a crash, and statistics on rows that tests roll back would
# make plans worse than no statistics.
OPTIONS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off", "jit=off", "timezone=UTC")


@contextmanager
def open_server(url: str | None, kind: str | None) -> Generator[str]:
    """Yield the connection string of a superuser of a server. `url` and `kind` are the values of the two variables."""
    if url:
        yield url
        return
    opened = _open_container if choose_kind(kind) == "container" else _open_embedded
    with opened() as dsn:
        yield dsn


def choose_kind(kind: str | None) -> ServerKind:
    """Return the kind of server. Raises ValueError for an unknown one, and for a container without a Docker engine."""
    if kind is not None and kind not in ("container", "embedded"):
        raise ValueError(f"NEWTON_TEST_SERVER is {kind!r}: set it to container or embedded")
    if kind == "container" and not engine_answers():
        raise ValueError("NEWTON_TEST_SERVER is container, but no Docker engine answers")
    return kind or ("container" if engine_answers() else "embedded")


def engine_answers() -> bool:
    """Return whether a Docker engine answers. Nothing is imported for that, because most machines have none."""
    host = os.environ.get("DOCKER_HOST", "")
    if host and not host.startswith("unix://"):
        return True  # a remote engine that was set on purpose
    sockets = (Path(host.removeprefix("unix://")),) if host else SOCKETS
    return any(_answers(path) for path in sockets)


def _answers(path: Path) -> bool:
    with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PING_SECONDS)
        client.connect(str(path))
        client.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
        return b" 200 " in client.recv(64)
    return False


@contextmanager
def _open_embedded() -> Generator[str]:
    with temporary_server() as embedded:
        yield embedded.dsn("postgres", database="postgres")


@contextmanager
def _open_container() -> Generator[str]:
    # slow imports, which a run with the embedded server does not need
    library: Any = import_module("testcontainers.community.postgres")
    config: Any = import_module("testcontainers.core.config")
    # The tests remove their container themselves; the library would pull an image that does it.
    config.testcontainers_config.ryuk_disabled = True
    container = library.PostgresContainer(IMAGE, username="postgres", password="newton", dbname="postgres", driver=None)
    command = [part for option in OPTIONS for part in ("-c", option)]
    with container.with_command(command) as running:
        yield running.get_connection_url()
