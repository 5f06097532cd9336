"""Asynchronous client of the HTTP API."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal
from urllib.parse import quote

import httpx2

from .http_messages import (
    connection_lost_error,
    error_from_problem,
    expect_newton_response,
    retry_delay,
    timeout_header,
    unreachable_error,
)
from .operations import AgentOperations
from .response_types import (
    AppendMessagesDict,
    EventDict,
    MessageDict,
    StreamedEvent,
    TokenInfoDict,
    TurnEvent,
)


class Client(AgentOperations):
    """HTTP client for the memory of one agent. Use it with `async with`, which closes it.

    A method that fails raises ApiError; its `code` says why. A memory is identified by its id or the end of its id.
    Times are timezone-aware datetimes in arguments, and ISO 8601 text in results. The daemon counts tokens. Calls with
    the same `idempotency_key` take effect only once: the daemon answers each of them with its first response.
    """

    async def append_messages(
        self,
        session: str,
        messages: Sequence[MessageDict],
        *,
        events: Sequence[EventDict] = (),
        on_invalid: Literal["reject", "skip"] = "reject",
        idempotency_key: str | None = None,
    ) -> AppendMessagesDict:
        """Append messages and events to a session, which is created if needed.

        A message with a `ref` that the session already has is ignored. Give at most 1,000 messages in one call. If one
        of them is invalid, nothing is stored and ApiError `invalid_input` is raised; with `on_invalid="skip"` only that
        one is left out, and `refused` of the result says why. If all are invalid, the error is raised all the same.
        """
        path = f"{session_path(session)}/messages"
        body = {"messages": messages, "events": events, "on_invalid": on_invalid}
        return await self.post(path, body, idempotency_key=idempotency_key)

    async def run_turn(
        self, session: str, input: str, *, timeout_seconds: float | None = None, **fields: object
    ) -> AsyncGenerator[TurnEvent]:
        """Send a message in a session, which is created if needed; yield parts of the reply, then the result.

        `fields` are the other fields of `POST /v1/sessions/{session}/turns`: `frame`, `model`, `include_context` and
        `private`. After `timeout_seconds`, the turn goes on with the memory found until then. If the generator is
        closed early, the text so far is stored. The request is never retried, because the daemon stores the message at
        once. Raises ApiError, `connection_lost` if the reply is incomplete.
        """
        path, ended = f"{session_path(session)}/turns", False
        try:
            headers = timeout_header(timeout_seconds)
            async with self.stream("POST", path, body={"input": input, **fields}, headers=headers) as events:
                async for event in events:
                    if event.type == "problem":
                        raise error_from_problem(event.data)
                    ended = event.type == "result"
                    yield TurnEvent(event.type, dict(event.data))
        except httpx2.ConnectError as error:
            raise unreachable_error(self._http.base_url, error) from error
        except httpx2.TransportError as error:
            raise connection_lost_error() from error
        if not ended:
            raise connection_lost_error()

    async def get_token_info(self) -> TokenInfoDict:
        """Return the agent and the scope of the token of this client, and the chat model."""
        info = await self.get("/v1/token")
        with expect_newton_response():
            return TokenInfoDict(agent=info["agent"], scope=info["scope"], model=info["model"])

    async def iter_pages(self, path: str, **params: str | int | bool) -> AsyncGenerator[dict[str, Any]]:
        """Yield the items of all pages of a list such as `/v1/decisions`; `params` are its query parameters.

        `limit` is the number of items of one page. A page is requested when the caller reaches its first item.
        """
        cursor: str | None = None
        while True:
            page = await self.get(path, {**params, **({"cursor": cursor} if cursor else {})})
            for item in page["items"]:
                yield item
            if (cursor := page["next"]) is None:
                return

    async def events(self, *, after: int | None = None) -> AsyncGenerator[StreamedEvent]:
        """Stream events without end, from now on or after the event with the number `after`.

        If the connection breaks, the client reconnects and continues after the last event. Raises ApiError
        `daemon_unreachable` after `max_attempts` failures in a row. Events are kept for seven days.
        """
        failures = 0
        while True:
            try:
                headers = {} if after is None else {"Last-Event-ID": str(after)}
                async with self.stream("GET", "/v1/events", headers=headers) as stream:
                    async for event in stream:
                        after, failures = int(event.id), 0
                        yield StreamedEvent(after, event.type, event.data)
            except httpx2.TransportError as error:
                failures += 1
                if failures >= self.max_attempts:
                    raise unreachable_error(self._http.base_url, error) from error
            await asyncio.sleep(retry_delay(failures, None))


def session_path(session: str) -> str:
    """Return the URL path of a session, with its name percent-encoded."""
    return f"/v1/sessions/{quote(session, safe='')}"
