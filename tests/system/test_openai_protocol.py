"""Chat completions through OpenAI's own client, with strict servers of models behind."""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import openai
import pytest
from pydantic import BaseModel

from newton.agent.reconciliation.reconciler import PURPOSE
from newton.db.pool import Database
from tests.messages_server import AnthropicServer
from tests.model_servers import (
    KEY,
    GeminiServer,
    ModelServer,
    OllamaServer,
    OpenAIServer,
    RefusalError,
    VllmServer,
    pictures_of,
    serving_models,
)
from tests.support import until
from tests.system.model_line import Line, lined, png
from tests.system.test_openai import WEATHER

SERVERS = [
    OpenAIServer,
    AnthropicServer,
    OllamaServer,
    *(pytest.param(one, marks=pytest.mark.slow) for one in (GeminiServer, VllmServer)),
]


def shown(text: str, *urls: str) -> Any:
    pictures = [{"type": "image_url", "image_url": {"url": url, "detail": "low"}} for url in urls]
    return {"role": "user", "content": [{"type": "text", "text": text}, *pictures]}


def user(text: str) -> Any:
    return {"role": "user", "content": text}


Lines = Callable[[type[ModelServer]], Awaitable[Line]]


@pytest.fixture(scope="module")
async def lines(behind: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Lines]:
    """One application for each kind of server, started at first use, with an agent of its own for each test."""
    begun: dict[type[ModelServer], Line] = {}
    async with AsyncExitStack() as stack:
        db = await Database.open(behind, size=4)
        stack.push_async_callback(db.close)

        async def fresh(kind: type[ModelServer]) -> Line:
            if kind not in begun:
                begun[kind] = await stack.enter_async_context(lined(kind(), db, tmp_path_factory.mktemp("home")))
            shared, agent = begun[kind], f"agent-{uuid4().hex[:8]}"
            shared.behind.asked.clear()
            client = shared.client.with_options(api_key=await shared.api.token(agent))
            return replace(shared, client=client, agent=agent)

        yield fresh


@pytest.fixture(params=SERVERS)
async def line(request: pytest.FixtureRequest, lines: Lines) -> Line:
    return await lines(request.param)


@pytest.fixture
async def strict(lines: Lines) -> Line:
    return await lines(OpenAIServer)


async def test_nothing_is_added_that_nobody_set(line: Line) -> None:
    answer = await line.say(user("Tea at four."))
    assert answer.choices[0].message.content == "You said: Tea at four."
    assert line.behind.asked[-1].keys() - {"tools"} == line.behind.own_fields


async def test_what_new_lines_change_is_asked_as_the_server_takes_it(line: Line) -> None:
    async def count_answers() -> int:
        async with line.stored() as tx:
            return await tx.fetchval("select count(*) from runtime.usage where purpose = $1", PURPOSE)

    async def is_answered() -> bool:
        return await count_answers() > 0

    for number in range(1, 9):  # so many that they are read at once
        await line.say(user(f"Shelf {number} holds apples."), session="s")
    await until(is_answered)
    assert await count_answers() == 1


async def test_a_stream_and_a_whole_reply_are_the_same(line: Line) -> None:
    chunks = await line.stream(user("Tea at four."), stream_options={"include_usage": True})
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    whole = await line.say(user("Tea at four."))
    assert text == whole.choices[0].message.content == "You said: Tea at four."
    assert chunks[-1].usage.total_tokens == whole.usage.total_tokens == 120
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"


async def test_a_typed_reply_comes_back_as_it_is(line: Line) -> None:
    class Order(BaseModel):
        drink: str
        cups: int

    parsed = await line.client.chat.completions.parse(
        model="newton", messages=[user("Four cups of tea.")], response_format=Order
    )
    assert parsed.choices[0].message.parsed == Order(drink="tea", cups=4)
    sent = line.behind.asked[-1]
    assert line.behind.format_of(sent)["properties"].keys() == {"drink", "cups"}
    assert "tools" not in sent  # a model that must answer in a format cannot also look things up


