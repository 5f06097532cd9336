"""The protocol of OpenAI, as its own client speaks it with a daemon."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam as Message

from newton import Client
from newton.agent.prompting.caller_instructions import INSTRUCTIONS_HEADER
from newton.client import ApiError
from tests.endpoint import calls_tools, fails, says
from tests.support import has_code, until
from tests.system.scripted import Talk, talking
from tests.system.servers import run
from tests.system.talking_model import begins
from tests.system.test_terminal import SAID, logged, stop_answers
from tests.system.typed import Done, ok, typed

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}


@pytest.fixture(scope="module")
async def talk(home: Path, behind: str) -> AsyncIterator[Talk]:
    async with talking(home, behind) as (made, _):
        await made.post("/v1/memories", {"content": "The ferry is called Artemis."})
        yield made


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


async def said(talk: Talk, *messages: Message, session: str | None = None, **more: Any) -> Any:
    headers = {"X-Newton-Session": session} if session else {}
    async with talk.client(**headers) as client:
        create: Any = client.chat.completions.create
        return await create(model="newton", messages=list(messages), **more)


async def test_a_chat_is_answered_with_the_memory_added(talk: Talk) -> None:
    talk.plays(says(["It is ", "Artemis."], usage=(40, 4)))
    system: Message = {"role": "system", "content": "Answer in one line."}
    answer = await said(talk, system, user("What is the ferry called?"))
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("It is Artemis.", "stop")
    assert answer.usage.model_dump(include={"prompt_tokens", "completion_tokens", "total_tokens"}) == {
        "prompt_tokens": 40,
        "completion_tokens": 4,
        "total_tokens": 44,
    }
    first, last = talk.asked()["messages"]
    assert first["content"].startswith(f"{INSTRUCTIONS_HEADER}Answer in one line.")
    assert "The ferry is called Artemis." in last["content"]
    assert answer.newton["degraded"] is None


async def test_a_stream_comes_in_chunks_with_its_usage_and_says_what_was_injected_when_asked(talk: Talk) -> None:
    # S004-14
    talk.plays(says(["At ", "nine."], usage=(30, 2)))
    async with talk.client() as client:
        stream = await client.chat.completions.create(
            model="scripted", messages=[user("When is tea?")], stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "At nine."
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage and chunks[-1].usage.total_tokens == 32
    talk.plays(says(["Artemis."]))
    body = {"messages": [user("What is the ferry called?")], "stream": True}
    lines = (await talk.post("/v1/chat/completions", body, **{"X-Newton-Debug": "1"})).text.splitlines()
    told = [line for line in lines if line.startswith(": MEMORY_DEBUG ")]
    assert json.loads(told[0].removeprefix(": MEMORY_DEBUG "))["items"]
    answer = next(number for number, line in enumerate(lines) if "Artemis." in line and line.startswith("data:"))
    comments = [number for number, line in enumerate(lines) if "_DEBUG " in line]
    assert len(comments) == 4 and max(comments) < answer  # frame, memories, compaction, what is missing
    assert lines[-2] == "data: [DONE]"


async def test_a_conversation_that_is_sent_whole_is_kept_once_and_an_edited_one_branches(talk: Talk) -> None:
    name = f"trip-{uuid4().hex[:6]}"
    talk.plays(says(["Hello."]), says(["Two."]), says(["Three."]), says(["Hello again."]))
    begun = [user("Good morning, ferry.")]
    await said(talk, *begun, session=name)
    went_on = [*begun, assistant("Hello."), user("How many cups?")]
    await said(talk, *went_on, session=name)
    assert talk.shown() == [("user", "Good morning, ferry."), ("assistant", "Hello."), ("user", "How many cups?")]
    edited = [*begun, assistant("Hello."), user("How many plates?")]
    await said(talk, *edited, session=name)
    assert talk.shown()[-1] == ("user", "How many plates?")
    assert "How many cups?" not in json.dumps(talk.shown())
    await said(talk, *begun, session=name)  # once more, as when an answer was not liked
    assert talk.shown() == begun_as(begun)
    talk.plays(says(["Four."]))
    await said(talk, *edited, assistant("Three."), user("And forks?"), session=name)
    assert len(talk.shown()) == 5
    logs = await talk.lines(name)
    assert logs[name] == ["Good morning, ferry.", "Hello.", "How many cups?", "Two."]
    assert sorted(logs[one][len(logs[one]) - 1] for one in logs) == ["Four.", "Hello again.", "Two."]


def begun_as(messages: list[Message]) -> list[tuple[str, object]]:
    plain: list[Any] = list(messages)
    return [(one["role"], one["content"]) for one in plain]


async def test_two_conversations_of_a_token_are_two_sessions(talk: Talk) -> None:
    talk.plays(says(["One."]), says(["Other."]), says(["More."]))
    await said(talk, user("The first of two."))
    await said(talk, user("The second of two."))
    assert talk.shown() == [("user", "The second of two.")]
    await said(talk, user("The first of two."), assistant("One."), user("And now?"))
    rows = await talk.fetch("select session_id from dialogue.messages where content = any($1)", ["One.", "And now?"])
    assert len(rows) == 2 and rows[0] == rows[1]


async def test_tools_of_the_caller_are_passed_through_and_their_answers_taken_in(talk: Talk) -> None:
    name = f"weather-{uuid4().hex[:6]}"
    talk.plays(calls_tools(("call_1", "weather", {"place": "Porto"})), says(["It rains."]))
    asked = user("How is the weather in Porto?")
    answer = await said(talk, asked, session=name, tools=[WEATHER])
    (call,) = answer.choices[0].message.tool_calls
    assert (answer.choices[0].finish_reason, call.function.name) == ("tool_calls", "weather")
    assert json.loads(call.function.arguments) == {"place": "Porto"}
    assert "weather" in [tool["function"]["name"] for tool in talk.asked()["tools"]]
    message = answer.choices[0].message.model_dump(include={"role", "content", "tool_calls"})
    told: Message = {"role": "tool", "tool_call_id": call.id, "content": "Rain, 14 degrees."}
    final = await said(talk, asked, message, told, session=name, tools=[WEATHER])
    assert final.choices[0].message.content == "It rains."
    assert [role for role, _ in talk.shown()] == ["user", "assistant", "tool"]
    assert await talk.lines(name) == {name: ["How is the weather in Porto?", "", "Rain, 14 degrees.", "It rains."]}
    # what a tool said is believed no more than a tool, and so is what was said of it
    sql = "select trust from memory.memories where summary like '%Rain, 14%' or summary like '%It rains%'"
    assert {row["trust"] for row in await talk.fetch(sql)} == {"tool"}


async def test_streamed_calls_come_in_the_deltas(talk: Talk) -> None:
    talk.plays(calls_tools(("call_9", "weather", {"place": "Faro"}), text="I look."))
    async with talk.client() as client:
        stream = await client.chat.completions.create(
            model="newton", messages=[user("And in Faro?")], tools=[WEATHER], stream=True
        )
        chunks = [chunk async for chunk in stream]
    calls = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    assert [call.function and call.function.name for call in calls] == ["weather"]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


async def test_failures_have_the_shape_that_its_clients_read(talk: Talk) -> None:
    # S9
    async with talk.client("nwt_nonsense") as stranger:
        with pytest.raises(openai.AuthenticationError) as refused:
            await stranger.models.list()
    assert refused.value.code == "invalid_api_key"
    async with talk.client() as client:
        assert [one.id async for one in await client.models.list()] == ["newton", "default", "scripted"]
        with pytest.raises(openai.BadRequestError) as unfit:
            await client.chat.completions.create(model="newton", messages=[{"role": "system", "content": ""}])
        assert "no message to reply to" in unfit.value.message
        assert unfit.value.param == "messages"
        with pytest.raises(openai.BadRequestError) as misread:
            await client.chat.completions.create(model="newton", messages=[{"role": "bard", "content": "Hi."}])  # pyright: ignore[reportArgumentType]  # the point of the test
        assert misread.value.param == "messages[0].role"
        with pytest.raises(openai.NotFoundError, match="has no embedding model"):
            await client.embeddings.create(model="newton", input="Hi.")
        with pytest.raises(openai.NotFoundError, match="There is no endpoint /v1/moderations"):
            await client.moderations.create(input="Hi.")
        with pytest.raises(openai.BadRequestError, match="messages: List should have at least 1 item, not 0"):
            await client.chat.completions.create(model="newton", messages=[])
        elsewhere = client.with_options(base_url=str(client.base_url).removesuffix("/").removesuffix("/v1"))
        with pytest.raises(openai.NotFoundError, match=r"no endpoint /chat/completions\. Add /v1 to the base URL"):
            await elsewhere.chat.completions.create(model="newton", messages=[user("Hi.")])


@pytest.mark.fault
async def test_who_leaves_ends_the_turn_and_the_next_one_waits_for_nobody(talk: Talk, behind: str) -> None:
    # R8
    body = {"model": "newton", "messages": [user("Which ferry?")]}
    headers = {"Authorization": f"Bearer {talk.token}"}

    async def leaves(name: str, *, stream: bool) -> None:
        talk.plays(begins("It is Artemis"), says(["Artemis."]))
        async with httpx2.AsyncClient(base_url=talk.url, headers={**headers, "X-Newton-Session": name}) as http:
            asking: Any = {"method": "POST", "url": "/v1/chat/completions", "json": {**body, "stream": stream}}
            if stream:
                async with http.stream(**asking) as answer:
                    await anext(line async for line in answer.aiter_lines() if "Artemis" in line)
            else:
                before = len(talk.behind.asked)
                asked = asyncio.create_task(http.request(**asking, timeout=60))
                await until(partial(more, before))
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)

    async def more(before: int) -> bool:
        return len(talk.behind.asked) > before

    async def released() -> bool:  # a lease that expired keeps the moment at which it did
        open_ = "select count(*) from dialogue.leases where purpose = 'turn' and expires_at > '-infinity'"
        return await run(behind, open_) == 0

    for number, stream in enumerate((True, True, True, True, False)):
        name = f"left-{uuid4().hex[:6]}"
        await leaves(name, stream=stream)
        await until(released)
        await said(talk, user(f"And now, {number}?"), session=name)
        kept = (await talk.lines(name))[name]
        if not stream:  # whether a part of the reply had come when the client left is up to the machine
            kept = [line for line in kept if line != "It is Artemis"]
        begun = ["It is Artemis"] if stream else []
        assert kept == ["Which ferry?", *begun, f"And now, {number}?", "Artemis."]


@pytest.mark.slow
async def test_a_conversation_over_http_is_stopped_as_one_in_this_process_is(talk: Talk, home: Path) -> None:
    talk.plays(*[begins("It is Artemis")] * 3)
    await stop_answers(home / "data", "--session", "far", "--daemon", talk.url, DATABASE_URL="postgresql://nobody@-/-")
    assert await logged(home, "far") == SAID


async def test_one_question_over_http_is_answered_with_its_context(talk: Talk, home: Path) -> None:
    # S002-16
    talk.plays(says(["It is ", "Artemis."]), *[fails(500)] * 2)

    async def ask(*words: str) -> Done:
        daemon = ("--daemon", talk.url, "--json", "--debug")
        return await asyncio.to_thread(typed, home, "ask", *words, *daemon, NEWTON_TOKEN=talk.token)

    done = await ask("What is the ferry called?")
    answer = json.loads(ok(done))
    assert (answer["text"], answer["context_source"]) == ("It is Artemis.", "built")
    assert "The ferry is called Artemis" in answer["context"]["text"]
    assert done.stderr.startswith(": FRAME_DEBUG {")
    assert ": MEMORY_DEBUG {" in done.stderr and ": COMPACTION_DEBUG {" in done.stderr
    done = await ask("What is the ferry called?")
    assert (done.returncode, json.loads(done.stdout)["from_memory"]) == (1, True)
    assert '"provider_error"' in done.stderr


@pytest.mark.slow  # as long as a daemon waits for what it has begun
async def test_a_daemon_that_is_told_to_stop_keeps_what_was_said_until_then(home: Path, behind: str) -> None:
    async with (
        talking(home, behind) as (talk, process),
        Client(talk.url, token=talk.token) as client,
        aclosing(client.run_turn("ended", "Which ferry?")) as steps,
    ):
        talk.plays(*[begins("It is Artemis")] * 3)
        first = await anext(step async for step in steps if step.type == "delta")
        assert str(first.data["text"]).strip() == "It is Artemis"
        async with talk.client() as other:
            create: Any = partial(other.chat.completions.create, model="newton", messages=[user("Which ferry?")])
            answered = asyncio.create_task(create(extra_headers={"X-Newton-Session": "as well"}))
            stream = aiter(await create(extra_headers={"X-Newton-Session": "streamed"}, stream=True))

            async def asked() -> bool:
                return len(talk.behind.asked) == 3

            await until(asked)
            assert await asyncio.to_thread(process.stopped) == 0
            with pytest.raises(openai.InternalServerError) as failed:
                await answered
            assert (failed.value.status_code, failed.value.code) == (503, "daemon_stopped")
            # a stream that has begun ends with an event, and no chunk says that the reply is complete
            with pytest.raises(openai.APIError, match="shutting down"):
                while (await anext(stream)).choices[0].finish_reason is None:
                    pass
        with pytest.raises(ApiError, check=has_code("daemon_stopped")):
            await anext(steps)
        for session in ("ended", "as well", "streamed"):
            assert await talk.lines(session) == {session: ["Which ferry?", "It is Artemis"]}
