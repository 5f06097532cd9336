"""Any OpenAI-compatible endpoint, over real HTTP on loopback."""

import pytest

from newton.errors import ProviderError
from newton.providers.chat import ChatMessage, Reply
from newton.providers.openai_models import OpenAIChat, OpenAIEmbedder
from newton.settings import Settings, load
from tests.endpoint import Respond, embeds, endpoint, fails, hangs, says, talks_garbage

ASKED = [ChatMessage("system", "Be kind."), ChatMessage("user", "Hello")]


def settings(url: str, **changed: object) -> Settings:
    return load({"openai_base_url": url, "openai_model": "tiny", "llm_timeout": 5.0, **changed}, env={})


async def reply(chat: OpenAIChat) -> tuple[list[str], Reply]:
    pieces = [piece async for piece in chat.stream(ASKED, max_tokens=50)]
    assert isinstance(pieces[-1], Reply)
    return [p for p in pieces if isinstance(p, str)], pieces[-1]


async def test_a_reply_comes_in_pieces_and_ends_with_its_cost() -> None:
    async with endpoint(says(["Good ", "day"])) as server:
        pieces, whole = await reply(OpenAIChat(settings(server.url)))
    assert pieces == ["Good ", "day"]
    assert whole == Reply(text="Good day", model="tiny", input_tokens=11, output_tokens=3)
    assert server.asked[0]["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hello"},
    ]
    assert server.asked[0]["max_tokens"] == 50


async def test_usage_that_is_not_reported_is_counted_here_and_marked() -> None:
    async with endpoint(says(["Good day"], usage=None)) as server:
        _, whole = await reply(OpenAIChat(settings(server.url)))
    assert (whole.estimated, whole.input_tokens, whole.output_tokens) == (True, 4, 2)


@pytest.mark.parametrize("first", [fails(429, retry_after="0"), fails(503)])
async def test_a_busy_endpoint_is_asked_once_more(first: Respond) -> None:
    async with endpoint(first, says(["Yes"])) as server:
        pieces, _ = await reply(OpenAIChat(settings(server.url)))
    assert pieces == ["Yes"]
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("response", "what", "times"),
    [
        (fails(401), "OPENAI_API_KEY", 1),
        (fails(404), "no model 'tiny'", 1),
        (fails(429, retry_after="0"), "busy", 2),
        (fails(500, retry_after="0"), "answered 500", 2),
        (talks_garbage, "no valid reply", 1),
        (says([]), "answered nothing", 1),
    ],
)
async def test_failures_say_what_to_do(response: Respond, what: str, times: int) -> None:
    async with endpoint(response) as server:
        with pytest.raises(ProviderError, match=what):
            await reply(OpenAIChat(settings(server.url)))
    assert len(server.asked) == times


async def test_a_hanging_endpoint_is_left_at_the_deadline() -> None:
    async with endpoint(hangs) as server:
        with pytest.raises(ProviderError, match="NEWTON_LLM_TIMEOUT"):
            await reply(OpenAIChat(settings(server.url, llm_timeout=0.2)))


async def test_nobody_there() -> None:
    async with endpoint(hangs) as server:
        url = server.url
    with pytest.raises(ProviderError, match="OPENAI_BASE_URL"):
        await reply(OpenAIChat(settings(url)))


async def test_the_key_is_in_no_error() -> None:
    async with endpoint(fails(401)) as server:
        with pytest.raises(ProviderError) as caught:
            await reply(OpenAIChat(settings(server.url, openai_api_key="sk-very-secret-indeed")))
    assert "secret" not in str(caught.value)


async def test_embeddings_are_unit_vectors_in_order() -> None:
    async with endpoint(embeds) as server:
        model = OpenAIEmbedder(
            settings(server.url, embedding_dimensions=8).model_copy(update={"embedding_dimensions": 2})
        )
        long, short = await model.embed(["aaaa", "a"])
    assert long[0] > short[0] > 0.7
    assert abs(float(long @ long) - 1) < 1e-5


async def test_embeddings_of_another_length_are_refused() -> None:
    async with endpoint(embeds) as server:
        with pytest.raises(ProviderError, match="NEWTON_EMBEDDING_DIMENSIONS"):
            await OpenAIEmbedder(settings(server.url)).embed(["a"])