async def test_tools_of_the_caller_are_called_and_answered(line: Line) -> None:
    asked = user("How is the weather?")
    options: dict[str, Any] = {"tools": [WEATHER], "tool_choice": "required"}
    first = await line.say(asked, **options)
    (call,) = first.choices[0].message.tool_calls
    assert (call.function.name, first.choices[0].finish_reason) == ("weather", "tool_calls")
    result = {"role": "tool", "tool_call_id": call.id, "content": "Rain."}
    assert line.behind.tool_names(line.behind.asked[-1]) == ["weather"]
    again = await line.say(asked, first.choices[0].message.model_dump(exclude_none=True), result, **options)
    assert again.choices[0].message.content or again.choices[0].message.tool_calls
    chunks = await line.stream(asked, **options)
    calls = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert [one.function.name for one in calls] == ["weather"]


async def test_a_picture_is_seen_now_and_later_and_remembered_as_a_reference(line: Line) -> None:
    url = png(64, 48)
    name = f"pictures-{uuid4().hex[:6]}"
    begun: list[Any] = [shown("Our ferry Artemis in Porto.", url)]
    first = await line.say(*begun, session=name)
    assert first.choices[0].message.content == "I was shown 1: Our ferry Artemis in Porto."
    begun += [{"role": "assistant", "content": first.choices[0].message.content}, user("Is it large?")]
    second = await line.say(*begun, session=name)
    assert second.choices[0].message.content == "I was shown 1: Is it large?"
    begun += [{"role": "assistant", "content": second.choices[0].message.content}, shown("And this?", png(8, 9))]
    third = await line.say(*begun, session=name)
    assert third.choices[0].message.content == "I was shown 2: And this?"
    assert url.partition(",")[2] in str(line.behind.asked[-1]["messages"])  # as the client sent it
    remembered = await line.remembered()
    assert "Our ferry Artemis in Porto.\n[image: 64x48 png]" in remembered
    assert "[image: 8x9 png]" in remembered
    assert "base64" not in remembered and url[-40:] not in remembered
    sql = "select count(distinct session_id) from dialogue.messages"
    async with line.stored() as tx:
        assert await tx.fetchval(sql) == 1  # one conversation, matched in each turn


@pytest.mark.parametrize("line", [AnthropicServer, OllamaServer, VllmServer], indirect=True)  # others tell nobody
async def test_reasoning_is_passed_on_and_is_no_speech(line: Line) -> None:
    field = str(line.behind.reasoning_field)
    whole = await line.say(user("Tea at four."))
    assert getattr(whole.choices[0].message, field) == "They want to hear it again."
    chunks = await line.stream(user("Tea at five."))
    told = [getattr(chunk.choices[0].delta, field, None) or "" for chunk in chunks]
    assert "".join(told) == "They want to hear it again."
    assert "hear it again" not in await line.remembered()


async def test_an_unknown_model_is_an_error_of_the_protocol(line: Line) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        await line.say(user("Hi."), model="gpt-9")
    assert (unknown.value.code, unknown.value.type) == ("model_not_found", "invalid_request_error")
    assert line.behind.model in unknown.value.message
    for misspelt in (line.behind.model.upper(), f"{line.agent}/x{line.behind.model}"):
        with pytest.raises(openai.NotFoundError, match=f"Did you mean '{line.behind.model}'"):
            await line.say(user("Hi."), model=misspelt)
    assert line.behind.asked == []


async def test_a_model_of_the_server_and_an_agent_are_chosen_by_name(line: Line) -> None:
    names = [one.id async for one in await line.client.models.list()]
    assert {"newton", line.agent, line.behind.model} <= set(names)
    assert names[0] == "newton"  # some programs take the first model
    assert "nomic-embed-text:latest" not in names
    for name in (line.behind.model, line.agent, f"{line.agent}/{line.behind.model}"):
        await line.say(user("Hi."), model=name)
        assert line.behind.asked[-1]["model"] == line.behind.model
    assert (await line.client.models.retrieve(line.behind.model)).id == line.behind.model


