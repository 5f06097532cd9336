"""What the frames' examples teach: shipped for the frames that ship, else learnt once and kept in a file."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from newton.cognition.frames.classifier import FrameClassifier
from newton.cognition.frames.training import NO_EMBEDDER, build_file_name, list_examples, load_or_train
from newton.content.frames import Frame, load_frames
from newton.content.package_data import data_folder
from newton.errors import ProviderError
from newton.providers.embedding import Vector
from newton.providers.fakes import HashEmbedder
from newton.providers.minilm import MiniLM

SHIPPED = load_frames()
# A few examples of each: learning from all of them takes seconds.
FRAMES: dict[str, Frame] = {
    name: frame.model_copy(update={"examples": frame.examples[:6]}) for name, frame in SHIPPED.items()
}


class Counting(HashEmbedder):
    """Knows how many texts it was asked for."""

    asked = 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked += len(texts)
        return await super().embed(texts)


class Silent(HashEmbedder):
    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise ProviderError("The embedding endpoint does not answer.", hint="Start it.")


async def made(embedder: HashEmbedder | None, cache: Path) -> FrameClassifier:
    found = await load_or_train(FRAMES, embedder, cache=cache)
    assert found
    return found


def alike(one: FrameClassifier, other: FrameClassifier) -> bool:
    """Up to what half precision loses."""
    text = "Should we sell the barn?"
    scores = [
        np.array(list(each.predict_log_proba(each.extractor.extract(text), each.mean_vector).values()))
        for each in (one, other)
    ]
    return np.allclose(scores[0], scores[1], atol=0.05)


async def test_what_ships_is_used_as_it_is(tmp_path: Path) -> None:
    told = list_examples(SHIPPED)
    wanted = {build_file_name(told, identity) for identity in (MiniLM.identity, NO_EMBEDDER)}
    found = {path.name for path in data_folder("frames").glob("learnt-*.npz")}
    assert found == wanted, "run scripts/fit-frames"
    # what ships is used as it is
    found = await load_or_train(SHIPPED, None, cache=tmp_path)
    assert found
    assert set(found.frames) == set(SHIPPED)
    assert files(tmp_path) == []


async def test_examples_are_learnt_once_and_another_example_anew(tmp_path: Path) -> None:
    embedder = Counting()
    first = await made(embedder, tmp_path)
    asked = embedder.asked
    second = await made(embedder, tmp_path)
    assert embedder.asked == asked > 0
    assert alike(first, second)
    assert first.vocabulary == second.vocabulary
    assert len(files(tmp_path)) == 1
    # it may know all languages, as every model but the default one
    assert np.array_equal(second.embedding_weights, second.other_embedding_weights)
    # another example is another lesson
    embedder = Counting()
    await made(embedder, tmp_path)
    asked = embedder.asked
    task = FRAMES["task"]
    more = task.model_copy(update={"examples": (*task.examples, "Polish the brass.")})
    await load_or_train({**FRAMES, "task": more}, embedder, cache=tmp_path)
    assert embedder.asked > asked


async def test_without_an_embedder_or_examples_the_words_are_left(tmp_path: Path) -> None:
    found = await made(Silent(), tmp_path)
    assert len(found.embedding_weights) == 0
    assert found.vocabulary == (await made(None, tmp_path)).vocabulary
    bare = {name: frame.model_copy(update={"examples": ()}) for name, frame in FRAMES.items()}
    assert await load_or_train(bare, HashEmbedder(), cache=tmp_path) is None


def files(cache: Path) -> list[Path]:
    return list(cache.iterdir())


def truncated(cache: Path) -> None:
    for file in files(cache):
        file.write_bytes(file.read_bytes()[:100])


def emptied(cache: Path) -> None:
    for file in files(cache):
        file.write_bytes(b"")


def lacking(cache: Path) -> None:
    for file in files(cache):
        np.savez(file, frames=np.zeros(1))


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [truncated, emptied, lacking])
async def test_a_spoilt_file_is_made_again(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    first = await made(HashEmbedder(), tmp_path)
    spoil(tmp_path)
    embedder = Counting()
    second = await made(embedder, tmp_path)
    assert embedder.asked > 0
    assert alike(first, second)


@pytest.mark.parametrize("below", ["cache", "cache/deeper"])
async def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path: Path, below: str) -> None:
    (tmp_path / "cache").write_text("in the way", encoding="utf-8")
    assert set((await made(HashEmbedder(), tmp_path / below)).frames) == set(FRAMES)


async def test_a_file_that_cannot_be_put_in_its_place_is_not_left_behind(tmp_path: Path) -> None:
    await made(HashEmbedder(), tmp_path)
    (file,) = files(tmp_path)
    file.unlink()
    file.mkdir()
    assert await made(HashEmbedder(), tmp_path)
    assert files(tmp_path) == [file]
    shutil.rmtree(file)
