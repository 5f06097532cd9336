"""What is noted of every request, and what every answer bears: an id, the headers that browsers heed, the log.

Nothing that anybody said is in it: no body, no query, no token, and of the address only its pattern.
"""

from typing import Any
from uuid import UUID

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newton.clock import stopwatch
from newton.ids import new_id
from newton.runtime.api.metrics import Meters
from newton.spans import span

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}
REQUEST_ID = "request_id"  # under which the state of a request has it
UNROUTED = "(none)"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

log: structlog.stdlib.BoundLogger = structlog.get_logger("newton")


class Observed:
    """The outermost: it sees every answer, those of refusals too."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self.app, self.meters = app, meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, began, status = new_id(), stopwatch(), 500
        scope.setdefault("state", {})[REQUEST_ID] = request_id

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                sign(MutableHeaders(scope=message), request_id)
            await send(message)

        with self.meters.in_flight.track_inprogress(), span("request", Headers(scope=scope)) as noting:
            try:
                await self.app(scope, receive, sent)
            finally:
                self._note(scope, request_id, status, stopwatch() - began)
                noting.name(f"{_method(scope)} {_pattern(scope)}")
                noting.note(request_id=str(request_id), status=status, agent_id=_agent(scope))

    def _note(self, scope: Scope, request_id: UUID, status: int, ms: float) -> None:
        route, method = _pattern(scope), _method(scope)
        self.meters.requests.labels(method, route, status).inc()
        self.meters.durations.labels(method, route).observe(ms / 1_000)
        log.info(
            "request_answered",
            request_id=str(request_id),
            agent_id=_agent(scope),
            method=method,
            route=route,
            status=status,
            ms=round(ms, 1),
        )


def sign(headers: MutableHeaders, request_id: UUID) -> None:
    """What every answer bears."""
    headers["X-Request-Id"] = str(request_id)
    for name, value in HEADERS.items():
        headers.setdefault(name, value)


def _method(scope: Scope) -> str:
    """Anybody may send a method of their own making, and each would be a series that is kept for ever."""
    return scope["method"] if scope["method"] in METHODS else "other"


def _agent(scope: Scope) -> str | None:
    agent_id = scope.get("state", {}).get("agent_id")
    return str(agent_id) if agent_id else None


def _pattern(scope: Scope) -> str:
    """The address as the API documents it: a session's name is a person's word."""
    route: Any = scope.get("route")
    return getattr(route, "path_format", UNROUTED) if route is not None else UNROUTED
