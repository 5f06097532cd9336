"""The direction of each frame's examples, embedded once and kept in a file: they change only with frames or model."""

import contextlib
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from newton.cognition.framing import Vector, centroid
from newton.content.frames import Frame
from newton.errors import ProviderError
from newton.ids import new_id

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder


async def centroids(frames: Mapping[str, Frame], embedder: "Embedder | None", *, cache: Path) -> dict[str, Vector]:
    """A unit vector for each frame that has examples. Empty when nobody can embed: then patterns decide alone."""
    told = {name: frame.examples for name, frame in frames.items() if frame.examples}
    if embedder is None or not told:
        return {}
    path = cache / f"frames-{_fingerprint(embedder.identity, told)}.npz"
    if kept := _read(path):
        return kept
    try:
        made = {name: centroid(await embedder.embed(list(examples))) for name, examples in told.items()}
    except ProviderError:
        return {}
    _write(path, made)
    return made


def _fingerprint(identity: str, told: Mapping[str, tuple[str, ...]]) -> str:
    whole = "\0".join([identity, *(f"{name}\1{text}" for name, texts in sorted(told.items()) for text in texts)])
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _read(path: Path) -> dict[str, Vector]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return {name: kept[name] for name in kept.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile):
        return {}


def _write(path: Path, made: Mapping[str, Vector]) -> None:
    """Whole or not at all: another process may read it right now. Where it cannot be written, it is made each time."""
    partial = path.with_name(f"{path.stem}-{new_id()}.part.npz")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(partial, allow_pickle=False, **made)
        partial.replace(path)
    with contextlib.suppress(OSError):
        partial.unlink(missing_ok=True)
