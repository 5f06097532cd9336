"""What a client of OpenAI is told when the model behind Newton fails, refuses or says nothing."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import openai
import pytest

from newton.agent.loop.tool_loop import MAX_REFUSALS
from tests.endpoint import Respond, Wire, aside, chunk, endpoint, fails, says
from tests.system.daemons import daemon
from tests.system.scripted import Talk, talking_within
from tests.system.test_cli import ok
from tests.system.test_openai import WEATHER, assistant, said, user
from tests.system.typed import typed
from tests.unit.test_chat_model import streams

KNOWN = "What is the ferry called?"
FORMAT: Any = {"type": "json_schema", "json_schema": {"name": "Ferry", "schema": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
async def talk(home: Path, behind: str) -> AsyncIterator[Talk]:
    async with talking_within(home, behind) as made:
        await made.post("/v1/memories", {"content": "The ferry is called Artemis."})
        yield made


@pytest.fixture(autouse=True)
async def healthy(talk: Talk) -> None:
    """An endpoint that has failed often would not be asked at all."""
    talk.plays(says(["Well."]))
    await said(talk, user("Hello."), session=named())


def finishes(reason: str, **delta: object) -> Respond:
    done = chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    usage = chunk({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}})
    return streams(chunk({"choices": [{"index": 0, "delta": delta}]}), done, usage, "[DONE]")


def named() -> str:
    return f"failing-{uuid4().hex[:6]}"


async def test_what_memory_knows_is_quoted_and_marked_where_the_operator_wants_it(talk: Talk, home: Path) -> None:
    # R8
    async with talking_within(home, talk.dsn, quote_without_model=True) as quoting:
        await quotes(quoting)


async def quotes(talk: Talk) -> None:
    talk.plays(*[fails(500, retry_after="0")] * 2)
    answer = await said(talk, user(KNOWN), session=named())
    text = answer.choices[0].message.content
    assert text.startswith("(http://") and "answered with the HTTP status 500" in text
    assert "This answer only quotes memory.)\n\nFrom memory:\n- The ferry is called Artemis." in text
    assert answer.newton["from_memory"] and "500" in answer.newton["degraded"]
    talk.plays(says(["As I said."]))
    session = named()
    await said(talk, user(KNOWN), assistant(text), user("And again?"), session=session)
    assert talk.shown()[-1] == ("user", "And again?")
    talk.plays(*[fails(500, retry_after="0")] * 2)
    with pytest.raises(openai.InternalServerError):
        await said(talk, user("Quokka xylophone zeppelin?"), session=named())


@pytest.mark.parametrize(
    ("response", "kind", "code"),
    [
        (fails(500, retry_after="0"), openai.InternalServerError, "provider_error"),
        (fails(429, retry_after="0"), openai.RateLimitError, "rate_limit_exceeded"),
        (fails(401), openai.InternalServerError, "provider_error"),
        (fails(404), openai.NotFoundError, "model_not_found"),
        (fails(400), openai.BadRequestError, "request_refused"),
    ],
)
async def test_a_failure_is_an_error_that_the_client_shows(
    talk: Talk, response: Respond, kind: type[openai.APIStatusError], code: str
) -> None:
    # R8: not an answer, whatever memory knows
    talk.plays(*[response] * 2)
    with pytest.raises(kind) as failed:
        await said(talk, user(KNOWN), session=named())
    assert failed.value.code == code and failed.value.message
    assert failed.value.status_code == (503 if kind is openai.InternalServerError else failed.value.status_code)
    talk.plays(says(["Well."]))
    await said(talk, user(KNOWN), session=named())
    # a stream that has begun says it in an event
    begun = asyncio.Event()

    async def fails_late(wire: Wire) -> None:
        await begun.wait()
        await response(wire)

    talk.plays(fails_late, fails_late)
    async with talk.client(**{"X-Newton-Session": named()}) as client:
        stream = await client.chat.completions.create(model="newton", messages=[user(KNOWN)], stream=True)
        begun.set()
        with pytest.raises(openai.APIError) as broken:
            await anext(aiter(stream))
    assert (broken.value.code, broken.value.message) == (code, failed.value.body["message"])  # pyright: ignore[reportIndexIssue, reportOptionalSubscript]  # an object


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failed_response_is_an_error_or_an_event_of_its_protocol(talk: Talk, stream: bool) -> None:
    # R8
    begun = asyncio.Event()

    async def fails_late(wire: Wire) -> None:
        await begun.wait()
        await fails(500, retry_after="0")(wire)

    talk.plays(*[fails_late if stream else fails(500, retry_after="0")] * 2)
    async with talk.client(**{"X-Newton-Session": named()}) as client:
        if not stream:
            with pytest.raises(openai.InternalServerError) as failed:
                await client.responses.create(model="newton", input=KNOWN)
            assert failed.value.status_code == 503
            return
        response = await client.responses.create(model="newton", input=KNOWN, stream=True)
        begun.set()
        events = [event async for event in response]
    assert [event.type for event in events] == ["response.created", "response.in_progress", "response.failed"]
    last: Any = events[-1]
    assert last.response.error.code == "server_error" and "HTTP status 500" in last.response.error.message


async def test_without_a_model_a_request_has_an_error_status_and_is_stored(home: Path, behind: str) -> None:
    # R8
    session = named()
    async with talking_within(home, behind, openai_base_url=None, openai_model=None) as talk:
        with pytest.raises(openai.InternalServerError, match="No model is set") as failed:
            await said(talk, user("Is it kept?"), session=session)
        assert (failed.value.status_code, failed.value.code) == (503, "provider_error")
        question, reason = (await talk.lines(session))[session]
        assert question == "Is it kept?" and reason.startswith("No model is set")


@pytest.mark.parametrize("options", [{"response_format": FORMAT}, {"tools": [WEATHER]}, {"n": 2}])
async def test_a_program_that_reads_the_reply_gets_an_error_and_no_quotes(talk: Talk, options: Any) -> None:
    talk.plays(*[fails(500, retry_after="0")] * 2)
    with pytest.raises(openai.InternalServerError, match="answered with the HTTP status 500"):
        await said(talk, user(KNOWN), session=named(), **options)


async def test_a_prompt_that_fits_no_window_is_an_error_of_the_request(talk: Talk) -> None:
    async def overflows(wire: Wire) -> None:
        await wire.send(400, {"error": {"message": "This model's maximum context length is 10 tokens."}})

    talk.plays(*[overflows] * (1 + MAX_REFUSALS))
    with pytest.raises(openai.BadRequestError) as refused:
        await said(talk, user(KNOWN), session=named())
    assert refused.value.code == "context_length_exceeded"


async def test_a_reply_that_is_all_reasoning_comes_back_without_text(talk: Talk) -> None:
    talk.plays(finishes("length", reasoning_content="They ask for"))
    answer = await said(talk, user(KNOWN), session=named(), max_completion_tokens=5)
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == ("", "length")
    assert choice.message.reasoning_content == "They ask for"
    assert answer.usage.completion_tokens == 5 and not answer.newton["from_memory"]


async def test_a_refusal_is_told_in_its_field_and_known_again(talk: Talk) -> None:
    session = named()
    talk.plays(finishes("stop", refusal="I cannot do that."), says(["Gladly."]))
    answer = await said(talk, user("Sink the ferry."), session=session, response_format=FORMAT)
    message = answer.choices[0].message
    assert (message.content, message.refusal) == (None, "I cannot do that.")
    sent: Any = message.model_dump(include={"role", "content", "refusal"})
    await said(talk, user("Sink the ferry."), sent, user("Then paint it."), session=session)
    assert await talk.lines(session) == {session: ["Sink the ferry.", "I cannot do that.", "Then paint it.", "Gladly."]}


async def test_a_reply_that_breaks_off_ends_with_an_error_and_has_no_finish_reason(talk: Talk) -> None:
    # R8: `finish_reason` is never untrue
    breaks_off = streams(chunk({"choices": [{"index": 0, "delta": {"content": "It is "}}]}))
    talk.plays(breaks_off)
    session = named()
    body = {"messages": [user(KNOWN)], "stream": True}
    lines = (await talk.post("/v1/chat/completions", body, **{"X-Newton-Session": session})).text.splitlines()
    *chunks, last = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    assert "".join(one["choices"][0]["delta"]["content"] for one in chunks) == "It is "
    assert {one["choices"][0]["finish_reason"] for one in chunks} == {None}
    assert last["error"]["code"] == "provider_error" and "ended its reply early" in last["error"]["message"]
    assert await talk.lines(session) == {session: [KNOWN, "It is"]}, "what was said is kept"
    talk.plays(breaks_off)
    with pytest.raises(openai.InternalServerError, match="ended its reply early"):
        await said(talk, user(KNOWN), session=named())


@pytest.mark.parametrize("text", ["", "It is a "])
async def test_a_filter_of_the_models_server_is_told_as_one(talk: Talk, text: str) -> None:
    talk.plays(finishes("content_filter", content=text))
    answer = await said(talk, user(KNOWN), session=named())
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == (text, "content_filter")


def answers(broken: list[bool], *, anthropic: bool):
    item: dict[str, object] = {"line": 1, "op": "add", "ids": [], "subject": "", "attribute": "", "when": ""}
    reply = json.dumps({"items": [{**item, "text": "Ana is a baker."}]})

    async def respond(wire: Wire) -> None:
        if broken and wire.path.endswith(("/messages", "/completions")):
            await wire.send(500, {"error": {"message": "SISTER ANA"}})
        elif not anthropic:
            await says([reply])(wire)
        elif wire.path.endswith("/messages"):
            await wire.begin_stream()
            block = {"index": 0, "content_block": {"type": "text", "text": reply}}
            await wire.event({"type": "message_start", "message": {"usage": {"input_tokens": 9}}})
            await wire.event({"type": "content_block_start", **block})
            done = {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
            await wire.event({"type": "message_delta", **done})
        else:
            await wire.send(200, {"data": []})

    return respond


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_broken_model_server_is_named_everywhere_until_it_works(home: Path, provider: str) -> None:
    broken, agent, anthropic = [True], f"patient-of-{provider}", provider == "anthropic"
    ok(typed(home, "ask", "Ana, a baker: that is what she is.", "--agent", agent, NEWTON_QUOTE_WITHOUT_MODEL="true"))
    with aside(endpoint(answers(broken, anthropic=anthropic))) as server:
        base = server.url.removesuffix("/v1") if anthropic else server.url
        name = provider.upper()
        settings = {f"{name}_BASE_URL": base, f"{name}_MODEL": "tiny", f"{name}_API_KEY": "k", "NEWTON_AGENT": agent}
        settings |= {"NEWTON_SESSION_IDLE_MINUTES": "0"}
        first = typed(home, "jobs", "run", "extract", **settings)
        assert first.returncode == 1 and "500" in first.stderr
        _, _, line = ok(typed(home, "jobs", **settings)).partition("! ")
        assert (
            "does not work for the reconciliation of new lines" in line and "500" in line and "SISTER ANA" not in line
        )
        doctor = typed(home, "doctor", "--json", **settings)
        found = [one for one in json.loads(doctor.stdout)["findings"] if "reconciliation of new lines" in one["detail"]]
        assert [one["state"] for one in found] == ["wrong"]
        with daemon(home, **settings) as served, served.client() as client:
            listed = client.get("/v1/token").json()["failing_models"]
            (failing,) = [one for one in listed if one["purpose"] == "reconcile"]
            assert failing["calls"] >= 1 and "HTTP status 500" in failing["failure"]
            assert f'newton_failing_models{{agent="{agent}"' in client.get("/metrics").text
        broken.clear()
        ok(typed(home, "jobs", "run", "extract", **settings))
        assert "reconciliation of new lines" not in ok(typed(home, "jobs", **settings))
        assert "Ana is a baker." in ok(typed(home, "list", **settings))
