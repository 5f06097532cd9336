"""Any OpenAI-compatible endpoint, over real HTTP on loopback."""

import asyncio
import json
import logging
import ssl
import traceback
from collections.abc import Sequence
from email.utils import format_datetime
from typing import Any

import httpx2
import numpy as np
import openai
import pytest

from newton.errors import ProviderError
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.model_endpoint import make_client, make_endpoint
from newton.providers.openai.chat import OpenAIChat
from newton.providers.openai.embedding import OpenAIEmbedder
from newton.providers.upstreams import build_provider_upstream
from newton.settings import Settings, load
from tests.endpoint import Endpoint, Respond, Wire, chunk, embeds, endpoint, fails, hangs
from tests.support import NOON

ASKED = [ChatMessage("system", "Be kind."), ChatMessage("user", "Hello")]
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
IN_AN_HOUR = {"retry_after": format_datetime(NOON.replace(hour=NOON.hour + 1)), "date": format_datetime(NOON)}


def settings(url: str, **changed: object) -> Settings:
    return load({"openai_base_url": url, "openai_model": "tiny", "llm_timeout": 5.0, **changed}, env={})


async def heard(server: Endpoint, **changed: object) -> tuple[list[str], ChatReply | None, ProviderError | None]:
    """What comes of one call: the pieces, the reply and the error."""
    pieces: list[str] = []
    reply = None
    try:
        async for piece in OpenAIChat(build_provider_upstream("openai", settings(server.url, **changed))).stream(
            ASKED, max_tokens=50
        ):
            if isinstance(piece, ChatReply):
                reply = piece
            else:
                pieces.append(piece)
    except ProviderError as error:
        return pieces, reply, error
    return pieces, reply, None


