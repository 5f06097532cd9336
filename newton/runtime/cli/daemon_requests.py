"""Requests of a command to the running daemon of its data folder, with the same settings, over the HTTP API."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any

import httpx2

from newton.client.http_messages import decode_json, to_error, unreachable_error
from newton.environment import read_sources
from newton.runtime.chat_backend.daemon_errors import convert_api_errors
from newton.runtime.cli.printing import say
from newton.runtime.local_daemon import LocalDaemon, find_daemon
from newton.settings import Settings

SECONDS = 65.0  # longer than the time limit of a request in the daemon


@dataclass(frozen=True, slots=True)
class DaemonRequests:
    """Sends requests about one agent to the daemon. Each raises the NewtonError that the daemon reports."""

    http: httpx2.AsyncClient

    async def post(self, path: str, body: Mapping[str, object]) -> Any:
        """Send a JSON body and return the JSON of the response."""
        with convert_api_errors():
            return decode_json(await self._send("POST", path, json=dict(body)))

    async def stream_lines(self, path: str, body: Mapping[str, object]) -> AsyncGenerator[str]:
        """Send a JSON body and yield the lines of the response as they come."""
        with convert_api_errors():
            try:
                async with self.http.stream("POST", path, json=dict(body)) as response:
                    if response.status_code >= HTTPStatus.BAD_REQUEST:
                        await response.aread()
                        raise to_error(response)
                    async for line in response.aiter_lines():
                        yield line
            except httpx2.TransportError as error:
                raise unreachable_error(self.http.base_url, error) from error

    async def _send(self, method: str, path: str, **request: Any) -> httpx2.Response:
        try:
            response = await self.http.request(method, path, **request)
        except httpx2.TransportError as error:
            raise unreachable_error(self.http.base_url, error) from error
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            raise to_error(response)
        return response


@asynccontextmanager
async def connect_daemon(settings: Settings) -> AsyncGenerator[DaemonRequests | None]:
    """Yield an object that sends requests about no agent to the daemon of the data folder.

    Yield None if no daemon runs, or, after printing it, if the daemon was started with other settings. The command then
    opens the agent in its own process.
    """
    daemon = find_daemon(settings.home)
    if daemon is None:
        yield None
        return
    async with daemon.open_client(seconds=SECONDS) as http:
        differing = await read_differences(daemon)
        if differing:
            names = ", ".join(differing)
            say(f"(The daemon was started with another value of {names}. The command runs without it.)", to_stderr=True)
        yield None if differing else DaemonRequests(http)


async def read_state(requests: DaemonRequests) -> Any:
    """Return the state of the daemon as JSON; `differing` names the settings that have another value here."""
    return await requests.post("/v1/daemon/state", {"sources": asdict(read_sources())})


async def read_differences(daemon: LocalDaemon) -> list[str]:
    """Return the names of the settings and variables that have other values in a daemon than in this process."""
    async with daemon.open_client(seconds=SECONDS) as http:
        return (await read_state(DaemonRequests(http)))["differing"]