@pytest.mark.parametrize("line", [OpenAIServer, AnthropicServer], indirect=True)  # no server is asked
async def test_an_instruction_larger_than_the_window_is_refused(line: Line) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await line.say({"role": "system", "content": "word " * 1_000_000}, user("Hi."))
    assert (refused.value.code, refused.value.param) == ("context_length_exceeded", "messages")
    assert line.behind.asked == [] and await line.remembered() == ""
    large = await line.say({"role": "system", "content": "word " * 40_000}, user("Hi."))
    assert large.choices[0].message.content == "You said: Hi."


# What only the strict server tells apart.


async def test_every_option_reaches_the_model_unchanged(strict: Line) -> None:
    options: dict[str, Any] = {
        "max_completion_tokens": 300,
        "temperature": 0.2,
        "top_p": 0.9,
        "seed": 7,
        "stop": ["END"],
        "logprobs": True,
        "top_logprobs": 2,
        "logit_bias": {"50256": -100},
        "modalities": ["text"],
        "service_tier": "flex",
        "prediction": {"type": "content", "content": "Tea at four."},
        "presence_penalty": 0.1,
        "verbosity": "low",
        "prompt_cache_key": "tea",
    }
    answer = await strict.say(user("Tea at four."), model="gpt-4o-mini", **options)
    sent = strict.behind.asked[-1]
    assert {name: sent[name] for name in options} == options
    assert "max_tokens" not in sent
    assert answer.choices[0].logprobs.content[0].logprob == -0.25
    assert answer.usage.prompt_tokens_details.cached_tokens == 64
    assert answer.usage.completion_tokens_details.reasoning_tokens == 12
    assert answer.system_fingerprint == "fp_1"
    chunks = await strict.stream(user("Tea."), model="gpt-4o-mini", logprobs=True)
    assert any(chunk.choices[0].logprobs for chunk in chunks if chunk.choices)


async def test_all_choices_come_back_and_the_first_is_remembered(strict: Line) -> None:
    answer = await strict.say(user("Tea at four."), n=3)
    assert [one.index for one in answer.choices] == [0, 1, 2]
    assert {one.message.content for one in answer.choices} == {"You said: Tea at four."}
    chunks = await strict.stream(user("Tea at six."), n=2)
    texts = dict.fromkeys(range(2), "")
    for choice in (one for chunk in chunks for one in chunk.choices):
        texts[choice.index] += choice.delta.content or ""
    assert texts == {0: "You said: Tea at six.", 1: "You said: Tea at six."}
    async with strict.stored() as tx:
        assert await tx.fetchval("select count(*) from dialogue.messages where role = 'assistant'") == 2


async def test_a_limit_under_an_old_name_is_sent_under_the_new_one_and_that_is_learnt(
    db: Database, tmp_path: Path
) -> None:
    async with lined(OpenAIServer(), db, tmp_path) as line:
        for _ in range(2):
            answer = await line.say(user("Tea."), max_tokens=50)
            assert answer.choices[0].message.content == "You said: Tea."
        limits = [{name: body[name] for name in body if name.startswith("max_")} for body in line.behind.asked]
    assert limits == [{"max_tokens": 50}, {"max_completion_tokens": 50}, {"max_completion_tokens": 50}]