def delta(piece: str | None, finish: str | None = None) -> dict[str, Any]:
    return chunk({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": finish}]})


def streams(*events: object) -> Respond:
    """A stream of events, closed in good order."""

    async def respond(wire: Wire) -> None:
        await wire.begin_stream()
        for event in events:
            await wire.event(event)

    return respond


def says(*pieces: str, finish: str | None = "stop", usage: object = None) -> Respond:
    last = [chunk({"choices": [], "usage": usage})] if usage else []
    return streams(*map(delta, pieces), delta(None, finish), *last, "[DONE]")


async def torn(wire: Wire) -> None:
    """A reply whose connection is lost inside it."""
    wire.writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    event = f"data: {json.dumps(delta('Good '))}\n\n".encode()
    wire.writer.write(b"%x\r\n%s\r\n" % (len(event), event))
    await wire.writer.drain()


async def stalls(wire: Wire) -> None:
    await wire.begin_stream()
    await wire.event(delta("Good "))
    await asyncio.Event().wait()


async def test_a_reply_comes_in_pieces_and_ends_with_its_cost() -> None:
    async with endpoint(says("Good ", "day", usage=USAGE)) as server:
        pieces, reply, error = await heard(server)
    assert (pieces, error) == (["Good ", "day"], None)
    assert reply == ChatReply(text="Good day", model="tiny", input_tokens=11, output_tokens=3, finish="stop")
    assert server.asked == [
        {
            "model": "tiny",
            "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}],
            "max_tokens": 50,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]


BARE = [{"choices": [{"delta": {"content": "Hi"}}]}, {"choices": [{"delta": None}]}, {"usage": USAGE}]


@pytest.mark.parametrize(
    ("response", "text", "finish", "tokens", "is_error"),
    [
        (says("Good ", finish="length", usage=USAGE), "Good ", "length", 11, False),
        (streams(delta("Good day", "stop"), "{not json"), "Good day", "stop", 4, False),  # it had ended before
        (streams(*BARE), "Hi", "stop", 11, False),
        (says(usage=USAGE), "", "stop", 11, True),  # an empty reply is an error that has its cost
    ],
)
async def test_a_reply_has_its_text_its_end_and_its_cost(
    response: Respond, text: str, finish: str, tokens: int, is_error: bool
) -> None:
    async with endpoint(response) as server:
        _, reply, error = await heard(server)
    assert reply is not None
    assert (reply.text, reply.finish, reply.input_tokens, error is not None) == (text, finish, tokens, is_error)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": 3}])
async def test_usage_that_is_not_reported_is_counted_here_and_marked(usage: object) -> None:
    async with endpoint(says("Good day", usage=usage)) as server:
        _, reply, error = await heard(server)
    assert error is None
    assert reply == ChatReply(text="Good day", model="tiny", input_tokens=4, output_tokens=2, estimated=True)


async def test_a_busy_endpoint_is_asked_once_more() -> None:
    async def ask(first: Respond) -> None:
        async with endpoint(first, says("Yes")) as server:
            pieces, _, error = await heard(server)
        assert (pieces, error, len(server.asked)) == (["Yes"], None, 2)

    waits = ("0", "soon", "-3", "nan", "")  # one that makes no sense is a short one
    await asyncio.gather(*(ask(fails(429, retry_after=wait)) for wait in waits), ask(fails(503)), ask(fails(500)))


async def test_the_wait_that_a_busy_endpoint_wants_is_kept() -> None:
    started = asyncio.get_running_loop().time()
    async with endpoint(fails(429, retry_after="0.8"), says("Yes")) as server:
        pieces, _, _ = await heard(server)
    assert pieces == ["Yes"]
    assert asyncio.get_running_loop().time() - started >= 0.8


@pytest.mark.parametrize("headers", [{"retry_after": "60"}, {"retry_after": "inf"}, IN_AN_HOUR])
async def test_a_wait_that_ends_after_the_deadline_is_not_begun(headers: dict[str, str]) -> None:
    async with endpoint(fails(429, **headers), says("Yes")) as server:
        _, _, error = await heard(server)
    assert error is not None and "busy" in error.what
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("response", "what", "hint", "times"),
    [
        (fails(401), "rejected the API key", "OPENAI_API_KEY", 1),
        (fails(403), "rejected the API key", "OPENAI_API_KEY", 1),
        (fails(404), "no model 'tiny'", "OPENAI_MODEL", 1),
        (fails(400), "answered with the HTTP status 400", "log", 1),
        (fails(429, retry_after="0"), "busy", "account", 2),
        (fails(500, retry_after="0"), "answered with the HTTP status 500", "log", 2),
        (says(), "empty reply", "OPENAI_MODEL", 1),
        (says(finish="length"), "empty reply", "NEWTON_MAX_OUTPUT_TOKENS", 1),
        (streams({"error": {"message": "out of memory"}}), "failed during the reply", "log", 1),
    ],
)
async def test_failures_say_what_to_do(response: Respond, what: str, hint: str, times: int) -> None:
    async with endpoint(response) as server:
        pieces, reply, error = await heard(server)
    assert error is not None
    assert what in error.what and hint in error.hint
    assert (pieces, reply, len(server.asked)) == ([], None, times)


@pytest.mark.parametrize(
    "garbage", ["{not json", "[1]", '"words"', '{"choices": 5}', '{"choices": [{"delta": {"content": {}}}]}']
)
async def test_garbage_is_no_reply(garbage: str) -> None:
    async with endpoint(streams(garbage)) as server:
        _, reply, error = await heard(server)
    assert reply is None
    assert error is not None and "invalid reply" in error.what


@pytest.mark.parametrize(
    ("response", "what"),
    [
        (torn, "cannot be reached"),
        (streams(delta("Good ")), "ended its reply early"),
        (streams(delta("Good "), "{not json"), "invalid reply"),
        (says("Good ", finish="content_filter", usage=USAGE), "ended its reply early"),
    ],
)
async def test_a_reply_that_breaks_off_is_kept_and_not_begun_again(response: Respond, what: str) -> None:
    async with endpoint(response) as server:
        pieces, reply, error = await heard(server)
    assert pieces == ["Good "]
    assert reply is not None
    assert (reply.text, reply.finish) == ("Good ", "interrupted")
    assert error is not None and what in error.what
    assert len(server.asked) == 1


@pytest.mark.parametrize(("response", "pieces"), [(hangs, []), (stalls, ["Good "])])
async def test_a_hanging_endpoint_is_left_at_the_deadline(response: Respond, pieces: list[str]) -> None:
    async with endpoint(response) as server:
        come, _, error = await heard(server, llm_timeout=0.3)
    assert come == pieces
    assert error is not None and "NEWTON_LLM_TIMEOUT" in error.hint


async def test_a_reader_that_is_slower_than_the_deadline_is_told_and_not_cancelled() -> None:
    async with endpoint(stalls) as server:
        stream = OpenAIChat(build_provider_upstream("openai", settings(server.url, llm_timeout=0.3))).stream(
            ASKED, max_tokens=50
        )
        assert await anext(stream) == "Good "
        await asyncio.sleep(0.4)  # the reader's own time, which no event of ours ends
        rest = [await anext(stream)]
        with pytest.raises(ProviderError, match="NEWTON_LLM_TIMEOUT"):
            await anext(stream)
    assert [piece.finish for piece in rest if isinstance(piece, ChatReply)] == ["interrupted"]


async def test_nobody_there() -> None:
    async with endpoint(hangs) as server:
        url = server.url
    _, _, error = await heard(Endpoint(url))
    assert error is not None and "OPENAI_BASE_URL" in error.hint
    assert url in error.what


@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_neither_key_nor_prompt_is_told(status: int, caplog: pytest.LogCaptureFixture) -> None:
    async def tells_all(wire: Wire) -> None:
        said = {"error": {"message": f"sk-very-secret {json.dumps(wire.body)}"}}
        await wire.send(status, said, retry_after="0")

    caplog.set_level(logging.DEBUG)
    async with endpoint(tells_all) as server:
        _, _, error = await heard(server, openai_api_key="sk-very-secret")
    assert error is not None
    told = "".join(traceback.format_exception(error)) + caplog.text
    assert "very-secret" not in told
    assert "Be kind" not in told


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("Rate limit reached for tiny\nin org 7", " It says: Rate limit reached for tiny"),
        ("bad key sk-1234 or Bearer abc or k9k9k9k9k9k9k9k9k9k9k9k9", " It says: bad key [key] or [key] or [key]"),
        ("\n  at http://ana:pw@host/v1\x1b[31m now", " It says: at http://[key]@host/v1 [31m now"),
        ("context_window_limitations " + "word " * 80, " It says: context_window_limitations " + "word " * 34 + "w …"),
        ('{"error": 1}', ""),
        ("<html>gone</html>", ""),
        (5, ""),
    ],
)
async def test_what_a_busy_or_broken_endpoint_says_is_told_in_a_line_without_keys(told: object, said: str) -> None:
    async def speaks(wire: Wire) -> None:
        await wire.send(500, {"error": {"message": told}}, retry_after="0")

    async with endpoint(speaks) as server:
        _, _, error = await heard(server)
    assert error is not None
    assert error.what.removesuffix(".") == f"{server.url} answered with the HTTP status 500.{said}".removesuffix(".")
    assert error.what[-1] in ".!?…"
    assert len(said) <= 200 + len(" It says: ")
    assert error.summary == f"{server.url} answered with the HTTP status 500.", "without the words of the server"


