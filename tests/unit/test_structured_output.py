"""Structured output over real HTTP on loopback: the strictest mode that an endpoint supports is used."""

from collections.abc import Sequence
from typing import Literal

import pytest
from pydantic import BaseModel

from newton.errors import ContextWindowError, ProviderError
from newton.providers import token_counter
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.model_output.output_parser import parse_output
from newton.providers.openai.chat import OpenAIChat
from newton.providers.structured_output import add_schema_to_prompt
from newton.providers.upstreams import build_provider_upstream
from newton.settings import load
from tests.endpoint import Endpoint, Respond, Wire, chunk, endpoint, fails

ASKED = [ChatMessage("system", "Be kind."), ChatMessage("user", "Who was it?")]
GIVEN = '{"names": ["Ana"]}'


class Named(BaseModel):
    names: list[str] = []
    at: str = ""


def knows(*kinds: str, refuses: int = 500, answer: str = GIVEN) -> Respond:
    """A server that answers requests with such formats, and refuses others."""

    async def respond(wire: Wire) -> None:
        if wire.body.get("response_format", {"type": "words"})["type"] in kinds:
            await wire.begin_stream()
            await wire.event(chunk({"choices": [{"index": 0, "delta": {"content": answer}, "finish_reason": "stop"}]}))
        else:
            await wire.send(refuses, {"error": {"message": "Input should be 'text' or 'json_object'"}})

    return respond


async def asks(server: Endpoint, model: str = "tiny") -> ChatReply:
    chosen = load({"openai_base_url": server.url, "openai_model": model, "llm_timeout": 5.0}, env={})
    said = OpenAIChat(build_provider_upstream("openai", chosen)).stream(ASKED, max_tokens=50, schema=Named)
    (reply,) = [piece async for piece in said if isinstance(piece, ChatReply)]
    return reply


def kinds(server: Endpoint) -> list[str]:
    return [asked.get("response_format", {"type": "words"})["type"] for asked in server.asked]


@pytest.mark.parametrize("refuses", [400, 404, 422, 500, 501])
async def test_a_format_that_a_server_does_not_know_is_made_plainer_once(refuses: int) -> None:
    # S003-A ADR-0042: any OpenAI-compatible endpoint may tell
    async with endpoint(knows("json_object", "words", refuses=refuses)) as server:
        first, second = await asks(server), await asks(server)
    assert first.text == second.text == GIVEN
    again = ["json_schema"] if refuses >= 500 else []  # it might have been busy
    assert kinds(server) == ["json_schema", *again, "json_object", "json_object"], "what works is remembered"
    last = server.asked[-1]["messages"]
    assert last[0] == {"role": "system", "content": "Be kind."}
    assert last[1]["content"].startswith("Who was it?\n")
    assert last[1]["content"].endswith('{"names": ["...", ...], "at": "..."}')


async def test_where_no_format_is_known_words_ask_for_it_and_count() -> None:
    async with endpoint(knows("words", refuses=400, answer=f"Sure!\n```json\n{GIVEN}\n```")) as server:
        reply = await asks(server)
        await asks(server, "other")
    assert kinds(server) == ["json_schema", "json_object", "words"] * 2, "another model is another matter"
    assert parse_output(reply.text, Named).value == Named(names=["Ana"])
    sent: Sequence[dict[str, str]] = server.asked[2]["messages"]
    assert reply.input_tokens == sum(token_counter.count(message["content"]) for message in sent), (
        "what was really sent"
    )


async def test_a_server_that_knows_the_form_is_asked_as_ever() -> None:
    async with endpoint(knows("json_schema", "json_object", "words")) as server:
        await asks(server)
        await asks(server)
    assert kinds(server) == ["json_schema"] * 2
    assert server.asked[0]["messages"][-1]["content"] == "Who was it?"
    (said,) = add_schema_to_prompt([ChatMessage("user", "")], Whole, "words")
    shape = '{"one": {"names": ["...", ...], "at": "..."}, "sort": "a" or "b" or null'
    assert said.text.splitlines()[-1] == f'{shape}, "often": a whole number, "sure": true or false}}'


async def test_an_outage_and_a_prompt_that_is_too_long_are_not_sent_in_another_way() -> None:
    down = fails(404)
    async with endpoint(*[down] * 5, knows("json_schema", "words")) as server:
        for _ in range(3):
            with pytest.raises(ProviderError, match="no model 'tiny'"):
                await asks(server)
        assert kinds(server) == ["json_schema", "json_object", "words", "words", "words"]
        await asks(server)
        await asks(server)
    assert kinds(server)[5:] == ["words", "json_schema"], "when it is back it is asked strictly again"

    # a prompt that is too long is not sent in another way
    async def overflows(wire: Wire) -> None:
        await wire.send(400, {"error": {"message": "too long", "code": "context_length_exceeded"}})

    async with endpoint(overflows) as server:
        with pytest.raises(ContextWindowError):
            await asks(server)
    assert kinds(server) == ["json_schema"]


@pytest.mark.parametrize(("status", "times"), [(401, 1), (403, 1), (429, 2), (503, 2)])
async def test_what_is_no_matter_of_the_form_is_no_reason_for_a_plainer_one(status: int, times: int) -> None:
    async with endpoint(fails(status, retry_after="0")) as server:
        with pytest.raises(ProviderError):
            await asks(server)
    assert kinds(server) == ["json_schema"] * times


class Whole(BaseModel):
    one: Named
    sort: Literal["a", "b"] | None
    often: int
    sure: bool


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (GIVEN, ["Ana"]),
        (f"Here {{as you like}} it is: {GIVEN} I hope that {{this}} helps.", ["Ana"]),
        ('{"names": ["A\nB"]}', ["A\nB"]),
        ('{"other": {"names": ["Ana"]}', ["Ana"]),
        ("{" * 100_000, None),
        ('{"names": [{"first": "Ana"}', ["Ana"]),
        ("I cannot say.", None),
        ('{"names": "Ana"}', ["Ana"]),
        ('{"names": {"first": "Ana"}}', None),
    ],
)
def test_the_form_is_taken_out_of_what_stands_around_it(text: str, names: list[str] | None) -> None:
    found = parse_output(text, Named).value
    assert (found and found.names) == names
