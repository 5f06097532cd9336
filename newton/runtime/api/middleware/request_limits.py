"""Limits on requests: allowed origins and host names, the size of bodies, the nesting of JSON, and characters."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Set
from typing import IO
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newton.concurrency import with_timeout
from newton.errors import (
    InputError,
    NewtonError,
    OriginNotAllowedError,
    OverloadedError,
    TimeoutExceededError,
    TooLargeError,
    UnauthorizedError,
)
from newton.runtime.access.browser_sessions import BrowserSessions, cookie_name
from newton.runtime.api.auth import BEARER, authenticate
from newton.runtime.api.error_page import is_dashboard_path
from newton.runtime.api.middleware.admission import BODY_BYTES_KEY, TIMEOUT_HEADER, KnownCallers
from newton.runtime.api.problems import error_response

MAX_BODY_BYTES = 10 * 1024 * 1024
# Bytes of bodies in memory: of all callers, of one caller, of one unauthenticated request, of all of those.
MAX_TOTAL_BYTES, MAX_BYTES_PER_CALLER = 128 * 1024 * 1024, 32 * 1024 * 1024
MAX_UNAUTHENTICATED_REQUEST_BYTES, MAX_UNAUTHENTICATED_BYTES = 64 * 1024, 16 * 1024 * 1024
MAX_JSON_DEPTH = 64
MAX_FILE_BYTES = 4 * 1024**3  # maximum size of a body that is streamed to a file
READ_TIMEOUT_SECONDS = 30  # for a whole body, or for the next piece of a streamed one
MAX_QUOTED_HOST_CHARS = 100  # characters of a rejected name in the error
THREAD_CHECK_BYTES = 256 * 1024  # larger bodies are checked in a thread

# Headers that say who acts, for whom, and where; each may occur once.
SINGLE_HEADERS = (
    *("Host", "Origin", "Authorization", "Content-Type", "Idempotency-Key"),
    *("X-Newton-Agent", "X-Newton-User", "X-Newton-Project", "X-Newton-Session", TIMEOUT_HEADER),
)
NDJSON_MEDIA_TYPES = frozenset({"application/x-ndjson", "application/ndjson"})
# read by the endpoint, after authentication
STREAMED_PATHS = frozenset({"/v1/import", "/dashboard/agents/import"})

BODY_TOO_LARGE = TooLargeError(
    f"The body exceeds {MAX_BODY_BYTES:,} bytes.",
    hint="Send the content in parts, or import a file with `newton import`.",
)
NOT_SIGNED_IN = UnauthorizedError(
    "The browser is not signed in, or its session has ended.",
    hint="Run `newton dashboard` on the machine of the daemon, open the link in another tab, then send the form again.",
)
NUL_CHARACTER = InputError(
    "The request contains a NUL character.", hint="Remove the NUL character; PostgreSQL cannot store it."
)

_STRING_OR_BRACKET = re.compile(rb'"(?>(?:[^"\\]+|\\.)*)"|[\[{]|[\]}]', re.DOTALL)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


class HeaderCheckMiddleware:
    """A middleware that rejects requests from foreign web origins and for unknown host names.

    This prevents DNS rebinding. It also rejects a request that repeats a header of `SINGLE_HEADERS`, such as the one
    with the token, because a proxy might check one of them and the daemon use the other.
    """

    def __init__(self, app: ASGIApp, hosts: Set[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (error := self._find_error(Headers(scope=scope))):
            await error_response(error, scope["path"])(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _find_error(self, headers: Headers) -> NewtonError | None:
        if repeated := next((name for name in SINGLE_HEADERS if len(headers.getlist(name)) > 1), None):
            return InputError(f"The request has the header {repeated} more than once.", hint="Send the header once.")
        host, origin = headers.get("host", ""), headers.get("origin")
        if _host_name(f"//{host}") not in self.hosts:
            return _origin_error(f"The host name {host[:MAX_QUOTED_HOST_CHARS]!r} is not allowed.")
        if origin is not None and _host_name(origin) not in self.hosts:
            return _origin_error(f"The origin {origin[:MAX_QUOTED_HOST_CHARS]!r} is not allowed.")
        return None


class BodyMemory:
    """The main memory that one request body occupies. It counts toward a quota of the caller.

    Before authentication, it counts toward a quota that all unauthenticated requests share.
    """

    def __init__(self, bytes_by_caller: Counter[str]) -> None:
        self._bytes_by_caller, self._caller_key, self._size = bytes_by_caller, "", 0

    def has_room(self, size: int) -> bool:
        limit = MAX_BYTES_PER_CALLER if self._caller_key else MAX_UNAUTHENTICATED_BYTES
        own, total = self._bytes_by_caller[self._caller_key], self._bytes_by_caller.total()
        return own + size <= limit and total + size <= MAX_TOTAL_BYTES

    def needs_authentication(self, size: int) -> bool:
        """Return True if the body, with `size` more bytes, is too large for an unauthenticated request."""
        is_large = self._size + size > MAX_UNAUTHENTICATED_REQUEST_BYTES
        return not self._caller_key and (is_large or not self.has_room(size))

    def reserve(self, size: int) -> None:
        self._bytes_by_caller[self._caller_key] += size
        self._size += size

    def assign_to(self, caller_key: str) -> None:
        """Count the memory toward the quota of an authenticated caller from now on."""
        size = self._size
        self.release()
        self._caller_key = caller_key
        self.reserve(size)

    def release(self) -> None:
        self.reserve(-self._size)
        if not self._bytes_by_caller[self._caller_key]:
            del self._bytes_by_caller[self._caller_key]


class BodyMiddleware:
    """A middleware that reads and checks each body before admission control, so that a slow client takes no slot.

    A large body requires a valid token. Endpoints in `STREAMED_PATHS` read their bodies themselves.
    """

    def __init__(self, app: ASGIApp, callers: KnownCallers) -> None:
        self.app, self.callers = app, callers
        self.bytes_by_caller = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in STREAMED_PATHS:
            await self.app(scope, receive, send)
            return
        memory = BodyMemory(self.bytes_by_caller)
        try:
            try:
                body = await self._read_checked_body(scope, receive, memory)
            except NewtonError as error:
                await error_response(error, scope["path"])(scope, receive, send)
                return
            if body is not None:
                scope[BODY_BYTES_KEY] = len(body)
                await self.app(scope, _replay_body(body, receive), send)
        finally:
            memory.release()

    async def _read_checked_body(self, scope: Scope, receive: Receive, memory: BodyMemory) -> bytes | None:
        """Return the checked body; None if the client has disconnected.

        Raises NewtonError for a body that is invalid, too large or too slow.
        """
        headers = Headers(scope=scope)
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            raise NUL_CHARACTER
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > MAX_BODY_BYTES:
            raise BODY_TOO_LARGE
        try:
            body = await with_timeout(self._receive_body(scope, receive, memory), seconds=READ_TIMEOUT_SECONDS)
        except TimeoutError:
            raise TimeoutExceededError(
                f"The body did not arrive within {READ_TIMEOUT_SECONDS} seconds.", hint="Send the body faster."
            ) from None
        # NDJSON lines are checked one by one later, and rejected by number
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and media_type not in NDJSON_MEDIA_TYPES:
            if len(body) < THREAD_CHECK_BYTES:
                check_body(body)
            else:
                await asyncio.to_thread(check_body, body)
        return body

    async def _receive_body(self, scope: Scope, receive: Receive, memory: BodyMemory) -> bytes | None:
        """Return the body; None if the client has disconnected. A large body is authenticated before it has arrived."""
        pieces, size, more = list[bytes](), 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunk = message.get("body", b"")
            size, more = size + len(chunk), message.get("more_body", False)
            if size > MAX_BODY_BYTES:
                raise BODY_TOO_LARGE
            if memory.needs_authentication(len(chunk)):
                signed_in = _with_session_token(scope)
                request = Request(signed_in)
                await authenticate(request, await BEARER(request), request.headers.get("X-Newton-Agent"))
                memory.assign_to(self.callers.identify(signed_in).agent)
            if not memory.has_room(len(chunk)):
                raise OverloadedError("Too many large request bodies at once.", hint="Retry in a moment.")
            memory.reserve(len(chunk))
            pieces.append(chunk)
        return b"".join(pieces)


async def save_to_file(request: Request, target: IO[bytes]) -> None:
    """Write the body of a request to a file while it arrives.

    Raises TimeoutExceededError if no data arrives for `READ_TIMEOUT_SECONDS`, and TooLargeError above `MAX_FILE_BYTES`.
    """
    pieces, size = request.stream(), 0
    try:
        while piece := await with_timeout(anext(pieces, b""), seconds=READ_TIMEOUT_SECONDS):
            size += len(piece)
            if size > MAX_FILE_BYTES:
                raise TooLargeError(f"The file exceeds {MAX_FILE_BYTES:,} bytes.", hint="Send the content in parts.")
            await asyncio.to_thread(target.write, piece)
        await asyncio.to_thread(target.flush)
    except TimeoutError:
        raise TimeoutExceededError(
            f"No data arrived for {READ_TIMEOUT_SECONDS} seconds.", hint="Send the body again."
        ) from None
    except ClientDisconnect:
        raise InputError("The client disconnected before the end of the body.", hint="Send the body again.") from None
    except OSError as error:
        raise TooLargeError(
            f"The body cannot be stored: {error.strerror}.", hint="Free disk space on the daemon's machine."
        ) from None


def is_nested_deeper(body: bytes, max_depth: int) -> bool:
    """Return whether JSON text is nested deeper than `max_depth`; brackets in strings do not count.

    >>> body = b'{"a": [1, {"b": "[[["}]}'
    >>> is_nested_deeper(body, 2), is_nested_deeper(body, 3)
    (True, False)
    """
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(body):
        first = token[0][:1]
        if first != b'"':
            depth += 1 if first in b"[{" else -1
            if depth > max_depth:
                return True
    return False


def check_body(body: bytes) -> None:
    """Raise InputError for text that PostgreSQL cannot store, and for JSON that is invalid or too deeply nested."""
    if body.count(b"[") + body.count(b"{") > MAX_JSON_DEPTH and is_nested_deeper(body, MAX_JSON_DEPTH):
        raise InputError(
            f"The body is nested deeper than {MAX_JSON_DEPTH} levels.",
            hint="Send fewer levels of nested lists and objects.",
        )
    if b"\0" in body or (b"\\u0000" in body and _NUL.search(body)):
        raise NUL_CHARACTER
    try:
        body.decode()
        if _SURROGATE_ESCAPE.search(body):
            json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeError:
        raise InputError(
            "The body contains an unpaired Unicode surrogate.", hint="Send the body as valid UTF-8."
        ) from None
    except (ValueError, RecursionError):
        raise InputError("The body is not JSON.", hint="`/openapi.json` describes the endpoint.") from None


def _with_session_token(scope: Scope) -> Scope:
    """Return the scope of a request; for a page of the dashboard, with the token of the session in its cookie.

    Raises UnauthorizedError for a page without a session.
    """
    if not is_dashboard_path(scope["path"]):
        return scope
    request = Request(scope)
    sessions: BrowserSessions = request.app.state.browser_sessions
    session = sessions.find(request.cookies.get(cookie_name(request.url.scheme, request.url.port), ""))
    if session is None:
        raise NOT_SIGNED_IN
    headers = [(b"authorization", b"Bearer " + session.grant.token.encode())]
    if session.agent is not None:
        headers.append((b"x-newton-agent", session.agent.encode()))
    return {**scope, "headers": headers}


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI `receive` function that returns the whole body first, then the messages of the server."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def _host_name(url: str) -> str | None:
    """Return the host name in a URL; None if there is none.

    >>> _host_name("http://localhost:3000"), _host_name("//[::1]:8700"), _host_name("null"), _host_name("//[")
    ('localhost', '::1', None, None)
    """
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _origin_error(what: str) -> OriginNotAllowedError:
    return OriginNotAllowedError(
        what, hint="If the host is yours, start the daemon with `newton serve --allow-host NAME`."
    )
