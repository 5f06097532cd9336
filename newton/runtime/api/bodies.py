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

from newton.concurrency import within
from newton.errors import BusyError, DeadlineError, ElsewhereError, InputError, NewtonError, TooLargeError
from newton.runtime.api.caller import BEARER, proven
from newton.runtime.api.problems import answer
from newton.runtime.api.turns import who

MOST_BYTES = 10 * 1024 * 1024
# Bytes of bodies that are being read or worked on: of all, of a caller, and of a request and of all together as long as
# nobody has proven a token.
MOST_HELD, MOST_EACH = 128 * 1024 * 1024, 32 * 1024 * 1024
UNPROVEN_EACH, MOST_UNPROVEN = 64 * 1024, 16 * 1024 * 1024
MOST_DEPTH = 64
MOST_FILED = 4 * 1024**3  # of a body that is written down as it comes
SECONDS = 30  # to send a body, or the next piece of one that is written down
MOST_NAME = 100  # characters of a foreign name that are told back
LARGE = 256 * 1024  # from here on a body is looked through beside the others

LINES = frozenset({"application/x-ndjson", "application/ndjson"})
FILED = frozenset({"/v1/import"})  # read by the endpoint, which has asked for a token by then

_MARK = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


class Addressed:
    """Refuses what a page of somebody else's sends, and what comes under a name that is not ours: a browser that was
    led to a foreign name with our address would be one of them."""

    def __init__(self, app: ASGIApp, hosts: Set[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (fault := self._fault(Headers(scope=scope))):
            await answer(fault, scope["path"])(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _fault(self, headers: Headers) -> NewtonError | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if _name(f"//{host}") not in self.hosts:
            return _foreign(f"The daemon does not go by the name {host[:MOST_NAME]!r}.")
        if origin is not None and _name(origin) not in self.hosts:
            return _foreign(f"Pages of {origin[:MOST_NAME]!r} may not call the daemon.")
        return None


class Held:
    """How much of a body is held, and on whose account: nobody's until a token is proven."""

    def __init__(self, accounts: Counter[str]) -> None:
        self._accounts, self._who, self._size = accounts, "", 0

    def fits(self, size: int) -> bool:
        most = MOST_EACH if self._who else MOST_UNPROVEN
        return self._accounts[self._who] + size <= most and self._accounts.total() + size <= MOST_HELD

    def unproven(self, size: int) -> bool:
        """Whether nobody's account is too small for so many bytes more."""
        return not self._who and (self._size + size > UNPROVEN_EACH or not self.fits(size))

    def take(self, size: int) -> None:
        self._accounts[self._who] += size
        self._size += size

    def charge(self, who: str) -> None:
        """From now on it is on that account."""
        size = self._size
        self.drop()
        self._who = who
        self.take(size)

    def drop(self) -> None:
        self.take(-self._size)
        if not self._accounts[self._who]:
            del self._accounts[self._who]


class Read:
    """Reads a body before anything is done with it: a slow sender keeps nobody from working. A large one is read on
    only for who shows a valid token. What is sent to be written down is read by its endpoint."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.accounts = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in FILED:
            await self.app(scope, receive, send)
            return
        held = Held(self.accounts)
        try:
            try:
                whole = await self._checked(scope, receive, held)
            except NewtonError as fault:
                await answer(fault, scope["path"])(scope, receive, send)
                return
            if whole is not None:
                await self.app(scope, _once(whole, receive), send)
        finally:
            held.drop()

    async def _checked(self, scope: Scope, receive: Receive, held: Held) -> bytes | None:
        """The body; None when the sender has left. Raises what is wrong with it."""
        headers = Headers(scope=scope)
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            raise _nul()
        if int(given if (given := headers.get("content-length", "0")).isdecimal() else "0") > MOST_BYTES:
            raise _large()
        try:
            whole = await within(self._read(scope, receive, held), seconds=SECONDS)
        except TimeoutError:
            raise DeadlineError(f"The body did not arrive within {SECONDS} seconds.", hint="Send it faster.") from None
        if whole:
            await _looked_through(whole, lines=_media(headers) in LINES)
        return whole

    async def _read(self, scope: Scope, receive: Receive, held: Held) -> bytes | None:
        pieces, size, more = list[bytes](), 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunk = message.get("body", b"")
            size, more = size + len(chunk), message.get("more_body", False)
            if size > MOST_BYTES:
                raise _large()
            if held.unproven(len(chunk)):
                request = Request(scope)
                await proven(request, await BEARER(request), request.headers.get("X-Newton-Agent"))
                held.charge(who(scope))
            if not held.fits(len(chunk)):
                raise BusyError("Too many large bodies are being sent.", hint="Send it again in a moment.")
            held.take(len(chunk))
            pieces.append(chunk)
        return b"".join(pieces)


async def file(request: Request, into: IO[bytes]) -> None:
    """Writes a body down as it comes, however long that takes as long as it comes."""
    pieces, size = request.stream(), 0
    try:
        while piece := await within(anext(pieces, b""), seconds=SECONDS):
            size += len(piece)
            if size > MOST_FILED:
                raise TooLargeError(f"A file has at most {MOST_FILED:,} bytes.", hint="Send it in parts.")
            await asyncio.to_thread(into.write, piece)
        await asyncio.to_thread(into.flush)
    except TimeoutError:
        raise DeadlineError(f"Nothing more of it came for {SECONDS} seconds.", hint="Send it again.") from None
    except ClientDisconnect:
        raise InputError("The sender has left before its end.", hint="Send it again.") from None
    except OSError as error:
        raise TooLargeError(
            f"It cannot be written down: {error.strerror}.", hint="Give the daemon more room."
        ) from None


def deeper(body: bytes, most: int) -> bool:
    """Whether JSON text is nested deeper than that; brackets within its strings do not count.

    >>> body = b'{"a": [1, {"b": "[[["}]}'
    >>> deeper(body, 2), deeper(body, 3)
    (True, False)
    """
    now = 0
    for mark in _MARK.finditer(body):
        first = mark[0][:1]
        if first != b'"':
            now += 1 if first in b"[{" else -1
            if now > most:
                return True
    return False


def check(body: bytes, *, lines: bool = False) -> None:
    """Raises InputError for what PostgreSQL cannot keep, and for what nobody would nest so deep.

    Lines are looked at one by one later; each that cannot be taken is refused by its number.
    """
    if lines:
        return
    if body.count(b"[") + body.count(b"{") > MOST_DEPTH and deeper(body, MOST_DEPTH):
        raise InputError(f"The body is nested deeper than {MOST_DEPTH}.", hint="Send something flatter.")
    if b"\0" in body or (b"\\u0000" in body and _NUL.search(body)):
        raise _nul()
    try:
        body.decode()
        if _HALF.search(body):
            json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeError:
        raise InputError("The body holds half a character.", hint="Send it as valid UTF-8.") from None
    except (ValueError, RecursionError):
        raise InputError("The body is no JSON.", hint="`/openapi.json` says what the endpoint takes.") from None


async def _looked_through(body: bytes, *, lines: bool) -> None:
    if len(body) < LARGE:
        check(body, lines=lines)
    else:
        await asyncio.to_thread(check, body, lines=lines)


def _once(body: bytes, receive: Receive) -> Receive:
    """The body in one piece; then what the server says, such as that the caller has left."""
    given = False

    async def received() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return received


def _media(headers: Headers) -> str:
    """The type that is named alone: what stands behind it may say anything."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _name(url: str) -> str | None:
    """
    >>> _name("http://localhost:3000"), _name("//[::1]:8700"), _name("null"), _name("//[")
    ('localhost', '::1', None, None)
    """
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _foreign(what: str) -> ElsewhereError:
    return ElsewhereError(what, hint="If it is a name of yours: `newton serve --allow-host NAME` lets it.")


def _large() -> TooLargeError:
    return TooLargeError(
        f"A body has at most {MOST_BYTES:,} bytes.", hint="Send it in parts; files go in by `newton import` too."
    )


def _nul() -> InputError:
    return InputError("There is a NUL byte in it.", hint="Remove it: PostgreSQL cannot keep one in a text.")
