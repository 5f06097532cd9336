"""What happens with a model that is slow or fails: one retry, then a breaker that probes it."""

import asyncio
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.agent.loop.turn_status import TurnStatus, report_waiting
from newton.dialogue.compaction.progress_events import CompactionEvent
from newton.errors import ProviderError
from newton.providers.chat import CallRestart, ChatReply, ReplyPiece, RequestOptions
from newton.providers.model_endpoint import ANSWERS
from newton.providers.openai.chat import OpenAIChat
from newton.providers.structured_output import EndpointKey
from newton.providers.upstreams import (
    COOLDOWN_SECONDS,
    FAILURE_THRESHOLD,
    MAX_RETRY_BUDGET,
    RETRY_BUDGET_PER_CALL,
    CircuitBreaker,
    build_provider_upstream,
    get_breaker,
)
from tests.endpoint import Endpoint, Wire, chunk, endpoint, hangs
from tests.unit.test_chat_model import ASKED, says, settings


def down(breaker: CircuitBreaker, *, at: float = 0.0) -> CircuitBreaker:
    for _ in range(FAILURE_THRESHOLD):
        assert breaker.allow_call(at)
        breaker.record_result(at, failed=True)
    return breaker


def test_it_opens_after_a_few_failures_in_a_row_and_one_answer_closes_it() -> None:
    # R8
    # it opens after at most 10
    breaker = CircuitBreaker()
    for _ in range(3):
        for _ in range(FAILURE_THRESHOLD - 1):
            breaker.record_result(0, failed=True)
        breaker.record_result(0, failed=False)
    assert breaker.allow_call(0)
    assert FAILURE_THRESHOLD <= 10
    assert not down(CircuitBreaker()).allow_call(0)
    # one answer closes it
    breaker = down(CircuitBreaker())
    assert breaker.allow_call(COOLDOWN_SECONDS)
    breaker.record_result(COOLDOWN_SECONDS, failed=False)
    assert breaker.allow_call(COOLDOWN_SECONDS)


@given(st.lists(st.floats(0.01, 5), min_size=1, max_size=60))
def test_while_it_is_open_one_call_in_each_pause_goes_through(steps: list[float]) -> None:
    # R8: what works again is seen within 60 s
    breaker, now, admitted = down(CircuitBreaker()), 0.0, [0.0]
    for step in steps:
        now += step
        if breaker.allow_call(now):
            admitted.append(now)  # what came of it is not known yet, as with an endpoint that hangs
    assert all(later - earlier >= COOLDOWN_SECONDS for earlier, later in pairwise(admitted))
    assert now - admitted[-1] < COOLDOWN_SECONDS + max(steps)
    assert COOLDOWN_SECONDS + 5 < 60


@given(st.integers(1, 500))
def test_second_tries_are_few_beside_first_ones(firsts: int) -> None:
    # R8: attempts are at most 1.1 times the first ones, and a few to begin with
    breaker, again = CircuitBreaker(), 0
    for _ in range(firsts):
        assert breaker.allow_call(0)
        again += breaker.allow_retry()
        breaker.record_result(0, failed=False)
    assert again <= RETRY_BUDGET_PER_CALL * firsts + MAX_RETRY_BUDGET
    assert not down(CircuitBreaker()).allow_retry()


START = 0.25


async def answered(server: Endpoint, **changed: object) -> list[ReplyPiece | CallRestart | ChatReply]:
    model = OpenAIChat(build_provider_upstream("openai", settings(server.url, llm_start_timeout=START, **changed)))
    return [piece async for piece in model.answer(ASKED, max_tokens=50, options=RequestOptions())]


async def accepts(wire: Wire) -> None:
    """A server that accepts the request, and then says nothing."""
    await wire.begin_stream()
    await asyncio.Event().wait()


@pytest.mark.parametrize("first", [hangs, accepts])
async def test_a_request_whose_reply_does_not_begin_is_sent_once_more(first: object) -> None:
    # R8
    async with endpoint(first, says("Yes")) as server:  # pyright: ignore[reportArgumentType]  # a way to respond
        restart, piece, reply = await answered(server)
    assert (restart, piece) == (CallRestart(START), "Yes")
    assert isinstance(reply, ChatReply) and reply.finish == "stop"
    assert server.asked[0] == server.asked[1]


async def test_it_is_sent_no_third_time_and_the_timeout_is_for_both() -> None:
    # R8
    async with endpoint(hangs) as server:
        with pytest.raises(ProviderError, match="did not answer in time"):
            await answered(server, llm_timeout=4 * START)
    assert len(server.asked) == 2


async def test_a_reply_that_has_begun_is_waited_for() -> None:
    begun = asyncio.Event()

    async def pauses(wire: Wire) -> None:
        await wire.begin_stream()
        await wire.event(chunk({"choices": [{"index": 0, "delta": {"role": "assistant"}}]}))
        await asyncio.sleep(4 * START)
        begun.set()
        await says("Yes")(Wire(wire.path, wire.body, wire.writer))

    async with endpoint(pauses) as server:
        pieces = await answered(server)
    assert pieces[0] == "Yes" and begun.is_set() and len(server.asked) == 1


async def test_where_no_retry_is_left_the_first_request_is_waited_for() -> None:
    # R8: attempts stay few in an outage
    async def late(wire: Wire) -> None:
        await asyncio.sleep(4 * START)
        await says("Yes")(wire)

    async with endpoint(late) as server:
        get_breaker(EndpointKey("openai", server.url, "tiny"), ANSWERS).failures = FAILURE_THRESHOLD
        pieces = await answered(server)
    assert pieces[0] == "Yes" and len(server.asked) == 1


async def test_who_waits_is_told_again_and_again_until_the_model_begins() -> None:
    events: asyncio.Queue[TurnStatus | CompactionEvent] = asyncio.Queue()
    with report_waiting("a\nmodel", cast("Any", events.put_nowait), slow_seconds=0.01) as report_begin:
        async with asyncio.timeout(60):
            told = [await events.get() for _ in range(3)]
        report_begin()
        told += [events.get_nowait() for _ in range(events.qsize())]
        await asyncio.sleep(0.05)
        assert events.empty()
    assert [one.stage for one in told[:3] if isinstance(one, TurnStatus)] == ["waiting", "slow", "slow"]
    assert isinstance(told[0], TurnStatus) and told[0].text == "Waiting for the model a model …"
