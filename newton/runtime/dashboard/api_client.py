"""A client of the HTTP API within the process: each call passes the same checks as a request over the network."""

import asyncio
import json
from collections.abc import AsyncIterable, Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newton.runtime.access.browser_sessions import BrowserSession

JSON_HEADERS = {"content-type": "application/json"}
NDJSON_HEADERS = {"content-type": "application/x-ndjson"}

QueryValue = str | int | bool | list[str] | None


class ApiProblemError(Exception):
    """An error response of the API: the status, what is wrong, and how to resolve it."""

    def __init__(self, status: int, detail: str, hint: str) -> None:
        super().__init__(detail)
        self.status, self.detail, self.hint = status, detail, hint


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiClient:
    """Requests to the API application `app` with the token, the agent and the user of a session."""

    app: ASGIApp
    session: BrowserSession

    async def get(self, path: str, **query: QueryValue) -> Any:
        """Return the JSON body of a GET response. Raises ApiProblemError for an error response."""
        return await self._call("GET", path, query=query)

    async def post(self, path: str, body: Mapping[str, object] | None = None) -> Any:
        """Send a POST request and return the JSON body. Raises ApiProblemError for an error response."""
        return await self._call("POST", path, body=body)

    async def patch(self, path: str, body: Mapping[str, object]) -> Any:
        """Send a PATCH request and return the JSON body. Raises ApiProblemError for an error response."""
        return await self._call("PATCH", path, body=body)

    async def delete(self, path: str, **query: QueryValue) -> Any:
        """Send a DELETE request and return the JSON body. Raises ApiProblemError for an error response."""
        return await self._call("DELETE", path, query=query)

    async def upload(self, path: str, chunks: AsyncIterable[bytes]) -> Any:
        """Send NDJSON lines by POST while they are read; return the JSON body. Raises ApiProblemError for an error."""
        pieces = aiter(chunks)

        async def receive() -> Message:
            piece = await anext(pieces, None)
            return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

        collector = _ResponseCollector()
        await self.app(self._scope("POST", path, {}, NDJSON_HEADERS), receive, collector)
        return collector.parse()

    async def forward(self, path: str, receive: Receive, send: Send) -> None:
        """Pass the response of a GET request on to the browser (`send`) as it arrives, such as a large download."""
        await self.app(self._scope("GET", path, {}, {}), receive, send)

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, QueryValue] | None = None,
        body: Mapping[str, object] | None = None,
    ) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        collector = _ResponseCollector()
        headers = {} if body is None else JSON_HEADERS
        await self.app(self._scope(method, path, query or {}, headers), _body_receiver(content), collector)
        return collector.parse()

    def _scope(self, method: str, path: str, query: Mapping[str, QueryValue], headers: Mapping[str, str]) -> Scope:
        given = {"host": "127.0.0.1", "authorization": f"Bearer {self.session.grant.token}", **headers}
        if self.session.agent is not None:
            given["x-newton-agent"] = self.session.agent
        if self.session.grant.user is not None:
            given["x-newton-user"] = self.session.grant.user
        if self.session.project is not None:
            given["x-newton-project"] = self.session.project
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": quote(path).encode(),
            "root_path": "",
            "query_string": encode_query(query).encode(),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
            "client": None,
            "server": ("127.0.0.1", 0),
            "state": {},
        }


class _ResponseCollector:
    """An ASGI `send` function that keeps the response."""

    def __init__(self) -> None:
        self.status, self.body = 500, bytearray()

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")

    def parse(self) -> Any:
        """Return the body as JSON. Raises ApiProblemError for an error response."""
        try:
            content = json.loads(self.body) if self.body else None
        except ValueError:
            content = None
        if self.status < 400:
            return content
        problem = cast("dict[str, object]", content) if isinstance(content, dict) else {}
        raise ApiProblemError(
            self.status, str(problem.get("detail", "The request failed.")), str(problem.get("hint", ""))
        )


async def gather_json(*calls: Awaitable[Any]) -> list[Any]:
    """Await calls of the API concurrently and return their results."""
    return list(await asyncio.gather(*calls))


def encode_query(query: Mapping[str, QueryValue]) -> str:
    """Return the query string without empty values; a list becomes repeated parameters.

    >>> encode_query({"kinds": ["fact", "event"], "text": "a b", "cursor": None, "limit": 5})
    'kinds=fact&kinds=event&text=a+b&limit=5'
    """
    filled = {name: value for name, value in query.items() if value not in (None, "", [])}
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in filled.items()}
    return urlencode(texts, doseq=True)


def _body_receiver(body: bytes) -> Receive:
    """Return an ASGI `receive` function that returns the whole body, and then waits: the caller does not disconnect."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop()

    return receive
