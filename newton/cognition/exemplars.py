"""What the frames' examples teach, learnt once and kept in a file: only examples and model change it."""

import asyncio
import contextlib
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from newton.cognition import likeness
from newton.cognition.likeness import Example, Likeness, Vector
from newton.cognition.opening import substance
from newton.content.frames import Frame
from newton.content.shipped import shipped
from newton.errors import ProviderError
from newton.ids import new_id

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder

METHOD = "1"  # another one for each change of how the examples are read or learnt from
WORDS_ALONE = "none"
PARTS = ("rarity", "by_words", "by_meaning", "constant", "middle", "axes", "places")

Arrays = Mapping[str, NDArray[Any]]  # of several types: it is what a file holds


async def learnt(frames: Mapping[str, Frame], embedder: "Embedder | None", *, cache: Path) -> Likeness | None:
    """What tells the frames apart; None when no frame has an example.

    For the frames that ship it ships too. Others are learnt at their first use, which takes some seconds. When the
    embedder does not answer, it is learnt from words alone.
    """
    told = examples_of(frames)
    if not told:
        return None
    name = file_name(told, embedder.identity if embedder else WORDS_ALONE)
    for folder in (shipped("frames"), cache):
        if kept := _read(folder / name, told):
            return kept
    cores = [Example(example.frame, substance(example.text)) for example in told]
    try:
        vectors = await _vectors(cores, embedder)
    except ProviderError:
        return await learnt(frames, None, cache=cache)
    made = await asyncio.to_thread(likeness.learn, cores, vectors)
    _write(cache / name, made)
    return replace(made, examples=told)


def examples_of(frames: Mapping[str, Frame]) -> list[Example]:
    """What is learnt from, always in the same order."""
    return [Example(name, text) for name in sorted(frames) for text in frames[name].examples]


def file_name(told: Sequence[Example], identity: str) -> str:
    whole = "\0".join([METHOD, identity, *(f"{example.frame}\1{example.text}" for example in told)])
    return f"learnt-{hashlib.sha256(whole.encode()).hexdigest()[:16]}.npz"


async def _vectors(told: Sequence[Example], embedder: "Embedder | None") -> list[Vector]:
    """One by one frame: an endpoint takes so many texts at a time."""
    if embedder is None:
        return []
    names = dict.fromkeys(example.frame for example in told)
    each = [await embedder.embed([e.text for e in told if e.frame == name]) for name in names]
    return [vector for vectors in each for vector in vectors]


def _read(path: Path, told: Sequence[Example]) -> Likeness | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return _unpacked(kept, told)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def _unpacked(kept: Arrays, told: Sequence[Example]) -> Likeness:
    frames, vocabulary = (bytes(kept[name]).decode().split("\n") for name in ("frames", "vocabulary"))
    numbers = {name: kept[name].astype(np.float32) for name in PARTS}
    known = {cue: n for n, cue in enumerate(vocabulary)}
    return Likeness(frames=tuple(frames), vocabulary=known, examples=told, **numbers)


def _packed(made: Likeness) -> dict[str, NDArray[Any]]:
    """In half precision, the places of the examples in whole hundredths of the farthest."""
    listed = {"frames": "\n".join(made.frames), "vocabulary": "\n".join(made.vocabulary)}
    numbers = {name: getattr(made, name).astype(np.float16) for name in PARTS}
    farthest = max(float(np.abs(made.places).max(initial=0.0)), 1e-9)
    numbers["places"] = (made.places * (127 / farthest)).round().astype(np.int8)
    return {**{name: np.frombuffer(text.encode(), np.uint8) for name, text in listed.items()}, **numbers}


def _write(path: Path, made: Likeness) -> None:
    """Whole or not at all: another process may read it right now. Where it cannot be written, it is made each time."""
    partial = path.with_name(f"{path.stem}-{new_id()}.part.npz")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(partial, allow_pickle=False, **_packed(made))
        partial.replace(path)
    with contextlib.suppress(OSError):
        partial.unlink(missing_ok=True)
