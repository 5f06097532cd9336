"""The Responses API, as OpenAI's own client speaks it with a daemon."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from newton.agent.prompting.caller_instructions import INSTRUCTIONS_HEADER
from tests.endpoint import Respond, Wire, calls_tools, chunk, fails, says
from tests.system.scripted import Talk, talking_within

WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    "strict": False,
}
EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


class Ferry(BaseModel):
    name: str
    cars: int


@pytest.fixture(scope="module")
async def talk(home: Path, behind: str) -> AsyncIterator[Talk]:
    async with talking_within(home, behind) as made:
        await made.post("/v1/memories", {"content": "The ferry is called Artemis."})
        yield made


def deltas(*parts: dict[str, Any], finish: str | None = "stop", usage: dict[str, Any] | None = None) -> Respond:
    """A streamed reply of these deltas."""

    async def respond(wire: Wire) -> None:
        await wire.begin_stream()
        for part in parts:
            await wire.event(chunk({"choices": [{"index": 0, "delta": part, "finish_reason": None}]}))
        if finish:
            await wire.event(chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
        if usage:
            await wire.event(chunk({"choices": [], "usage": usage}))
        await wire.event("[DONE]")

    return respond


async def create(talk: Talk, given: Any, session: str | None = None, **more: Any) -> Any:
    headers = {"X-Newton-Session": session} if session else {}
    async with talk.client(**headers) as client:
        send: Any = client.responses.create
        return await send(model="newton", input=given, **more)


async def streamed(talk: Talk, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a response, each checked against the type of OpenAI's package."""
    answer = await talk.post("/v1/responses", {"model": "newton", "stream": True, **body})
    assert answer.status_code == 200, answer.text
    blocks = [block.split("\n") for block in answer.text.strip().split("\n\n") if not block.startswith(":")]
    events = [json.loads(data.removeprefix("data: ")) for _, data in blocks]
    assert [name.removeprefix("event: ") for name, _ in blocks] == [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for event in events:
        EVENTS.validate_python(event)
    return events


def kinds(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


async def test_an_input_is_answered_with_the_memory_and_can_be_fetched_and_deleted(talk: Talk) -> None:
    details = {"prompt_tokens_details": {"cached_tokens": 30}, "completion_tokens_details": {"reasoning_tokens": 2}}
    usage = {"prompt_tokens": 40, "completion_tokens": 4, "total_tokens": 44, **details}
    talk.plays(deltas({"content": "It is "}, {"content": "Artemis."}, usage=usage))
    answer = await create(
        talk, "What is the ferry called?", instructions="Answer in one line.", metadata={"ticket": "12"}
    )
    assert (answer.output_text, answer.status, answer.object) == ("It is Artemis.", "completed", "response")
    assert answer.usage.model_dump() == {
        "input_tokens": 40,
        "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 0, "cache_write_tokens_details": None},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 44,
    }
    first, last = talk.asked()["messages"]
    assert first["content"].startswith(f"{INSTRUCTIONS_HEADER}Answer in one line.")
    assert "The ferry is called Artemis." in last["content"]
    async with talk.client() as client:
        stored = await client.responses.retrieve(answer.id)
        Response.model_validate(stored.model_dump())
        same = ("id", "output", "usage", "metadata", "created_at", "completed_at", "model", "status")
        assert [getattr(stored, name) for name in same] == [getattr(answer, name) for name in same]
        await client.responses.delete(answer.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(answer.id)
    rows = await talk.fetch("select 1 from dialogue.messages where content = 'It is Artemis.'")
    assert len(rows) == 1  # deleting a response does not forget what was said


async def test_events_come_in_their_order(talk: Talk) -> None:
    talk.plays(says(["At ", "nine."]))
    events = await streamed(talk, {"input": "When is tea?"})
    assert kinds(events) == [
        *("created", "in_progress", "output_item.added", "content_part.added", "output_text.delta"),
        *("output_text.delta", "output_text.done", "content_part.done", "output_item.done", "completed"),
    ]
    assert [event["delta"] for event in events if "delta" in event] == ["At ", "nine."]
    final = events[-1]["response"]
    assert final["output"] == [events[-2]["item"]] and final["usage"]["total_tokens"] == 14
    assert events[2]["item"]["content"] == [] and events[0]["response"]["status"] == "in_progress"

    think: Any = [{"reasoning_content": "They drink"}, {"reasoning_content": " early."}, {"content": "At eight."}]
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    talk.plays(deltas(*think, {"tool_calls": [call]}, finish="tool_calls"))
    events = await streamed(talk, {"input": "And supper?", "tools": [WEATHER]})
    assert kinds(events)[2:] == [
        *("output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.delta"),
        *("reasoning_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "content_part.added", "output_text.delta"),
        *("output_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
        "completed",
    ]
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["reasoning", "message", "function_call"]
    talk.plays(deltas(*think))
    events = await streamed(talk, {"input": "And breakfast?", "reasoning": {"summary": "auto"}})
    assert kinds(events)[2:8] == [
        *("output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"),
        *("reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done"),
    ]
    summary = [{"type": "summary_text", "text": "They drink early."}]
    assert events[-1]["response"]["output"][0]["summary"] == summary
    rows = await talk.fetch("select content from dialogue.messages where content like '%They drink%'")
    assert rows == []  # reasoning is not remembered as speech


async def test_a_stream_of_the_client_parses_json_of_a_schema(talk: Talk) -> None:
    talk.plays(says(['{"name": "Artemis",', ' "cars": 40}']), says(['{"name": "Zeus", "cars": 2}']))
    async with talk.client() as client:
        parsed = await client.responses.parse(model="newton", input="Describe the ferry.", text_format=Ferry)
        assert parsed.output_parsed == Ferry(name="Artemis", cars=40)
        sent = talk.asked()["response_format"]
        assert sent["type"] == "json_schema" and sent["json_schema"]["name"] == "Ferry"
        assert sent["json_schema"]["strict"] is True and "cars" in sent["json_schema"]["schema"]["properties"]
        async with client.responses.stream(model="newton", input="And the other?", text_format=Ferry) as stream:
            seen = [event.type async for event in stream]
            final = await stream.get_final_response()
    assert final.output_parsed == Ferry(name="Zeus", cars=2)
    assert "response.output_text.delta" in seen and seen[-1] == "response.completed"


async def test_a_stored_response_is_continued_with_text_and_with_the_result_of_a_tool(talk: Talk) -> None:
    name = f"porto-{uuid4().hex[:6]}"
    talk.plays(
        calls_tools(("call_1", "weather", {"place": "Porto"}), text="I look."), says(["It rains."]), says(["Yes."])
    )
    asked = await create(talk, "How is the weather in Porto?", name, tools=[WEATHER], tool_choice="auto")
    message, call = asked.output
    assert (message.type, call.type, json.loads(call.arguments)) == ("message", "function_call", {"place": "Porto"})
    tool = talk.asked()["tools"][0]["function"]
    assert (tool["name"], tool["parameters"], talk.asked()["tool_choice"]) == ("weather", WEATHER["parameters"], "auto")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "Rain, 14 degrees."}
    told = await create(talk, [result], previous_response_id=asked.id, tools=[WEATHER])
    assert (told.output_text, told.previous_response_id) == ("It rains.", asked.id)
    assert talk.shown() == [
        ("user", "How is the weather in Porto?"),
        ("assistant", "I look."),
        ("tool", "Rain, 14 degrees."),
    ]
    last = await create(talk, "Do I need a coat?", previous_response_id=told.id)
    assert last.output_text == "Yes." and talk.shown()[-1] == ("user", "Do I need a coat?")
    said = ["How is the weather in Porto?", "I look.", "Rain, 14 degrees.", "It rains.", "Do I need a coat?", "Yes."]
    assert await talk.lines(name) == {name: said}  # one session, each message once
    async with talk.client() as client:
        stored = await client.responses.retrieve(asked.id)
    assert stored.output == asked.output


@pytest.mark.slow
async def test_an_earlier_response_is_continued_in_a_branch_also_at_the_same_time(talk: Talk) -> None:
    name = f"trip-{uuid4().hex[:6]}"
    talk.plays(says(["Hello."]), says(["Two."]))
    first = await create(talk, "Good morning, ferry.", name)
    await create(talk, "How many cups?", previous_response_id=first.id)
    talk.plays(says(["Three."]))
    other = await create(talk, "How many plates?", previous_response_id=first.id)
    assert [text for _, text in talk.shown()] == ["Good morning, ferry.", "Hello.", "How many plates?"]
    talk.plays(says(["A."]), says(["B."]), says(["C."]), says(["D."]))
    places = ("north", "south", "east", "west")
    asking = (create(talk, f"What lies {place}?", previous_response_id=other.id) for place in places)
    answers = await asyncio.gather(*asking)
    assert sorted(answer.output_text for answer in answers) == ["A.", "B.", "C.", "D."]
    for place in range(4):
        shown = [text or "" for _, text in talk.shown(place)]
        assert len(shown) == 5 and sum("What lies" in text for text in shown) == 1
    logs = await talk.lines(name)
    assert logs[name] == ["Good morning, ferry.", "Hello.", "How many cups?", "Two."]
    assert len(logs) == 5 and sum(len(lines) for lines in logs.values()) == 4 + 2 + 8


async def test_the_stateless_form_continues_the_session_of_what_it_repeats(talk: Talk) -> None:
    name = f"whole-{uuid4().hex[:6]}"
    kept: Any = {"store": False, "extra_headers": {"X-Newton-Remember": "yes"}}
    call = ("call_7", "weather", {"place": "Faro"})
    talk.plays(
        deltas({"reasoning": "Sunny?"}, {"content": "I look."}), calls_tools(call, text="Now."), says(["It shines."])
    )
    given: list[Any] = [{"role": "user", "content": [{"type": "input_text", "text": "Is it sunny?"}]}]
    first = await create(talk, given, name, **kept, include=["reasoning.encrypted_content"])
    assert [item.type for item in first.output] == ["reasoning", "message"]
    given += [item.model_dump() for item in first.output] + [{"role": "user", "content": "In Faro."}]
    second = await create(talk, given, name, **kept, tools=[WEATHER])
    given += [item.model_dump() for item in second.output]
    given += [{"type": "function_call_output", "call_id": "call_7", "output": [{"type": "input_text", "text": "Sun."}]}]
    third = await create(talk, given, name, **kept, tools=[WEATHER])
    assert third.output_text == "It shines."
    assert await talk.lines(name) == {name: ["Is it sunny?", "I look.", "In Faro.", "Now.", "Sun.", "It shines."]}
    async with talk.client() as client:
        with pytest.raises(openai.NotFoundError):  # `store: false`
            await client.responses.retrieve(third.id)
    with pytest.raises(openai.BadRequestError) as missing:
        await create(talk, "And now?", previous_response_id=third.id)
    assert missing.value.param == "previous_response_id"


async def test_references_stand_for_items_of_stored_responses(talk: Talk) -> None:
    name = f"refs-{uuid4().hex[:6]}"
    talk.plays(calls_tools(("call_9", "weather", {"place": "Beja"}), text="I look."), says(["Hot."]))
    asked = await create(talk, "How is Beja?", name, tools=[WEATHER])
    references = [{"type": "item_reference", "id": item.id} for item in asked.output]
    result = {"type": "function_call_output", "call_id": "call_9", "output": "39 degrees."}
    user = {"role": "user", "content": "How is Beja?"}
    answer = await create(talk, [user, *references, result], name, tools=[WEATHER])
    assert answer.output_text == "Hot." and len((await talk.lines(name))[name]) == 4
    unknown = {"type": "item_reference", "id": f"msg_{uuid4().hex}0000"}
    with pytest.raises(openai.BadRequestError, match="not stored") as missing:
        await create(talk, [user, unknown])
    assert missing.value.param == "input[1].id"


async def test_options_and_images_reach_the_model_in_the_form_of_chat_completions(talk: Talk) -> None:
    talk.plays(says(["Fine."]))
    picture = {"type": "input_image", "image_url": "https://example.com/pier.png", "detail": "low"}
    paper = {"type": "input_file", "filename": "fares.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}
    given = [{"role": "user", "content": [{"type": "input_text", "text": "What is this?"}, picture, paper]}]
    options: dict[str, Any] = {
        "max_output_tokens": 300,
        "reasoning": {"effort": "low"},
        "text": {"verbosity": "low"},
        "temperature": 0.5,
        "extra_body": {"seed": 7},
        "tools": [WEATHER],
        "tool_choice": {"type": "function", "name": "weather"},
        "parallel_tool_calls": False,
    }
    answer = await create(talk, given, **options)
    sent = talk.asked()
    assert (answer.max_output_tokens, answer.reasoning.effort, answer.tool_choice.name) == (300, "low", "weather")
    assert 300 in (sent.get("max_completion_tokens"), sent.get("max_tokens"))
    fields = ("reasoning_effort", "verbosity", "temperature", "seed", "parallel_tool_calls")
    assert [sent[name] for name in fields] == ["low", "low", 0.5, 7, False]
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "weather"}}
    parts = sent["messages"][-1]["content"]
    assert {"type": "image_url", "image_url": {"url": "https://example.com/pier.png", "detail": "low"}} in parts
    file = {"file_data": "data:application/pdf;base64,JVBERi0=", "filename": "fares.pdf"}
    assert {"type": "file", "file": file} in parts


async def test_a_reply_that_is_cut_short_is_incomplete_or_failed(talk: Talk) -> None:
    talk.plays(deltas({"content": "Once upon"}, finish="length"))
    cut = await create(talk, "Tell a tale.", max_output_tokens=2)
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert (cut.output[0].status, cut.output_text) == ("incomplete", "Once upon")
    talk.plays(deltas({"content": "Once "}, finish=None), deltas({"content": "Once "}, finish=None))
    events = await streamed(talk, {"input": "Tell another tale."})
    assert kinds(events)[-1] == "failed" and kinds(events)[-2] == "output_item.done"
    assert events[-1]["response"]["error"]["code"] == "server_error"
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Once "
    usage = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    talk.plays(deltas({"reasoning_content": "Hm."}, finish="length", usage=usage), says(["Two."]))
    silent = await create(talk, "How many chapters?", max_output_tokens=2)
    assert (silent.status, [item.type for item in silent.output]) == ("incomplete", ["reasoning"])
    assert (await create(talk, "Count again.", previous_response_id=silent.id)).output_text == "Two."
    assert "How many chapters?" in str(talk.asked()["messages"])
    talk.plays(deltas({"refusal": "I will "}, {"refusal": "not."}))
    events = await streamed(talk, {"input": "Sink the ferry."})
    assert "refusal.delta" in kinds(events) and "refusal.done" in kinds(events)
    content = events[-1]["response"]["output"][0]["content"]
    assert content == [{"type": "refusal", "refusal": "I will not."}]


async def test_what_is_not_supported_is_refused_and_named(talk: Talk) -> None:
    user = {"role": "user", "content": "Hi."}
    image = {"type": "input_image", "file_id": "f"}
    refused: list[tuple[dict[str, Any], str | None, str]] = [
        ({"tools": [{"type": "web_search"}]}, "tools[0]", "type function"),
        ({"tools": [WEATHER], "tool_choice": {"type": "file_search"}}, "tool_choice", "not supported"),
        ({"background": True}, "background", "not supported"),
        ({"conversation": "conv_1"}, "conversation", "previous_response_id"),
        ({"input": [user, {"type": "computer_call", "id": "x"}]}, "input[1]", "not supported"),
        (
            {"input": [{"role": "user", "content": [image]}]},
            "input[0].content[0]",
            "",
        ),
        ({"input": [{"type": "function_call", "name": "weather"}]}, "input[0].call_id", "required"),
        ({"input": []}, "input", ""),
        ({"text": {"format": {"type": "grammar"}}}, "text.format", "not supported"),
        ({"previous_response_id": "resp_1"}, "previous_response_id", "not the id"),
        ({"previous_response_id": f"resp_{uuid4().hex}"}, "previous_response_id", "not stored"),
    ]
    for body, param, message in refused:
        answer = await talk.post("/v1/responses", {"input": "Hi.", **body})
        error = answer.json()["error"]
        assert (answer.status_code, error["type"], error["param"]) == (400, "invalid_request_error", param), error
        assert message in error["message"]
    talk.plays(*[fails(400)] * 3)
    with pytest.raises(openai.BadRequestError):
        await create(talk, "Hi again.")
    async with talk.client() as client:
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve("resp_1")


async def test_what_is_forgotten_is_gone_from_a_stored_response(talk: Talk) -> None:
    talk.plays(says(["The safe opens with 4711."]))
    told = await create(talk, "How does the safe open?")
    rows = await talk.fetch("select memory_id from memory.memories where summary like '%opens with 4711%'")
    async with talk.client() as client:
        for row in rows:
            path = f"{talk.url}/v1/memories/{row['memory_id']}"
            plan = await client.delete(path, cast_to=dict[str, str])
            await client.delete(f"{path}?token={plan['token']}", cast_to=object)
        stored = await client.responses.retrieve(told.id)
    assert rows and stored.output_text == "[forgotten]" and "4711" not in stored.model_dump_json()


async def test_another_agent_does_not_see_a_response(talk: Talk) -> None:
    talk.plays(says(["Secret."]))
    mine = await create(talk, "What is the word?")
    assert (await talk.post("/v1/agents", {"name": "bea"})).status_code in (200, 201)
    async with talk.client(**{"X-Newton-Agent": "bea"}) as other:
        with pytest.raises(openai.NotFoundError):
            await other.responses.retrieve(mine.id)
        with pytest.raises(openai.NotFoundError):
            await other.responses.delete(mine.id)
        with pytest.raises(openai.BadRequestError, match="not stored"):
            await other.responses.create(model="newton", input="And?", previous_response_id=mine.id)
    async with talk.client() as client:
        assert (await client.responses.retrieve(mine.id)).output_text == "Secret."
