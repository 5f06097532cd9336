"""The running daemon of a data folder, as processes of the same user on the same machine use it over HTTP."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import httpx2

from newton import __version__
from newton.errors import ConfigError
from newton.runtime import daemon_address
from newton.runtime.access import operator_token

SOCKET_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENING = "0A"  # the state of a listening socket in these tables
ADDRESS_COLUMN, STATE_COLUMN, USER_COLUMN = 1, 3, 7
CONNECT_SECONDS = 5.0
AGENT_HEADER = "X-Newton-Agent"


class LocalDaemon(NamedTuple):
    """The URL of a running daemon, the token of its operator, and an id of this run of it."""

    url: str
    token: str
    run_id: str

    def open_client(
        self, agent: str | None = None, *, seconds: float | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.AsyncClient:
        """Return an HTTP client for requests about an agent. They may take any time, or at most `seconds`.

        Connections are not kept, so that a request fails with ConnectError only if the daemon has not received it. The
        certificate is not verified: the socket that listens at this address belongs to the user of this process.
        """
        named = {} if agent is None else {AGENT_HEADER: agent}
        return httpx2.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.token}", **named, **(headers or {})},
            timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(max_keepalive_connections=0),
            trust_env=False,  # a proxy would see the token
            verify=False,
        )


def find_daemon(home: Path) -> LocalDaemon | None:
    """Return the daemon of a data folder; None unless one of this version runs as the user of this process."""
    address = daemon_address.read_address(home)
    if address is None or address.version != __version__:
        return None
    parts = urlsplit(address.url)
    if not _is_own_address(parts.hostname) or not _is_own_listener(parts.port):
        return None
    try:
        token = operator_token.read_token(home / operator_token.TOKEN_FILE)
        return LocalDaemon(address.url, token, address.run_id)
    except (OSError, ConfigError):  # the file is missing, or other users can read it
        return None


def _is_own_address(host: str | None) -> bool:
    """Return whether a host is this machine: a socket cannot be bound to an address of another one."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.bind(address)
    except (OSError, UnicodeError):  # the name is unknown or no name
        return False
    return True


def _is_own_listener(port: int | None) -> bool:
    """Return whether the sockets that listen on a TCP port belong to the user of this process.

    The address of a killed daemon stays in its file, and another user could open its port and would receive the token.
    A system without these tables cannot tell, so that no daemon is used there.
    """
    tables = [table for table in SOCKET_TABLES if table.exists()]
    rows = [line.split() for table in tables for line in table.read_text(encoding="ascii").splitlines()[1:]]
    users = {
        int(row[USER_COLUMN])
        for row in rows
        if row[STATE_COLUMN] == LISTENING and int(row[ADDRESS_COLUMN].rpartition(":")[2], 16) == port
    }
    return users == {os.geteuid()}
