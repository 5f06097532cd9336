"""Admission control: limits of concurrent requests per agent and token, and a short queue that serves fairly."""

import asyncio
import re
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newton.clock import monotonic_ms
from newton.concurrency import idle_timeout, with_timeout
from newton.deadline import DEFAULT_TIMEOUT_SECONDS, RequestDeadline, check_timeout
from newton.errors import InputError, OverloadedError, TimeoutExceededError
from newton.runtime.access.operator_token import is_same_token
from newton.runtime.access.tokens import hash_token
from newton.runtime.api.problems import error_response

MAX_KNOWN = 10_000


class CallerKey(NamedTuple):
    """The token of a request, and the agent of the token. The concurrent requests of both are limited."""

    agent: str
    token: str


class KnownCallers:
    """The agents of the tokens that were verified last, to find the agent of a request without a query.

    A token that is not verified yet counts as an agent of its own, so that a forged one does not use up the limits of
    the agent that it names.
    """

    def __init__(self, operator_token: str) -> None:
        self._operator_token = operator_token
        self._agents: OrderedDict[bytes, UUID] = OrderedDict()

    def add(self, token: str, agent_id: UUID) -> None:
        """Remember the agent of a token that was verified."""
        key = hash_token(token)
        self._agents[key] = agent_id
        self._agents.move_to_end(key)
        if len(self._agents) > MAX_KNOWN:
            self._agents.popitem(last=False)

    def identify(self, scope: Scope) -> CallerKey:
        """Return the caller of a request. The operator counts as one caller for each agent that a header selects."""
        headers = Headers(scope=scope)
        scheme, _, token = headers.get("authorization", "").strip().partition(" ")
        token = token.strip()
        if is_same_token(token, self._operator_token):
            operator = f"operator {headers.get('x-newton-agent', '').strip()}"
            return CallerKey(operator, operator)
        key = hash_token(token)
        unverified = f"{scheme.lower()} {key.hex()}"
        agent_id = self._agents.get(key)
        return CallerKey(f"agent {agent_id}" if agent_id else unverified, unverified)


MAX_RUNNING, MAX_RUNNING_PER_AGENT, MAX_RUNNING_PER_TOKEN = 16, 12, 10
MAX_WAITING, MAX_WAITING_PER_AGENT, MAX_WAITING_PER_TOKEN = 64, 32, 24
# Requests with large bodies, which take much processor time, are few at a time.
LARGE_BODY_BYTES, MAX_LARGE, LARGE_PAUSE_SECONDS = 64 * 1024, 2, 1.0
RESPONSE_SECONDS = 60.0  # until the response starts
GRACE_SECONDS = 5.0  # after the deadline that a caller has set, for the response

TURNS = "turns"
# Maximum concurrent requests of all agents and of one agent, for requests that are long but mostly idle.
LONG_LIVED_LIMITS = {
    TURNS: (32, 8),
    "/v1/events": (64, 8),
    "/v1/import": (4, 2),
    "/v1/export": (4, 2),
    "/v1/embeddings": (8, 4),
}
# Exempt from all limits, so that they respond under overload.
UNLIMITED_PATHS = frozenset({"/health/live", "/health/ready", "/metrics", "/openapi.json"})
# A page makes requests to the API within the process, and these are limited.
PAGE_PATHS = re.compile(r"/(dashboard/.*)?")

TIMEOUT_HEADER = "X-Newton-Timeout"  # seconds
DEADLINE_KEY = "newton.deadline"  # the RequestDeadline of a request, in the ASGI scope
BODY_BYTES_KEY = "newton.body_bytes"  # the size of the body, in the ASGI scope

OVERLOADED_ERROR = OverloadedError(
    "Too many concurrent requests.", hint="Retry in a moment, or send fewer requests at a time."
)
RESPONSE_TIMEOUT_ERROR = TimeoutExceededError(
    f"The request took longer than {RESPONSE_SECONDS:g} seconds.", hint="Request fewer items at a time, or retry later."
)
STALLED_ERROR = TimeoutExceededError(f"The request made no progress for {RESPONSE_SECONDS:g} s.", hint="Retry later.")


