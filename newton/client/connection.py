"""HTTP connection to the daemon. Failed requests are retried with the same idempotency key."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypedDict, Unpack
from uuid import uuid4

import httpx2

from .environment import LOOPBACK_HOSTS, resolve_token, resolve_url
from .http_messages import (
    JSON_HEADERS,
    MCP_HEADERS,
    MCP_PATH,
    EventParser,
    ServerSentEvent,
    decode_json,
    decode_tool_result,
    encode_body,
    encode_fields,
    is_retryable,
    read_redactions,
    retry_delay,
    timeout_header,
    to_error,
    unreachable_error,
)

MAX_ATTEMPTS = 5
TIMEOUT_SECONDS = 65  # longer than the time limit of a request in the daemon


QueryParameters = Mapping[str, str | int | bool | Sequence[str]]  # a sequence is a repeated parameter


class MemorySelection(TypedDict, total=False):
    """The agent, the user and the project whose memory is used; None leaves it to the token."""

    agent: str | None
    user: str | None
    project: str | None


class DaemonConnection:
    """HTTP connection to the daemon, with retries after an exponential backoff.

    `redacted` are the secrets, counted by kind, that the daemon removed from the last request that was answered.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        max_attempts: int = MAX_ATTEMPTS,
        **selection: Unpack[MemorySelection],
    ) -> None:
        """Prepare the connection, which the first request opens.

        `url` is the address of the daemon (default: NEWTON_URL, or http://127.0.0.1:8700), `token` an access token
        (default: NEWTON_TOKEN). `agent` selects an agent and needs the token of the operator; `user` selects the memory
        of one user and needs a token for users; `project` selects a project of the agent or of the user. `timeout` is
        the number of seconds to wait for a connection and for each part of a response. A request is sent at most
        `max_attempts` times. Raises ApiError with the code `config_error` if there is no token, or if the URL is
        invalid.
        """
        address = resolve_url(url)
        headers = {
            "Authorization": f"Bearer {resolve_token(token)}",
            **{f"X-Newton-{name.capitalize()}": str(one) for name, one in selection.items() if one},
        }
        # A proxy from the environment would see the token, and cannot reach a loopback address.
        is_local = httpx2.URL(address).host in LOOPBACK_HOSTS
        self._http = httpx2.AsyncClient(
            base_url=address,
            headers=httpx2.Headers(headers, encoding="utf-8"),
            timeout=timeout,
            trust_env=not is_local,
            verify=address.startswith("https:"),  # loading certificates takes 20 ms; no redirect is followed
        )
        self.max_attempts = max_attempts
        self.redacted: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def get(self, path: str, params: QueryParameters | None = None) -> Any:
        """Send a GET request and return the JSON of the response."""
        return decode_json(await self.request("GET", path, params=params))

    async def post(
        self,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        idempotency_key: str | None = None,
        timeout_seconds: float | None = None,
    ) -> Any:
        """Send a POST request and return the JSON of the response. Fields of the body that are None are left out.

        Times are sent as ISO 8601. The request takes effect only once, even if it is retried, and only once for all
        calls with the same `idempotency_key`. The daemon searches memory for at most `timeout_seconds`.
        """
        key, fields = idempotency_key or str(uuid4()), encode_fields(body or {})
        sent = self.request("POST", path, body=fields, idempotency_key=key, timeout_seconds=timeout_seconds)
        return decode_json(await sent)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[AsyncGenerator[ServerSentEvent]]:
        """Open a stream of server-sent events and yield an iterator over them. The request is not retried.

        Raises ApiError for an error response, and httpx2.TransportError if the connection fails.
        """
        content, headers = encode_body(body), {**JSON_HEADERS, **(headers or {})}
        async with self._http.stream(method, path, content=content, headers=headers) as response:
            if response.is_error:
                await response.aread()
                raise to_error(response)
            yield _parse_events(response)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        params: QueryParameters | None = None,
        idempotency_key: str | None = None,
        timeout_seconds: float | None = None,
    ) -> httpx2.Response:
        """Send a request and return its successful response.

        The request is sent again if the connection fails or the daemon is busy, each time with the same idempotency
        key. For each, the daemon searches memory for at most `timeout_seconds`. Raises ApiError with the error of the
        daemon, or with the code `daemon_unreachable`.
        """
        content = encode_body(body)
        options = {"Idempotency-Key": idempotency_key, **timeout_header(timeout_seconds)}
        headers = {**JSON_HEADERS, **{name: one for name, one in options.items() if one}}
        for attempt in range(1, self.max_attempts + 1):
            try:
                response = await self._http.request(method, path, content=content, params=params, headers=headers)
            except httpx2.TransportError as error:
                if attempt == self.max_attempts:
                    raise unreachable_error(self._http.base_url, error) from error
                await asyncio.sleep(retry_delay(attempt, None))
                continue
            if not response.is_error:
                self.redacted = read_redactions(response)
                return response
            if attempt == self.max_attempts or not is_retryable(response):
                raise to_error(response)
            await asyncio.sleep(retry_delay(attempt, response.headers.get("retry-after")))
        raise AssertionError("unreachable")

    async def call_tool(self, name: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """Call a tool of the MCP server and return its result. The call is not retried: it may store something."""
        call = {"name": name, "arguments": dict(arguments)}
        content = encode_body({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        try:
            response = await self._http.post(MCP_PATH, content=content, headers={**JSON_HEADERS, **MCP_HEADERS})
        except httpx2.TransportError as error:
            raise unreachable_error(self._http.base_url, error) from error
        if response.is_error:
            raise to_error(response)
        return decode_tool_result(response)


async def _parse_events(response: httpx2.Response) -> AsyncGenerator[ServerSentEvent]:
    parser = EventParser()
    async for line in response.aiter_lines():
        if event := parser.feed(line):
            yield event
