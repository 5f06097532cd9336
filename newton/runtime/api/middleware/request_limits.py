"""What may be sent at all: from which page, to which name, how much of it, how deep, and in which characters."""

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
)
from newton.runtime.api.auth import BEARER, authenticate
from newton.runtime.api.middleware.admission import caller_key
from newton.runtime.api.problems import error_response

MAX_BODY_BYTES = 10 * 1024 * 1024
# Bytes of bodies that are being read or worked on: of all, of a caller, and of a request and of all together as long as
# nobody has proven a token.
MAX_TOTAL_BYTES, MAX_BYTES_PER_CALLER = 128 * 1024 * 1024, 32 * 1024 * 1024
MAX_UNAUTHENTICATED_REQUEST_BYTES, MAX_UNAUTHENTICATED_BYTES = 64 * 1024, 16 * 1024 * 1024
MAX_JSON_DEPTH = 64
MAX_FILE_BYTES = 4 * 1024**3  # of a body that is written down as it comes
READ_TIMEOUT_SECONDS = 30  # to send a body, or the next piece of one that is written down
MAX_QUOTED_HOST_CHARS = 100  # characters of a foreign name that are told back
THREAD_CHECK_BYTES = 256 * 1024  # from here on a body is looked through beside the others

NDJSON_MEDIA_TYPES = frozenset({"application/x-ndjson", "application/ndjson"})
STREAMED_PATHS = frozenset({"/v1/import"})  # read by the endpoint, which has asked for a token by then

_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")