@asynccontextmanager
async def stall_timeout() -> AsyncGenerator[Callable[[object], None]]:
    """Limit the time without progress in the block. Yield a callback that reports progress and ignores its argument.

    Raises TimeoutExceededError if the callback is not called for `RESPONSE_SECONDS`.
    """
    try:
        async with idle_timeout(seconds=RESPONSE_SECONDS) as on_progress:
            yield on_progress
    except TimeoutError:
        raise STALLED_ERROR from None


@dataclass(slots=True, kw_only=True, eq=False)
class FairLimiter:
    """A limit of concurrent requests, in total, per agent and per token, with a queue.

    A free slot goes to the agent with the fewest running requests, and within it to the token with the fewest.
    """

    max_running: int = MAX_RUNNING
    max_running_per_agent: int = MAX_RUNNING_PER_AGENT
    max_running_per_token: int = MAX_RUNNING_PER_TOKEN
    max_waiting: int = MAX_WAITING
    max_waiting_per_agent: int = MAX_WAITING_PER_AGENT
    max_waiting_per_token: int = MAX_WAITING_PER_TOKEN
    _running: Counter[str | CallerKey] = field(default_factory=Counter[str | CallerKey], init=False)
    _queues: OrderedDict[CallerKey, deque[asyncio.Future[None]]] = field(
        default_factory=OrderedDict[CallerKey, deque[asyncio.Future[None]]], init=False
    )

    @asynccontextmanager
    async def slot(
        self, caller: CallerKey, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    ) -> AsyncGenerator[None]:
        """Occupy one of the slots for the `with` block, after waiting in the queue if all are taken.

        Raises OverloadedError if the queue is full or the wait takes too long.
        """
        if self._has_free_slot(caller):
            self._occupy(caller)
        else:
            await self._wait(caller, timeout_seconds)
        try:
            yield
        finally:
            self._release(caller)

    @property
    def has_waiting(self) -> bool:
        """Return whether a request waits in the queue."""
        return bool(self._queues)

    def _has_free_slot(self, caller: CallerKey) -> bool:
        is_free = self._running.total() // 2 < self.max_running  # each request counts for its agent and its token
        is_free_for_agent = self._running[caller.agent] < self.max_running_per_agent
        return is_free and is_free_for_agent and self._running[caller] < self.max_running_per_token

    def _occupy(self, caller: CallerKey) -> None:
        self._running.update((caller.agent, caller))

    async def _wait(self, caller: CallerKey, timeout_seconds: float) -> None:
        """Wait in the queue until `_release` gives this request a slot. Raises OverloadedError."""
        line = self._queues.get(caller, deque())
        of_agent = sum(len(one) for key, one in self._queues.items() if key.agent == caller.agent)
        is_full = sum(map(len, self._queues.values())) >= self.max_waiting
        if is_full or of_agent >= self.max_waiting_per_agent or len(line) >= self.max_waiting_per_token:
            raise OVERLOADED_ERROR
        turn = asyncio.get_running_loop().create_future()
        self._queues.setdefault(caller, line).append(turn)
        try:
            await with_timeout(asyncio.shield(turn), seconds=timeout_seconds)
        except TimeoutError:
            self._abandon(caller, turn)
            raise OVERLOADED_ERROR from None
        except asyncio.CancelledError:
            self._abandon(caller, turn)
            raise

    def _abandon(self, caller: CallerKey, turn: "asyncio.Future[None]") -> None:
        if turn.done():  # admitted in the meantime
            self._release(caller)
            return
        self._queues[caller].remove(turn)
        if not self._queues[caller]:
            del self._queues[caller]

    def _release(self, caller: CallerKey) -> None:
        """Free the slot of a request, and give it to the waiting request with the fewest running beside it."""
        for key in (caller.agent, caller):
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]
        waiting = [one for one in self._queues if self._has_free_slot(one)]
        if waiting:  # of equal ones, the one that waits for the longest time since its last turn
            following = min(waiting, key=lambda one: (self._running[one.agent], self._running[one]))
            line = self._queues.pop(following)
            line.popleft().set_result(None)
            self._occupy(following)
            if line:
                self._queues[following] = line  # behind the other callers