@pytest.mark.parametrize(
    ("options", "param", "code"),
    [
        ({"temperature": 0.2}, "temperature", "unsupported_value"),
        ({"logprobs": True}, "logprobs", "unsupported_parameter"),
        ({"model": "gpt-4o-mini", "reasoning_effort": "low"}, "reasoning_effort", "request_refused"),
        ({"extra_body": {"guided_json": {}}}, "guided_json", "unknown_parameter"),
        ({"response_format": {"type": "json_object"}}, "messages", "request_refused"),
        ({"metadata": {"topic": "tea"}}, "metadata", "request_refused"),
    ],
)
async def test_what_the_server_refuses_is_told(strict: Line, options: Any, param: str, code: str) -> None:
    for stream in (False, True):  # a stream that has begun says it in an event
        with pytest.raises(openai.APIError if stream else openai.BadRequestError) as refused:
            await (strict.stream if stream else strict.say)(user("Tea at four."), **options)
        assert (refused.value.param, refused.value.code) == (param, code)
        assert param in refused.value.message and KEY not in refused.value.message


async def test_a_request_can_be_repeated_after_it_was_refused(strict: Line) -> None:
    with pytest.raises(openai.BadRequestError):
        await strict.say(user("Tea at four."), temperature=0.2)
    answer = await strict.say(user("Tea at four."))
    assert answer.choices[0].message.content == "You said: Tea at four."


async def test_files_and_sound_go_through(strict: Line) -> None:
    sound = {"type": "input_audio", "input_audio": {"data": base64.b64encode(b"\0" * 6_000).decode(), "format": "wav"}}
    paper = {"type": "file", "file": {"filename": "lease 2026.pdf", "file_data": "data:application/pdf;base64,AAAA"}}
    signed = {"type": "image_url", "image_url": {"url": "https://photos.example/ferry.jpg?signature=s3cr3t"}}
    parts = [{"type": "text", "text": "What are these?"}, sound, paper, signed]
    answer = await strict.say({"role": "user", "content": parts})
    assert answer.choices[0].message.content == "I was shown 3: What are these?"
    assert [part for part in strict.behind.asked[-1]["messages"][-1]["content"] if part["type"] != "text"] == parts[1:]
    remembered = await strict.remembered()
    assert "[audio: 5 KB wav]\n[file: lease 2026.pdf]\n[image: https://photos.example/ferry.jpg]" in remembered
    assert "s3cr3t" not in remembered


async def test_a_picture_that_a_model_cannot_see_is_refused_once_and_breaks_no_later_turn(
    db: Database, tmp_path: Path
) -> None:
    class Blind(OllamaServer):
        def check(self, body: Any) -> None:
            if pictures_of(body):
                raise RefusalError("this model does not support image input")

    async with lined(Blind(), db, tmp_path) as line:
        seen = shown("What is this?", png(64, 48))
        with pytest.raises(openai.BadRequestError, match="does not support image input"):
            await line.say(seen, session="blind")
        answer = await line.say(seen, {"role": "assistant", "content": ""}, user("Never mind."), session="blind")
        assert answer.choices[0].message.content == "You said: Never mind."
        sent = line.behind.asked[-1]["messages"]
        assert "What is this?\n[image: 64x48 png]" in str([one["content"] for one in sent[1:]]).replace("\\n", "\n")


async def test_the_wrong_key_of_newton_is_not_the_clients_fault(db: Database, tmp_path: Path) -> None:
    async with lined(OpenAIServer(), db, tmp_path, openai_api_key="sk-wrong-one-of-newton") as line:
        with pytest.raises(openai.InternalServerError) as failed:
            await line.say(user("What is the ferry called?"))
        assert (failed.value.status_code, failed.value.type) == (503, "server_error")
        assert KEY not in failed.value.message


async def test_the_only_model_of_a_server_is_taken(db: Database, tmp_path: Path) -> None:
    for server in (VllmServer(), OllamaServer()):
        async with lined(server, db, tmp_path, openai_model=None) as line:
            await line.say(user("Hi."))
            assert server.asked[-1]["model"] == server.model


async def test_of_several_models_the_person_is_told_to_choose(db: Database, tmp_path: Path) -> None:
    async with lined(OpenAIServer(), db, tmp_path, openai_model=None) as line:
        with pytest.raises(openai.InternalServerError, match=r"several models: gpt-5, gpt-4o-mini\. Set OPENAI_MODEL"):
            await line.say(user("Hi."))
        assert line.behind.asked == []


