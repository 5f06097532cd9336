"""The direction of each frame, made from its examples once and kept in a file: only frames and model change it."""

import contextlib
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from newton.cognition import framing
from newton.cognition.framing import Vector
from newton.cognition.opening import substance
from newton.content.frames import Frame
from newton.errors import ProviderError
from newton.ids import new_id

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder


async def directions(frames: Mapping[str, Frame], embedder: "Embedder | None", *, cache: Path) -> dict[str, Vector]:
    """A direction for each frame that has examples. Empty when nobody can embed: then patterns decide alone."""
    told = {name: tuple(map(substance, frame.examples)) for name, frame in frames.items() if frame.examples}
    if embedder is None or not told:
        return {}
    path = cache / f"frames-{_fingerprint(embedder.identity, told)}.npz"
    if kept := _read(path):
        return kept
    try:
        made = framing.directions({name: await embedder.embed(list(texts)) for name, texts in told.items()})
    except ProviderError:
        return {}
    _write(path, made)
    return made


def _fingerprint(identity: str, told: Mapping[str, tuple[str, ...]]) -> str:
    whole = "\0".join(
        [
            identity,
            f"ridge {framing.RIDGE}",
            *(f"{name}\1{text}" for name, texts in sorted(told.items()) for text in texts),
        ]
    )
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
