"""The stand-ins that need no model."""

import numpy as np
import pytest

from newton.errors import ProviderError
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.fakes import BrokenEmbedder, HashEmbedder, ScriptedChat

HELLO = [ChatMessage("system", "Be kind."), ChatMessage("user", "Hello")]


async def told(chat: ScriptedChat, *, max_tokens: int = 50) -> list[str | ChatReply]:
    return [piece async for piece in chat.stream(HELLO, max_tokens=max_tokens)]


async def test_hashed_vectors_are_alike_for_texts_that_share_words_and_the_same_on_every_machine() -> None:
    a, b, c = await HashEmbedder().embed(["Ship on Friday!", "we ship on friday", "a blue whale"])
    assert a @ b > 0.7
    assert a @ c < 0.3
    bites, bitten, same = await HashEmbedder().embed(["dog bites man", "man bites dog", "Dog bites man."])
    assert 0.5 < bites @ bitten < 0.95
    assert bites @ same == pytest.approx(1)
    (vector,) = await HashEmbedder().embed(["harbour"])
    assert (vector.shape, vector.dtype, int(np.argmax(vector)), vector.max()) == ((256,), np.float32, 75, 1)
    assert await HashEmbedder().embed([]) == []


@pytest.mark.parametrize("text", ["", "\0", "👩‍👧", "\ud800", "word " * 10_000])
async def test_any_text_has_a_hashed_vector(text: str) -> None:
    (vector,) = await HashEmbedder().embed([text])
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1 if any(c.isalnum() for c in text) else 0)


async def test_a_broken_model_fails_with_a_remedy() -> None:
    broken = BrokenEmbedder("some-model/8", 8)
    assert (broken.identity, broken.dimensions) == ("some-model/8", 8)
    with pytest.raises(ProviderError, match="Start the embedding endpoint again"):
        await broken.embed(["a"])
    with pytest.raises(ProviderError, match="Add replies to the script of the model"):
        await told(ScriptedChat())


async def test_a_scripted_model_says_its_lines_remembers_what_it_heard_and_stops_at_the_ceiling() -> None:
    chat = ScriptedChat("  Good day,\nAna. ", "Bye.")
    *pieces, reply = await told(chat)
    assert pieces == ["  ", "Good ", "day,\n", "Ana. "]
    assert reply == ChatReply(
        text="  Good day,\nAna. ", model="scripted", input_tokens=3, output_tokens=3, estimated=True, finish="stop"
    )
    assert (await told(chat))[0] == "Bye."
    assert chat.received == [HELLO, HELLO]
    *pieces, reply = await told(ScriptedChat("one two three"), max_tokens=2)
    assert pieces == ["one ", "two "]
    assert isinstance(reply, ChatReply)
    assert (reply.text, reply.output_tokens, reply.finish) == ("one two ", 2, "length")
