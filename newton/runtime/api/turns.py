"""How many requests are at work at once, and who is next: callers take turns; beyond a short queue none waits."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newton.concurrency import moving, within
from newton.errors import BusyError, DeadlineError
from newton.runtime.api.problems import answer

AT_WORK, EACH_AT_WORK = 16, 12  # requests of all callers, and of one
WAITING, EACH_WAITING = 64, 32
WAIT_SECONDS = 5.0
WORK_SECONDS = 60.0  # until the answer begins

# A chat waits for a model, a listener stands for hours and does next to nothing, an agent as a file takes as long as it
# is large: they take no place at work, and have a number of their own, of all callers and of one.
STANDING = {"talk": (32, 8), "/v1/events": (64, 8), "/v1/import": (4, 2), "/v1/export": (4, 2)}
# These must answer when nothing else does.
APART = frozenset({"/health/live", "/health/ready", "/metrics", "/openapi.json"})

BUSY = BusyError("Too much is asked at once.", hint="Send it again in a moment, or ask less at a time.")
LATE = DeadlineError(f"It took longer than {WORK_SECONDS:g} seconds.", hint="Ask for less at once, or try again later.")
STUCK = DeadlineError(f"Nothing moved for {WORK_SECONDS:g} seconds.", hint="Try it again later.")


@asynccontextmanager
async def unless_stuck() -> AsyncGenerator[Callable[[object], None]]:
    """The time limit of what is long: what is within says when something has moved. Raises DeadlineError."""
    try:
        async with moving(seconds=WORK_SECONDS) as moved:
            yield moved
    except TimeoutError:
        raise STUCK from None


class Slots:
    """At most so many at work. Who waits is let in by turns: one of each caller, then the next of each."""

    def __init__(
        self,
        *,
        at_work: int = AT_WORK,
        each: int = EACH_AT_WORK,
        waiting: int = WAITING,
        each_waiting: int = EACH_WAITING,
    ) -> None:
        self.at_work, self.each, self.waiting, self.each_waiting = at_work, each, waiting, each_waiting
        self._working: Counter[str] = Counter()
        self._lines: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def slot(self, who: str, *, seconds: float = WAIT_SECONDS) -> AsyncGenerator[None]:
        """One place at work. Raises BusyError when too many wait, or it takes too long."""
        if self._free(who):
            self._working[who] += 1
        else:
            await self._wait(who, seconds)
        try:
            yield
        finally:
            self._leave(who)

    def _free(self, who: str) -> bool:
        return self._working.total() < self.at_work and self._working[who] < self.each

    async def _wait(self, who: str, seconds: float) -> None:
        queued = sum(map(len, self._lines.values()))
        line = self._lines.get(who, deque())
        if queued >= self.waiting or len(line) >= self.each_waiting:
            raise BUSY
        turn = asyncio.get_running_loop().create_future()
        self._lines.setdefault(who, line).append(turn)
        try:
            await within(asyncio.shield(turn), seconds=seconds)
        except TimeoutError:
            self._give_up(who, turn)
            raise BUSY from None
        except asyncio.CancelledError:
            self._give_up(who, turn)
            raise

    def _give_up(self, who: str, turn: "asyncio.Future[None]") -> None:
        if turn.done():  # it was let in at this very moment
            self._leave(who)
            return
        self._lines[who].remove(turn)
        if not self._lines[who]:
            del self._lines[who]

    def _leave(self, who: str) -> None:
        self._working[who] -= 1
        if not self._working[who]:
            del self._working[who]
        following = next((one for one in self._lines if self._free(one)), None)
        if following is not None:
            self._let_in(following)

    def _let_in(self, who: str) -> None:
        line = self._lines.pop(who)
        line.popleft().set_result(None)
        self._working[who] += 1
        if line:
            self._lines[who] = line  # behind the other callers


class Paced:
    """Lets a request to work when it is its turn, and ends it when it takes too long. Of those that stand, it refuses
    what goes beyond their number."""

    def __init__(self, app: ASGIApp, slots: Slots) -> None:
        self.app, self.slots = app, slots
        self.standing = {
            kind: Slots(at_work=most, each=each, waiting=0, each_waiting=0) for kind, (most, each) in STANDING.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in APART:
            await self.app(scope, receive, send)
            return
        standing = self.standing.get(_kind(scope["path"]))
        try:
            async with (standing or self.slots).slot(who(scope)):
                await (self.app if standing else self._timed)(scope, receive, send)
        except BusyError as busy:
            await answer(busy, scope["path"])(scope, receive, send)

    async def _timed(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            if not begun:
                begun = True
                limit.reschedule(None)
            await send(message)

        try:
            async with asyncio.timeout(WORK_SECONDS) as limit:
                await self.app(scope, receive, sent)
        except TimeoutError:
            if begun:
                raise
            await answer(LATE, scope["path"])(scope, receive, send)


def _kind(path: str) -> str:
    turn = path.startswith("/v1/sessions/") and path.endswith("/turns")
    return "talk" if turn or path == "/v1/chat/completions" else path


def who(scope: Scope) -> str:
    """Whose share it counts against. Nothing is proven yet: who shows another token takes a share of their own only."""
    headers = Headers(scope=scope)
    scheme, _, token = headers.get("authorization", "").strip().partition(" ")
    return f"{scheme.lower()} {token.strip()} {headers.get('x-newton-agent', '').strip()}"