class AdmissionMiddleware:
    """A middleware that limits concurrent requests and their duration, and sets the deadline of each.

    A request waits in the queue until its deadline. Long-running requests, such as turns and event streams, have
    separate limits and no timeout; of these, only turns wait.
    """

    def __init__(self, app: ASGIApp, limiter: FairLimiter, callers: KnownCallers) -> None:
        self.app, self.limiter, self.callers = app, limiter, callers
        self.large = FairLimiter(max_running=MAX_LARGE, max_running_per_agent=1)
        self.long_lived = {
            kind: FairLimiter(
                max_running=total,
                max_running_per_agent=each,
                max_running_per_token=each,
                max_waiting=MAX_WAITING if kind == TURNS else 0,
            )
            for kind, (total, each) in LONG_LIVED_LIMITS.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_unlimited(scope["path"]):
            await self.app(scope, receive, send)
            return
        caller, long_lived = self.callers.identify(scope), self.long_lived.get(_limit_key(scope["path"]))
        deadline = scope[DEADLINE_KEY] = _read_deadline(scope)
        try:
            async with AsyncExitStack() as stack:
                if not long_lived and scope.get(BODY_BYTES_KEY, 0) >= LARGE_BODY_BYTES:
                    await stack.enter_async_context(self._large_slot(caller, deadline))
                await stack.enter_async_context(
                    (long_lived or self.limiter).slot(caller, timeout_seconds=deadline.remaining)
                )
                await (self.app if long_lived else self._run_with_timeout)(scope, receive, send)
        except OverloadedError as error:
            await error_response(error, scope["path"])(scope, receive, send)

    @asynccontextmanager
    async def _large_slot(self, caller: CallerKey, deadline: RequestDeadline) -> AsyncGenerator[None]:
        """Occupy a slot for a large request, and keep it for as long again if others wait.

        Their work in a row then takes at most half of the time, and the rest is for the requests of others.
        """
        async with self.large.slot(caller, timeout_seconds=deadline.remaining):
            started = monotonic_ms()
            yield
            if self.large.has_waiting:
                await asyncio.sleep(min((monotonic_ms() - started) / 1_000, LARGE_PAUSE_SECONDS))

    async def _run_with_timeout(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; with an error if its response has not begun within the time that it has."""
        is_started = False

        async def send_and_stop_timer(message: Message) -> None:
            nonlocal is_started
            if not is_started:
                is_started = True
                limit.reschedule(None)
            await send(message)

        deadline: RequestDeadline = scope[DEADLINE_KEY]
        has_own_timeout = TIMEOUT_HEADER in Headers(scope=scope)
        seconds = deadline.remaining + GRACE_SECONDS if has_own_timeout else RESPONSE_SECONDS
        try:
            async with asyncio.timeout(seconds) as limit:
                await self.app(scope, receive, send_and_stop_timer)
        except TimeoutError:
            if is_started:
                raise
            error = deadline.to_error() if has_own_timeout else RESPONSE_TIMEOUT_ERROR
            await error_response(error, scope["path"])(scope, receive, send)


def _read_deadline(scope: Scope) -> RequestDeadline:
    """Return the deadline that the header of a request sets, or the default. The endpoint rejects an invalid header."""
    text = Headers(scope=scope).get(TIMEOUT_HEADER)
    try:
        return RequestDeadline.after(DEFAULT_TIMEOUT_SECONDS if text is None else check_timeout(text))
    except InputError:
        return RequestDeadline.after()


def _is_unlimited(path: str) -> bool:
    return path in UNLIMITED_PATHS or PAGE_PATHS.fullmatch(path) is not None


def _limit_key(path: str) -> str:
    turn = path.startswith("/v1/sessions/") and path.endswith("/turns")
    return TURNS if turn or path in ("/v1/chat/completions", "/v1/responses") else path
