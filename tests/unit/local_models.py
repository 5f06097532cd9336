"""The models that ship with Newton, loaded once for all tests of a process."""

import asyncio
from functools import cache
from pathlib import Path

from newton.cognition.frames.classifier import FrameClassifier
from newton.cognition.frames.training import load_or_train
from newton.content.frames import load_frames
from newton.providers.embedding import Vector
from newton.providers.minilm import MiniLM


@cache
def load_minilm() -> MiniLM:
    return MiniLM()


@cache
def load_classifier() -> FrameClassifier:
    made = asyncio.run(load_or_train(load_frames(), load_minilm(), cache=Path("nowhere")))
    assert made
    return made


@cache
def embed(*texts: str) -> dict[str, Vector]:
    """Return the vectors of the texts by text."""
    return dict(zip(texts, load_minilm().embed_now(texts), strict=True)) if texts else {}
