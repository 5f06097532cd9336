"""The directions of the frames' examples: kept in a file where there can be one, made again where not."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from newton.cognition.exemplars import directions
from newton.content.frames import load_frames
from newton.providers.embedding import Vector
from newton.providers.offline import HashEmbedder

FRAMES = load_frames()


class Counting(HashEmbedder):
    """Knows how many texts it was asked for."""

    asked = 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.asked += len(texts)
        return await super().embed(texts)


async def test_they_are_made_once(tmp_path: Path) -> None:
    embedder = Counting()
    first = await directions(FRAMES, embedder, cache=tmp_path)
    asked = embedder.asked
    second = await directions(FRAMES, embedder, cache=tmp_path)
    assert embedder.asked == asked > 0
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert len(files(tmp_path)) == 1


def files(cache: Path) -> list[Path]:
    return list(cache.iterdir())


def truncated(cache: Path) -> None:
    for file in files(cache):
        file.write_bytes(file.read_bytes()[:100])


def emptied(cache: Path) -> None:
    for file in files(cache):
        file.write_bytes(b"")


@pytest.mark.parametrize("spoil", [truncated, emptied])
async def test_a_spoilt_file_is_made_again(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    first = await directions(FRAMES, HashEmbedder(), cache=tmp_path)
    spoil(tmp_path)
    embedder = Counting()
    second = await directions(FRAMES, embedder, cache=tmp_path)
    assert embedder.asked > 0
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert await directions(FRAMES, embedder, cache=tmp_path)


@pytest.mark.parametrize("below", ["cache", "cache/deeper"])
async def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path: Path, below: str) -> None:
    (tmp_path / "cache").write_text("in the way", encoding="utf-8")
    made = await directions(FRAMES, HashEmbedder(), cache=tmp_path / below)
    assert made.keys() == {name for name, frame in FRAMES.items() if frame.examples}


async def test_a_file_that_cannot_be_put_in_its_place_is_not_left_behind(tmp_path: Path) -> None:
    await directions(FRAMES, HashEmbedder(), cache=tmp_path)
    (file,) = files(tmp_path)
    file.unlink()
    file.mkdir()
    assert await directions(FRAMES, HashEmbedder(), cache=tmp_path)
    assert files(tmp_path) == [file]