def test_without_a_key_or_an_address_there_are_defaults() -> None:
    assert make_client(build_provider_upstream("openai", settings("http://127.0.0.1:1/v1"))).api_key == "none"
    chosen = load({"openai_api_key": "sk-x"}, env={})
    assert str(make_client(build_provider_upstream("openai", chosen)).base_url) == "https://api.openai.com/v1/"


def embedder(server: Endpoint, dimensions: int = 2) -> OpenAIEmbedder:
    # The setting's own floor is 8; vectors of two numbers are easier to read.
    return OpenAIEmbedder(settings(server.url).model_copy(update={"embedding_dimensions": dimensions}))


def gives(rows: Sequence[dict[str, Any]]) -> Respond:
    async def respond(wire: Wire) -> None:
        await wire.send(200, {"object": "list", "model": "m", "data": rows})

    return respond


async def test_texts_to_embed_are_asked_for_in_portions_that_an_endpoint_takes() -> None:
    async with endpoint(embeds) as server:
        model = embedder(server)
        long, short = await model.embed(["aaaa", "a"])
    assert long[0] > short[0] > 0.7
    assert float(long @ long) == pytest.approx(1)
    assert (long.dtype, model.identity, model.dimensions) == (np.float32, "text-embedding-3-small/2", 2)
    assert server.asked[0]["dimensions"] == 2
    # many texts are asked for in portions
    texts = ["a" * (1 + n % 7) for n in range(600)]
    async with endpoint(embeds) as server:
        vectors = await embedder(server).embed(texts)
    assert [len(asked["input"]) for asked in server.asked] == [256, 256, 88]
    assert [round(float(v[0] / v[1])) for v in vectors] == [len(text) for text in texts]
    # long and empty texts are made such as an endpoint takes
    async with endpoint(embeds) as server:
        assert len(await embedder(server).embed(["word " * 9_000, *["cat " * 7_999] * 40, ""])) == 42
    assert server.asked[0]["input"][0] == ("word " * 8_000).rstrip()
    assert [len(asked["input"]) for asked in server.asked] == [31, 11]
    assert server.asked[1]["input"][-1] == " "


