"""The local embedding model."""

import numpy as np
import pytest

from newton.providers.minilm import BATCH_PIECES, BATCH_TEXTS, MiniLM, batches
from newton.providers.offline import HashEmbedder


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


def test_like_meanings_have_like_vectors(model: MiniLM) -> None:
    cat, kitten, tax = model.embed_now(
        ["a cat sat on the mat", "a kitten rests on a rug", "the quarterly tax report is due"]
    )
    assert cat @ kitten > 0.5
    assert cat @ tax < 0.2


def test_a_batch_gives_what_single_texts_give(model: MiniLM) -> None:
    texts = ["yes", "We will meet at the station on Friday, after work.", "word " * 300, "", "日本語", "a\0b", "👩‍👧"]
    together = model.embed_now(texts)
    alone = [model.embed_now([text])[0] for text in texts]
    for one, other in zip(together, alone, strict=True):
        assert one.shape == (model.dimensions,)
        assert np.isclose(np.linalg.norm(one), 1.0, atol=1e-5)
        assert one @ other > 0.99


def test_a_long_text_is_read_to_the_model_s_limit(model: MiniLM) -> None:
    long = "The harbour was quiet. " * 20_000
    first, cut = model.embed_now([long, long[:4_000]])
    assert first @ cut > 0.999


async def test_no_texts_no_vectors(model: MiniLM) -> None:
    assert await model.embed([]) == []
    assert await HashEmbedder().embed([]) == []


def test_batches_hold_every_text_once_and_stay_small() -> None:
    lengths = [5, 256, 7, 256, 9, 3] * 20
    made = list(batches(lengths))
    assert sorted(place for batch in made for place in batch) == list(range(len(lengths)))
    assert all(len(batch) <= BATCH_TEXTS for batch in made)
    assert all(max(lengths[i] for i in batch) * len(batch) <= max(BATCH_PIECES, 256) for batch in made)


async def test_texts_that_share_words_are_alike_to_the_stand_in() -> None:
    a, b, c = await HashEmbedder().embed(["ship on friday", "we ship on friday", "a blue whale"])
    assert a @ b > a @ c