class OriginCheckMiddleware:
    """Refuses what a page of somebody else's sends, and what comes under a name that is not ours: a browser that was
    led to a foreign name with our address would be one of them."""

    def __init__(self, app: ASGIApp, hosts: Set[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (fault := self._find_error(Headers(scope=scope))):
            await error_response(fault, scope["path"])(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _find_error(self, headers: Headers) -> NewtonError | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if _host_name(f"//{host}") not in self.hosts:
            return _origin_error(f"The daemon does not go by the name {host[:MAX_QUOTED_HOST_CHARS]!r}.")
        if origin is not None and _host_name(origin) not in self.hosts:
            return _origin_error(f"Pages of {origin[:MAX_QUOTED_HOST_CHARS]!r} may not call the daemon.")
        return None


class BodyMemory:
    """How much of a body is held, and on whose account: nobody's until a token is proven."""

    def __init__(self, bytes_by_caller: Counter[str]) -> None:
        self._bytes_by_caller, self._caller_key, self._size = bytes_by_caller, "", 0

    def has_room(self, size: int) -> bool:
        most = MAX_BYTES_PER_CALLER if self._caller_key else MAX_UNAUTHENTICATED_BYTES
        return (
            self._bytes_by_caller[self._caller_key] + size <= most
            and self._bytes_by_caller.total() + size <= MAX_TOTAL_BYTES
        )

    def needs_authentication(self, size: int) -> bool:
        """Whether nobody's account is too small for so many bytes more."""
        return not self._caller_key and (
            self._size + size > MAX_UNAUTHENTICATED_REQUEST_BYTES or not self.has_room(size)
        )

    def reserve(self, size: int) -> None:
        self._bytes_by_caller[self._caller_key] += size
        self._size += size

    def assign_to(self, caller_key: str) -> None:
        """From now on it is on that account."""
        size = self._size
        self.release()
        self._caller_key = caller_key
        self.reserve(size)

    def release(self) -> None:
        self.reserve(-self._size)
        if not self._bytes_by_caller[self._caller_key]:
            del self._bytes_by_caller[self._caller_key]


class BodyMiddleware:
    """Reads a body before anything is done with it: a slow sender keeps nobody from working. A large one is read on
    only for who shows a valid token. What is sent to be written down is read by its endpoint."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.bytes_by_caller = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in STREAMED_PATHS:
            await self.app(scope, receive, send)
            return
        held = BodyMemory(self.bytes_by_caller)
        try:
            try:
                whole = await self._read_checked_body(scope, receive, held)
            except NewtonError as fault:
                await error_response(fault, scope["path"])(scope, receive, send)
                return
            if whole is not None:
                await self.app(scope, _replay_body(whole, receive), send)
        finally:
            held.release()

    async def _read_checked_body(self, scope: Scope, receive: Receive, memory: BodyMemory) -> bytes | None:
        """The body; None when the sender has left. Raises what is wrong with it."""
        headers = Headers(scope=scope)
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            raise _nul_byte_error()
        if int(given if (given := headers.get("content-length", "0")).isdecimal() else "0") > MAX_BODY_BYTES:
            raise _too_large_error()
        try:
            whole = await with_timeout(self._receive_body(scope, receive, memory), seconds=READ_TIMEOUT_SECONDS)
        except TimeoutError:
            raise TimeoutExceededError(
                f"The body did not arrive within {READ_TIMEOUT_SECONDS} seconds.", hint="Send it faster."
            ) from None
        if whole:
            await _check_in_thread_if_large(whole, is_ndjson=_media_type(headers) in NDJSON_MEDIA_TYPES)
        return whole

    async def _receive_body(self, scope: Scope, receive: Receive, memory: BodyMemory) -> bytes | None:
        pieces, size, more = list[bytes](), 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunk = message.get("body", b"")
            size, more = size + len(chunk), message.get("more_body", False)
            if size > MAX_BODY_BYTES:
                raise _too_large_error()
            if memory.needs_authentication(len(chunk)):
                request = Request(scope)
                await authenticate(request, await BEARER(request), request.headers.get("X-Newton-Agent"))
                memory.assign_to(caller_key(scope))
            if not memory.has_room(len(chunk)):
                raise OverloadedError("Too many large bodies are being sent.", hint="Send it again in a moment.")
            memory.reserve(len(chunk))
            pieces.append(chunk)
        return b"".join(pieces)


async def save_to_file(request: Request, target: IO[bytes]) -> None:
    """Writes a body down as it comes, however long that takes as long as it comes."""
    pieces, size = request.stream(), 0
    try:
        while piece := await with_timeout(anext(pieces, b""), seconds=READ_TIMEOUT_SECONDS):
            size += len(piece)
            if size > MAX_FILE_BYTES:
                raise TooLargeError(f"A file has at most {MAX_FILE_BYTES:,} bytes.", hint="Send it in parts.")
            await asyncio.to_thread(target.write, piece)
        await asyncio.to_thread(target.flush)
    except TimeoutError:
        raise TimeoutExceededError(
            f"Nothing more of it came for {READ_TIMEOUT_SECONDS} seconds.", hint="Send it again."
        ) from None
    except ClientDisconnect:
        raise InputError("The sender has left before its end.", hint="Send it again.") from None
    except OSError as error:
        raise TooLargeError(
            f"It cannot be written down: {error.strerror}.", hint="Give the daemon more room."
        ) from None


def is_nested_deeper(body: bytes, max_depth: int) -> bool:
    """Whether JSON text is nested deeper than that; brackets within its strings do not count.

    >>> body = b'{"a": [1, {"b": "[[["}]}'
    >>> is_nested_deeper(body, 2), is_nested_deeper(body, 3)
    (True, False)
    """
    now = 0
    for mark in _STRING_OR_BRACKET.finditer(body):
        first = mark[0][:1]
        if first != b'"':
            now += 1 if first in b"[{" else -1
            if now > max_depth:
                return True
    return False


def check_body(body: bytes, *, is_ndjson: bool = False) -> None:
    """Raises InputError for what PostgreSQL cannot keep, and for what nobody would nest so deep.

    Lines are looked at one by one later; each that cannot be taken is refused by its number.
    """
    if is_ndjson:
        return
    if body.count(b"[") + body.count(b"{") > MAX_JSON_DEPTH and is_nested_deeper(body, MAX_JSON_DEPTH):
        raise InputError(f"The body is nested deeper than {MAX_JSON_DEPTH}.", hint="Send something flatter.")
    if b"\0" in body or (b"\\u0000" in body and _NUL.search(body)):
        raise _nul_byte_error()
    try:
        body.decode()
        if _SURROGATE_ESCAPE.search(body):
            json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeError:
        raise InputError("The body holds half a character.", hint="Send it as valid UTF-8.") from None
    except (ValueError, RecursionError):
        raise InputError("The body is no JSON.", hint="`/openapi.json` says what the endpoint takes.") from None


async def _check_in_thread_if_large(body: bytes, *, is_ndjson: bool) -> None:
    if len(body) < THREAD_CHECK_BYTES:
        check_body(body, is_ndjson=is_ndjson)
    else:
        await asyncio.to_thread(check_body, body, is_ndjson=is_ndjson)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """The body in one piece; then what the server says, such as that the caller has left."""
    given = False

    async def received() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received


def _media_type(headers: Headers) -> str:
    """The type that is named alone: what stands behind it may say anything."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _host_name(url: str) -> str | None:
    """
    >>> _host_name("http://localhost:3000"), _host_name("//[::1]:8700"), _host_name("null"), _host_name("//[")
    ('localhost', '::1', None, None)
    """
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _origin_error(what: str) -> OriginNotAllowedError:
    return OriginNotAllowedError(what, hint="If it is a name of yours: `newton serve --allow-host NAME` lets it.")


def _too_large_error() -> TooLargeError:
    return TooLargeError(
        f"A body has at most {MAX_BODY_BYTES:,} bytes.", hint="Send it in parts; files go in by `newton import` too."
    )


def _nul_byte_error() -> InputError:
    return InputError("There is a NUL byte in it.", hint="Remove it: PostgreSQL cannot keep one in a text.")