async def test_an_agent_has_a_model_of_its_own(strict: Line) -> None:
    ana = strict.client.with_options(api_key=await strict.api.token("ana"))
    async with strict.api.http() as operator:
        set_ = await operator.put("/v1/agents/ana/model", json={"model": "gpt-4o-mini"})
        assert set_.json() == {"name": "ana", "model": "gpt-4o-mini"}
        unknown = await operator.put("/v1/agents/ana/model", json={"model": "gpt-9"})
        assert (unknown.status_code, "The models are: gpt-5, gpt-4o-mini" in unknown.text) == (404, True)
    await ana.chat.completions.create(model="newton", messages=[user("Hi.")])
    await strict.say(user("Hi."))
    assert [body["model"] for body in strict.behind.asked] == ["gpt-4o-mini", "gpt-5"]


async def test_gemini_names_the_field_that_it_refuses(lines: Lines) -> None:
    line = await lines(GeminiServer)
    fields: Any = ({"seed": 7}, {"frequency_penalty": 0.1})
    for options in fields:
        with pytest.raises(openai.BadRequestError) as refused:
            await line.say(user("Hi."), **options)
        assert refused.value.param in options and "Unknown name" in refused.value.message
    assert (await line.say(user("Hi."), max_tokens=50)).choices[0].message.content == "You said: Hi."


async def test_models_of_several_upstreams_answer_by_name(db: Database, tmp_path: Path) -> None:
    claude, strict = AnthropicServer(), OpenAIServer()
    async with serving_models(claude):
        smart = {"provider": "anthropic", "base_url": claude.url, "model": claude.model, "api_key": KEY}
        async with lined(strict, db, tmp_path, models={"smart": smart}) as line:
            names = [one.id async for one in await line.client.models.list()]
            assert {"newton", "default", "smart", *strict.models} <= set(names)
            for name in ("smart", "default/smart", "smart/claude-haiku-4-5"):
                answer = await line.say(user("Tea at four."), model=name)
                assert answer.choices[0].message.content == "You said: Tea at four."
            assert [body["model"] for body in claude.asked] == [claude.model] * 2 + ["claude-haiku-4-5"]
            await line.say(user("Tea at five."))
            assert [body["model"] for body in strict.asked] == [strict.model]
            with pytest.raises(openai.NotFoundError, match="The models are: smart, gpt-5") as unknown:
                await line.say(user("Hi."), model="gpt-9")
            assert "`newton` is the default model" in unknown.value.message and unknown.value.param == "model"
            with pytest.raises(openai.NotFoundError, match="Did you mean 'newton'"):
                await line.say(user("Hi."), model="newtn")
            async with line.api.http() as operator:
                assert (await operator.put("/v1/agents/default/model", json={"model": "smart"})).status_code == 200
                listed = await operator.get("/v1/agents")
                assert [one["model"] for one in listed.json()["items"] if one["name"] == "default"] == ["smart"]
                assert KEY not in listed.text
            await line.say(user("Tea at six."))
            assert (len(claude.asked), len(strict.asked)) == (4, 1)
            remembered = await line.remembered()
            assert all(f"Tea at {hour}." in remembered for hour in ("four", "five", "six"))


async def test_a_conversation_is_remembered_across_sessions_and_models(lines: Lines) -> None:
    line = await lines(AnthropicServer)
    await line.say(user("The ferry is called Artemis."), session="monday")
    async with line.api.http(line.client.api_key) as http:
        assert (await http.post("/v1/memories", json={"content": "The ferry is called Artemis."})).is_success
    await line.say(user("What is the ferry called?"), session="tuesday")
    assert "Artemis" in str(line.behind.asked[-1]["messages"])
    assert "Artemis" not in str(line.behind.asked[-1]["system"])  # which the provider caches
