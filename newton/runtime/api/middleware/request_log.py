"""Request ids, security headers, and a request log without bodies, query strings, tokens and full paths."""

from uuid import UUID

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newton.clock import monotonic_ms
from newton.ids import new_id
from newton.memory.redaction.tally import redaction_tally
from newton.runtime.api.prometheus import PrometheusMetrics
from newton.telemetry import span

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
}
REQUEST_ID_KEY, ERROR_CODE_KEY = "request_id", "error_code"  # keys in the state of a request
UNROUTED_PATH = "(none)"
KNOWN_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

log: structlog.stdlib.BoundLogger = structlog.get_logger("newton")


REDACTED_HEADER = "X-Newton-Redacted"


class RequestLogMiddleware:
    """The outermost middleware: it logs and counts every request, and adds headers to the response.

    One header counts, by kind, the secrets that were removed from the texts of the request.
    """

    def __init__(self, app: ASGIApp, metrics: PrometheusMetrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, began, status = new_id(), monotonic_ms(), 500
        scope.setdefault("state", {})[REQUEST_ID_KEY] = request_id

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                headers = MutableHeaders(scope=message)
                add_response_headers(headers, request_id)
                if removed := redacted.count():
                    headers[REDACTED_HEADER] = ", ".join(f"{kind}={number}" for kind, number in removed.items())
            await send(message)

        with (
            redaction_tally() as redacted,
            self.metrics.in_flight.track_inprogress(),
            span("request", Headers(scope=scope)) as request_span,
        ):
            try:
                await self.app(scope, receive, send_with_headers)
            finally:
                duration_ms, route, method = monotonic_ms() - began, _route_pattern(scope), _known_method(scope)
                fields = {"request_id": str(request_id), "status": status, "agent_id": _agent_id_text(scope)}
                self.metrics.requests.labels(method, route, status).inc()
                self.metrics.durations.labels(method, route).observe(duration_ms / 1_000)
                code = scope["state"].get(ERROR_CODE_KEY)
                error = {"error": code} if code else {}
                log.info("request_answered", **fields, **error, method=method, route=route, ms=round(duration_ms, 1))
                request_span.update_name(f"{method} {route}")
                request_span.set_attributes(**fields)


def add_response_headers(headers: MutableHeaders, request_id: UUID) -> None:
    """Add the request id and the security headers to the headers of a response."""
    headers["X-Request-Id"] = str(request_id)
    for name, value in SECURITY_HEADERS.items():
        headers.setdefault(name, value)


def _known_method(scope: Scope) -> str:
    """Return the HTTP method, or "other" for an unknown one, because each name creates a series of metrics."""
    return scope["method"] if scope["method"] in KNOWN_METHODS else "other"


def _agent_id_text(scope: Scope) -> str | None:
    agent_id = scope.get("state", {}).get("agent_id")
    return str(agent_id) if agent_id else None


def _route_pattern(scope: Scope) -> str:
    """Return the pattern of the route; the path itself may contain user text, such as session names."""
    return getattr(scope.get("route"), "path_format", UNROUTED_PATH)
