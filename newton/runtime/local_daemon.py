"""The running daemon of a data folder, as processes of the same user on the same machine use it over HTTP."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2

from newton import __version__
from newton.runtime import daemon_address, daemon_socket

AGENT_HEADER = "X-Newton-Agent"


class LocalDaemon(NamedTuple):
    """The data folder of a running daemon, and an id of this run of it."""

    home: Path
    run_id: str

    @asynccontextmanager
    async def open_client(
        self,
        agent: str | None = None,
        *,
        seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[httpx2.AsyncClient]:
        """Yield an HTTP client for requests about an agent. `seconds` limits each wait for data; None is no limit.

        It uses the socket of the data folder, where the user of this process is the operator. Connections are not kept,
        so that a request fails with ConnectError only if the daemon has not received it.
        """
        named = {} if agent is None else {AGENT_HEADER: agent}
        with daemon_socket.short_path(self.home / daemon_socket.FOLDER) as path:
            limits = httpx2.Limits(max_keepalive_connections=0)
            async with httpx2.AsyncClient(
                base_url="http://localhost",
                headers={**named, **(headers or {})},
                params=query,
                timeout=seconds,
                transport=httpx2.AsyncHTTPTransport(uds=path, limits=limits),
            ) as client:
                yield client


def find_daemon(home: Path) -> LocalDaemon | None:
    """Return the daemon of a data folder; None unless one of this version runs as the user of this process."""
    address, connection = daemon_address.read_address(home), daemon_socket.connect(home)
    if connection is None:
        return None
    connection.close()
    return LocalDaemon(home, address.run_id) if address and address.version == __version__ else None
