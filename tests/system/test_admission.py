"""Which request runs next, and which waits."""

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from newton.errors import OverloadedError
from newton.runtime.api.middleware.admission import (
    BODY_BYTES_KEY,
    LARGE_BODY_BYTES,
    LONG_LIVED_LIMITS,
    AdmissionMiddleware,
    CallerKey,
    FairLimiter,
    KnownCallers,
)
from tests.support import ANA, BEN
from tests.system.served import OPERATOR


async def test_who_asks_most_waits_longest() -> None:
    # R11
    slots = FairLimiter(max_running=2, max_running_per_agent=2, max_waiting=10)
    order: list[str] = []
    free = asyncio.Event()

    async def work(who: str) -> None:
        async with slots.slot(CallerKey(who, who)):
            order.append(who)
            await free.wait()

    many = [asyncio.create_task(work("many")) for _ in range(6)]
    await asyncio.sleep(0)
    few = asyncio.create_task(work("few"))
    await asyncio.sleep(0)
    assert order == ["many", "many"]
    free.set()
    await asyncio.gather(*many, few)
    assert order.index("few") <= 4


async def test_beyond_a_short_queue_nobody_waits() -> None:
    # R11
    slots = FairLimiter(max_running=1, max_waiting=2, max_waiting_per_agent=1)
    held = slots.slot(CallerKey("ana", "ana"))
    await held.__aenter__()

    async def ask(who: str, seconds: float) -> str:
        try:
            async with slots.slot(CallerKey(who, who), timeout_seconds=seconds):
                return "worked"
        except OverloadedError:
            return "busy"

    waiting = [asyncio.create_task(ask(who, 30)) for who in ("ana", "ben")]
    await asyncio.sleep(0)
    assert [await ask("ana", 30), await ask("cat", 30)] == ["busy", "busy"]
    waiting[0].cancel()
    await asyncio.sleep(0)
    assert await ask("cat", 0) == "busy"  # it waited, and not for long
    await held.__aexit__(None, None, None)
    assert await waiting[1] == "worked"
    assert await ask("ana", 0) == "worked"


async def held(
    paced: AdmissionMiddleware,
    path: str,
    *,
    token: str,
    method: str = "GET",
    agent: str = "",
    size: int = 0,
    timeout: str = "",
) -> int:
    """The status that is answered to such a request."""
    named = {b"x-newton-agent": agent, b"x-newton-timeout": timeout}
    headers = [(b"authorization", token.encode()), *((name, one.encode()) for name, one in named.items() if one)]
    scope: Scope = {"type": "http", "path": path, "method": method, "headers": headers, BODY_BYTES_KEY: size}
    told: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        told.append(message)

    await paced(scope, receive, send)
    if told[0]["status"] == 429:
        assert b"retry-after" in dict(told[0]["headers"])
    return told[0]["status"]


class Standing:
    """An application whose requests stand until it is told to let them go."""

    def __init__(self) -> None:
        self.free, self.begun = asyncio.Event(), list[bytes]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun.append(scope["headers"][0][1])
        await self.free.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def test_who_writes_the_scheme_in_another_way_has_no_second_share() -> None:
    # R11
    app = Standing()
    paced = AdmissionMiddleware(app, FairLimiter(max_running_per_token=2, max_waiting=0), KnownCallers(OPERATOR))
    standing = [asyncio.create_task(held(paced, "/v1/frames", token=shown)) for shown in ("Bearer x", "bearer  x")]
    await asyncio.sleep(0)
    assert await held(paced, "/v1/frames", token="BEARER x") == 429
    app.free.set()
    assert await asyncio.gather(*standing) == [200, 200]


async def test_who_names_its_own_agent_or_has_more_tokens_has_no_second_share() -> None:
    # R11
    app, callers = Standing(), KnownCallers(OPERATOR)
    for token, agent in (("a1", ANA), ("a2", ANA), ("b", BEN)):
        callers.add(token, agent)
    paced = AdmissionMiddleware(
        app, FairLimiter(max_running=4, max_running_per_agent=3, max_running_per_token=2, max_waiting=0), callers
    )

    async def ask(token: str, agent: str = "") -> "asyncio.Task[int]":
        task = asyncio.create_task(held(paced, "/v1/frames", token=f"Bearer {token}", agent=agent))
        await asyncio.sleep(0)
        return task

    asked = [await ask("a1"), await ask("a1", "ana"), await ask("a1", " ana"), await ask("a2"), await ask("a2")]
    other = await ask("b")
    app.free.set()
    assert [await one for one in (*asked, other)] == [200, 200, 429, 200, 429, 200]


async def test_a_free_slot_goes_to_the_token_and_the_agent_that_use_the_fewest() -> None:
    # R11
    slots = FairLimiter(max_running=2, max_running_per_agent=2)
    order, free = list[str](), asyncio.Event()

    async def work(agent: str, token: str) -> None:
        async with slots.slot(CallerKey(agent, token)):
            order.append(token)
            await free.wait()
            await asyncio.sleep(0)

    tasks = list[asyncio.Task[None]]()
    for agent, token in (*[("ana", "a1")] * 9, ("ana", "a2"), ("ben", "b")):
        tasks.append(asyncio.create_task(work(agent, token)))
        await asyncio.sleep(0)
    free.set()
    await asyncio.gather(*tasks)
    assert order[:2] == ["a1", "a1"] and {"a2", "b"} <= set(order[2:5])


async def test_large_requests_of_one_agent_run_one_at_a_time_and_take_no_slot_while_they_wait() -> None:
    # R11
    app = Standing()
    paced = AdmissionMiddleware(app, FairLimiter(), KnownCallers(OPERATOR))
    large = [
        asyncio.create_task(held(paced, "/v1/context", token="Bearer a", size=LARGE_BODY_BYTES)) for _ in range(24)
    ]
    await asyncio.sleep(0)
    others = [asyncio.create_task(held(paced, "/v1/context", token=f"Bearer {n}")) for n in range(10)]
    await asyncio.sleep(0)
    assert app.begun == [b"Bearer a", *(f"Bearer {n}".encode() for n in range(10))]
    app.free.set()
    assert set(await asyncio.gather(*large, *others)) == {200}


@pytest.mark.parametrize("path", LONG_LIVED_LIMITS)
async def test_so_many_stand_and_keep_nobody_from_work(path: str) -> None:
    # R11
    most, each = LONG_LIVED_LIMITS[path]
    app = Standing()
    paced = AdmissionMiddleware(app, FairLimiter(max_running=1, max_waiting=0), KnownCallers(OPERATOR))
    standing = [asyncio.create_task(held(paced, path, token=f"Bearer {n // each}")) for n in range(most)]
    await asyncio.sleep(0)
    assert await held(paced, path, token="Bearer new", timeout="0.05") == 429
    standing[0].cancel()
    await asyncio.wait(standing[:1])
    assert await held(paced, path, token="Bearer 1", timeout="0.05") == 429  # its own are all taken
    more = [asyncio.create_task(held(paced, one, token="Bearer new")) for one in (path, "/v1/frames")]
    await asyncio.sleep(0)
    app.free.set()
    assert await asyncio.gather(*standing[1:], *more) == [200] * (most + 1)
