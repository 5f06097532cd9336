"""A model that does not begin its reply: who waits is told, and the request is sent once more."""

import asyncio
from typing import Any, cast

import pytest

from newton.agent.loop.turn_status import TurnStatus, report_waiting
from newton.dialogue.compaction.progress_events import CompactionEvent
from newton.errors import ProviderError
from newton.providers.chat import CallRestart, ChatReply, ReplyPiece, RequestOptions
from newton.providers.circuit_breaker import FAILURE_THRESHOLD, get_breaker
from newton.providers.model_endpoint import ANSWERS
from newton.providers.openai.chat import OpenAIChat
from newton.providers.structured_output import EndpointKey
from newton.providers.upstreams import build_provider_upstream
from tests.endpoint import Endpoint, Wire, chunk, endpoint, hangs
from tests.unit.test_chat_model import ASKED, says, settings

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