async def test_embeddings_are_put_in_the_order_of_their_index_and_a_busy_endpoint_is_asked_once_more() -> None:
    given = gives([{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}])
    async with endpoint(fails(503, retry_after="0"), given) as server:
        assert await embedder(server).embed([]) == [] and server.asked == []
        first, second = await embedder(server).embed(["a", "b"])
    assert (first.tolist(), second.tolist(), len(server.asked)) == ([1, 0], [0, 1], 2)


@pytest.mark.parametrize(
    ("response", "what"),
    [
        (fails(404), "Set NEWTON_EMBEDDING_MODEL"),
        (fails(401), "Check OPENAI_API_KEY"),
        (gives([{"index": 0, "embedding": [1, 2, 3]}]), "3 dimensions. Set NEWTON_EMBEDDING_DIMENSIONS"),
        (gives([{"index": 0, "embedding": [1, 2]}] * 2), "2 vectors for 1 texts"),
        (gives([{"index": 0, "embedding": [1, float("nan")]}]), "invalid reply"),
        (gives([{"index": 0, "embedding": [1, float("inf")]}]), "invalid reply"),
        (gives([{"index": 0, "embedding": [1, "two"]}]), "invalid reply"),
        (gives([{"index": 0}]), "invalid reply"),
        (gives([]), "0 vectors for 1 texts"),
    ],
)
async def test_embeddings_that_cannot_be_used_are_refused(response: Respond, what: str) -> None:
    async with endpoint(response) as server:
        with pytest.raises(ProviderError, match=what):
            await embedder(server).embed(["a"])


async def test_a_hanging_embedding_endpoint_is_left_at_the_deadline() -> None:
    async with endpoint(hangs) as server:
        model = OpenAIEmbedder(settings(server.url, llm_timeout=0.3))
        with pytest.raises(ProviderError, match="NEWTON_LLM_TIMEOUT"):
            await model.embed(["a"])


def test_an_untrusted_certificate_is_explained() -> None:
    endpoint = make_endpoint(settings("https://models.example/v1"), "m", "OPENAI_MODEL")
    error = openai.APIConnectionError(request=httpx2.Request("POST", endpoint.address))
    error.__cause__ = ssl.SSLCertVerificationError("self-signed certificate")
    explained = endpoint.to_provider_error(error)
    assert "certificate of https://models.example/v1 is not trusted" in explained.what
    assert "SSL_CERT_FILE" in explained.hint
