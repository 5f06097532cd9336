"""Admission control: a limit of concurrent requests, and a short queue that serves the callers round-robin."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newton.concurrency import idle_timeout, with_timeout
from newton.errors import OverloadedError, TimeoutExceededError
from newton.runtime.api.problems import error_response

MAX_RUNNING, MAX_RUNNING_PER_CALLER = 16, 12  # requests of all callers, and of one
MAX_WAITING, MAX_WAITING_PER_CALLER = 64, 32
WAIT_SECONDS = 5.0
RESPONSE_SECONDS = 60.0  # until the response starts

# Maximum concurrent requests of all callers and of one caller, for requests that are long but mostly idle.
LONG_LIVED_LIMITS = {
    "turns": (32, 8),
    "/v1/events": (64, 8),
    "/v1/import": (4, 2),
    "/v1/export": (4, 2),
    "/v1/embeddings": (8, 4),
}
# Exempt from all limits, so that they respond under overload.
UNLIMITED_PATHS = frozenset({"/health/live", "/health/ready", "/metrics", "/openapi.json"})

OVERLOADED_ERROR = OverloadedError(
    "Too many concurrent requests.", hint="Retry in a moment, or send fewer requests at a time."
)
RESPONSE_TIMEOUT_ERROR = TimeoutExceededError(
    f"The request took longer than {RESPONSE_SECONDS:g} seconds.", hint="Request fewer items at a time, or retry later."
)
STALLED_ERROR = TimeoutExceededError(f"The request made no progress for {RESPONSE_SECONDS:g} s.", hint="Retry later.")


@asynccontextmanager
async def stall_timeout() -> AsyncGenerator[Callable[[object], None]]:
    """Yield a callback that reports progress and ignores its argument.

    Raises TimeoutExceededError if it is not called for `RESPONSE_SECONDS`.
    """
    try:
        async with idle_timeout(seconds=RESPONSE_SECONDS) as on_progress:
            yield on_progress
    except TimeoutError:
        raise STALLED_ERROR from None


@dataclass(slots=True, kw_only=True, eq=False)
class FairLimiter:
    """A limit of concurrent requests, in total and per caller, with a queue. Waiting callers take turns."""

    max_running: int = MAX_RUNNING
    max_running_per_caller: int = MAX_RUNNING_PER_CALLER
    max_waiting: int = MAX_WAITING
    max_waiting_per_caller: int = MAX_WAITING_PER_CALLER
    _running: Counter[str] = field(default_factory=Counter[str], init=False)
    _queues: OrderedDict[str, deque[asyncio.Future[None]]] = field(
        default_factory=OrderedDict[str, deque[asyncio.Future[None]]], init=False
    )

    @asynccontextmanager
    async def slot(self, caller_key: str, *, timeout_seconds: float = WAIT_SECONDS) -> AsyncGenerator[None]:
        """Occupy one of the slots for the `with` block, after waiting in the queue if all are taken.

        Raises OverloadedError if the queue is full or the wait takes too long.
        """
        if self._has_free_slot(caller_key):
            self._running[caller_key] += 1
        else:
            await self._wait(caller_key, timeout_seconds)
        try:
            yield
        finally:
            self._release(caller_key)

    def _has_free_slot(self, caller_key: str) -> bool:
        return self._running.total() < self.max_running and self._running[caller_key] < self.max_running_per_caller

    async def _wait(self, caller_key: str, timeout_seconds: float) -> None:
        queued = sum(map(len, self._queues.values()))
        line = self._queues.get(caller_key, deque())
        if queued >= self.max_waiting or len(line) >= self.max_waiting_per_caller:
            raise OVERLOADED_ERROR
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller_key, line).append(turn)
        try:
            await with_timeout(asyncio.shield(turn), seconds=timeout_seconds)
        except TimeoutError:
            self._abandon(caller_key, turn)
            raise OVERLOADED_ERROR from None
        except asyncio.CancelledError:
            self._abandon(caller_key, turn)
            raise

    def _abandon(self, caller_key: str, turn: "asyncio.Future[None]") -> None:
        if turn.done():  # admitted in the meantime
            self._release(caller_key)
            return
        self._queues[caller_key].remove(turn)
        if not self._queues[caller_key]:
            del self._queues[caller_key]

    def _release(self, caller_key: str) -> None:
        self._running[caller_key] -= 1
        if not self._running[caller_key]:
            del self._running[caller_key]
        following = next((one for one in self._queues if self._has_free_slot(one)), None)
        if following is not None:
            line = self._queues.pop(following)
            line.popleft().set_result(None)
            self._running[following] += 1
            if line:
                self._queues[following] = line  # behind the other callers


class AdmissionMiddleware:
    """A middleware that limits concurrent requests and their duration.

    Long-running requests, such as turns and event streams, have separate limits, no queue and no timeout.
    """

    def __init__(self, app: ASGIApp, limiter: FairLimiter) -> None:
        self.app, self.limiter = app, limiter
        self.long_lived = {
            kind: FairLimiter(max_running=total, max_running_per_caller=each, max_waiting=0, max_waiting_per_caller=0)
            for kind, (total, each) in LONG_LIVED_LIMITS.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in UNLIMITED_PATHS:
            await self.app(scope, receive, send)
            return
        long_lived = self.long_lived.get(_limit_key(scope["path"]))
        try:
            async with (long_lived or self.limiter).slot(caller_key(scope)):
                await (self.app if long_lived else self._run_with_timeout)(scope, receive, send)
        except OverloadedError as error:
            await error_response(error, scope["path"])(scope, receive, send)

    async def _run_with_timeout(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_started = False

        async def send_and_stop_timer(message: Message) -> None:
            nonlocal is_started
            if not is_started:
                is_started = True
                limit.reschedule(None)
            await send(message)

        try:
            async with asyncio.timeout(RESPONSE_SECONDS) as limit:
                await self.app(scope, receive, send_and_stop_timer)
        except TimeoutError:
            if is_started:
                raise
            await error_response(RESPONSE_TIMEOUT_ERROR, scope["path"])(scope, receive, send)


def _limit_key(path: str) -> str:
    turn = path.startswith("/v1/sessions/") and path.endswith("/turns")
    return "turns" if turn or path in ("/v1/chat/completions", "/v1/responses") else path


def caller_key(scope: Scope) -> str:
    """Return the key that identifies the caller of a request for its limits.

    The key contains the token, which is not verified yet, so a request with an invalid token has limits of its own.
    """
    headers = Headers(scope=scope)
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    return f"{scheme.lower()} {token.strip()} {headers.get('x-newton-agent', '').strip()}"
