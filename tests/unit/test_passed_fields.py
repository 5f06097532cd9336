"""What goes to a model's server, what comes back besides text, and what happens to a field that it refuses."""

from typing import Any

import pytest

from newton.errors import ProviderError, RefusedRequestError
from newton.providers.chat import ChatMessage, ChatReply, ReplyDelta, RequestOptions
from newton.providers.openai.chat import OpenAIChat
from newton.providers.upstreams import build_provider_upstream
from newton.runtime.api.chat_completions.response_writer import merge_delta
from newton.settings import load
from tests.endpoint import Respond, Wire, chunk, endpoint, says
from tests.unit.test_chat_model import streams

ASKED = [ChatMessage("user", "Hello")]


def model(url: str, **changed: object) -> OpenAIChat:
    return OpenAIChat(
        build_provider_upstream(
            "openai", load({"openai_base_url": url, "openai_model": "tiny", "llm_timeout": 5.0, **changed}, env={})
        )
    )


async def heard(chat: OpenAIChat, most: int | None = None, **fields: object) -> list[Any]:
    options = RequestOptions(extra_body=fields)
    return [piece async for piece in chat.answer(ASKED, max_tokens=most, options=options)]


def refuses(message: str, status: int = 400, **fields: str) -> Respond:
    async def respond(wire: Wire) -> None:
        await wire.send(status, {"error": {"message": message, **fields}})

    return respond


def choice(index: int = 0, finish: str | None = None, **delta: object) -> dict[str, Any]:
    return chunk({"choices": [{"index": index, "delta": delta, "finish_reason": finish}]})


async def test_a_limit_goes_under_the_name_that_the_server_takes() -> None:
    told = refuses("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", param="max_tokens")
    async with endpoint(told, says(["Yes."])) as server:
        chat = model(server.url)
        await heard(chat, 50)
        await heard(chat, 60)
        await heard(chat, 60, max_tokens=70)  # the caller's own
    limits = [{name: body[name] for name in body if "max" in name} for body in server.asked]
    new = "max_completion_tokens"
    assert limits == [{"max_tokens": 50}, {new: 50}, {new: 60}, {new: 70}]
    # a refusal under both names is told as it came and nothing is learnt
    both = refuses("max_tokens is too large: the most of this model is 10 for max_tokens and max_completion_tokens")
    async with endpoint(both, both, says(["Yes."])) as server:
        with pytest.raises(RefusedRequestError, match="too large: the most"):
            await heard(model(server.url), max_tokens=99)
        await heard(model(server.url), max_tokens=5)
    assert [("max_tokens" in body) for body in server.asked] == [True, False, True]
    async with endpoint(refuses("Extra inputs are not permitted: stream_options", 422), says(["Yes."])) as server:
        assert (await heard(model(server.url)))[0] == "Yes."
    assert ["stream_options" in body for body in server.asked] == [True, False]
    assert OpenAIChat(build_provider_upstream("openai", load({"openai_api_key": "sk-x"}, env={}))).name == "gpt-4o-mini"


@pytest.mark.parametrize(
    ("message", "param", "shown"),
    [
        ("Invalid 'stop': array too long", "stop", "array too long"),
        ("Unsupported value: 'temperature' does not support 0.2", "temperature", "does not support 0.2"),
    ],
)
async def test_a_refused_option_is_no_prompt_that_is_too_long(message: str, param: str, shown: str) -> None:
    async with endpoint(refuses(message, param=param, code="c")) as server:
        with pytest.raises(RefusedRequestError, match=shown) as refused:
            await heard(model(server.url))
    assert (refused.value.param, refused.value.server_code) == (param, "c")
    assert len(server.asked) == 1


async def test_what_is_no_text_is_passed_on_beside_it() -> None:
    events = [
        choice(role="assistant", content="", reasoning_content="Hm"),
        choice(index=1, content="Other"),
        choice(content="Yes."),
        choice(finish="stop", refusal=None, reasoning=""),
        choice(index=1, finish="length"),
        chunk({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}, "service_tier": "flex"}),
    ]
    async with endpoint(streams(*events, "[DONE]")) as server:
        *pieces, reply = await heard(model(server.url), n=2)
    assert pieces == [
        ReplyDelta(delta={"reasoning_content": "Hm"}),
        ReplyDelta(index=1, delta={"content": "Other"}),
        "Yes.",
        ReplyDelta(index=1, finish_reason="length"),
    ]
    assert (reply.text, reply.finish, reply.server_fields) == ("Yes.", "stop", {"service_tier": "flex"})


async def test_a_refusal_of_the_model_and_a_transcript_are_speech_and_reasoning_is_none() -> None:
    async with endpoint(streams(choice(refusal="I can"), choice(refusal="not."), choice(finish="stop"))) as server:
        *_, reply = await heard(model(server.url))
    assert isinstance(reply, ChatReply) and (reply.text, reply.speech) == ("", "I cannot.")
    async with endpoint(streams(choice(reasoning="Hm"), choice(finish="stop"))) as server:
        with pytest.raises(ProviderError, match="empty reply"):
            await heard(model(server.url))


async def test_sound_is_asked_for_whole_because_it_cannot_be_streamed() -> None:
    message = {"role": "assistant", "content": None, "audio": {"id": "a1", "data": "AAAA", "transcript": "Good day."}}
    whole = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "usage": None}

    async def answers(wire: Wire) -> None:
        await wire.send(200, {**whole, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    async with endpoint(answers, lists=True) as server:
        sound, reply = await heard(model(server.url), modalities=["text", "audio"], audio={"format": "wav"})
    assert server.asked[0].keys() == {"model", "messages", "modalities", "audio"}
    assert (sound.delta["audio"]["data"], reply.speech, reply.finish) == ("AAAA", "Good day.", "stop")


@pytest.mark.parametrize(
    ("offered", "said"),
    [
        (["llama3.2:latest", "nomic-embed-text"], None),
        (["a", "b"], "offers several models: a, b. Set OPENAI_MODEL to one of them"),
        ([], "offers no chat model"),
    ],
)
async def test_the_model_of_a_server_is_found_if_it_is_the_only_one(offered: list[str], said: str | None) -> None:
    async def lists(wire: Wire) -> None:
        if wire.path.endswith("/models"):
            await wire.send(200, {"object": "list", "data": [{"id": one, "object": "model"} for one in offered]})
        else:
            await says(["Yes."])(wire)

    async with endpoint(lists, lists=True) as server:
        chat = model(server.url, openai_model=None)
        assert "gpt" not in chat.name
        if said:
            with pytest.raises(ProviderError, match=said):
                await heard(chat)
        else:
            assert [(await heard(chat))[-1].model, chat.name] == [offered[0]] * 2


def test_deltas_make_one_message() -> None:
    message: dict[str, Any] = {}
    for delta in (
        {"role": "assistant", "content": None, "tool_calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]},
        {"role": "assistant", "tool_calls": [{"index": 0, "function": {"arguments": "{}"}}, {"index": 1, "id": "d"}]},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "a"}]},
        {"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "b"}]},
    ):
        merge_delta(message, delta)
    assert message == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}, {"index": 1, "id": "d"}],
        "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "ab"}],
    }
