"""Training of the frame classifier, cached in a file per set of examples and embedding model; its languages."""

import asyncio
import contextlib
import functools
import hashlib
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from newton.cognition.frames.classifier import FrameClassifier, FrameExample, Vector, train_classifier
from newton.cognition.frames.input_features import FeatureExtractor, build_extractor
from newton.content.frames import Frame, load_frame_languages
from newton.content.package_data import data_folder
from newton.errors import ProviderError
from newton.ids import new_id
from newton.text.greetings import strip_greeting
from newton.text.languages import detect_languages, list_detection_weights

if TYPE_CHECKING:
    from newton.providers.embedding import Embedder

TRAINING_VERSION = "2"  # bump when reading or training of the examples changes
NO_EMBEDDER = "none"
ENGLISH_MODELS = ("all-MiniLM-",)  # prefixes of the identities of embedding models that only know English
ARRAY_FIELDS = (
    "idf",
    "ngram_weights",
    "form_weights",
    "embedding_weights",
    "other_embedding_weights",
    "intercept",
    "mean_vector",
    "principal_axes",
    "example_coordinates",
)
LIST_FIELDS = ("frames", "vocabulary", "form_vocabulary")

Arrays = Mapping[str, NDArray[Any]]  # contents of an npz file, of mixed dtypes
FrameTexts = tuple[tuple[str, tuple[str, ...]], ...]  # the name of each frame with its examples, by name


class ShippedClassifier(NamedTuple):
    """The examples of frames, the name of the file for their classifier, and the classifier if Newton ships it."""

    examples: list[FrameExample]
    name: str
    classifier: FrameClassifier | None


async def load_or_train(
    frames: Mapping[str, Frame], embedder: "Embedder | None", *, cache: Path
) -> FrameClassifier | None:
    """Return the frame classifier for these frames; None if no frame has an example.

    Newton ships a classifier for its own frames. For other frames, one is trained at first use, which takes up to a
    minute, and cached. If the embedder fails, it is trained without embeddings.
    """
    identity = embedder.identity if embedder else NO_EMBEDDER
    examples, name, shipped = _find_shipped(_list_texts(frames), identity)
    if not examples:
        return None
    if found := shipped or _read_file(cache / name, examples):
        return found
    cores = [FrameExample(example.frame, strip_greeting(example.text)) for example in examples]
    try:
        vectors = await _embed_examples(cores, embedder)
    except ProviderError:
        return await load_or_train(frames, None, cache=cache)
    train = functools.partial(train_classifier, is_multilingual=knows_languages(identity))
    trained = await asyncio.to_thread(train, cores, vectors, load_extractor())
    _write_file(cache / name, trained)
    return replace(trained, examples=examples)


def knows_languages(identity: str) -> bool:
    """Return True if `identity` names an embedding model that can compare texts in different languages."""
    return identity != NO_EMBEDDER and not identity.startswith(ENGLISH_MODELS)


@functools.cache
def load_extractor() -> FeatureExtractor:
    """Return the extractor of features for the languages that ship with Newton."""
    return build_extractor(load_frame_languages())


def list_examples(frames: Mapping[str, Frame]) -> list[FrameExample]:
    """Return the examples of all frames in a fixed order."""
    return _build_examples(_list_texts(frames))


def _list_texts(frames: Mapping[str, Frame]) -> FrameTexts:
    return tuple((name, frames[name].examples) for name in sorted(frames))


def _build_examples(texts: FrameTexts) -> list[FrameExample]:
    return [FrameExample(name, text) for name, examples in texts for text in examples]


def build_file_name(examples: Sequence[FrameExample], identity: str) -> str:
    """Return the name of the file for a classifier of these examples: a hash of all that its training depends on."""
    languages = (language.version_hash for language in load_frame_languages().values())
    texts = (f"{example.frame}\1{example.text}" for example in examples)
    key = "\0".join([TRAINING_VERSION, identity, *list_detection_weights(), *languages, *texts])
    return f"learnt-{hashlib.sha256(key.encode()).hexdigest()[:16]}.npz"


async def _embed_examples(examples: Sequence[FrameExample], embedder: "Embedder | None") -> list[Vector]:
    """Return the embeddings of the examples, one request per frame, because endpoints limit the batch size."""
    if embedder is None:
        return []
    names = dict.fromkeys(example.frame for example in examples)
    each = [await embedder.embed([e.text for e in examples if e.frame == name]) for name in names]
    return [vector for vectors in each for vector in vectors]


@functools.lru_cache(maxsize=2)  # with the embedder and without
def _find_shipped(texts: FrameTexts, identity: str) -> ShippedClassifier:
    """Return the examples, the name of the file for their classifier, and this classifier if Newton ships it.

    Cached, because it is called with the same texts for each agent that is opened, and hashing thousands of examples
    is slow.
    """
    examples = _build_examples(texts)
    name = build_file_name(examples, identity)
    found = _read_file(data_folder("frames") / name, examples)
    return ShippedClassifier(examples, name, found and replace(found, is_shipped=True))


def _read_file(path: Path, examples: Sequence[FrameExample]) -> FrameClassifier | None:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return _unpack_arrays(arrays, examples)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return None


def _unpack_arrays(arrays: Arrays, examples: Sequence[FrameExample]) -> FrameClassifier:
    frames, vocabulary, form = (bytes(arrays[name]).decode().split("\n") for name in LIST_FIELDS)
    numbers: dict[str, Any] = {name: arrays[name].astype(np.float32) for name in ARRAY_FIELDS}
    return FrameClassifier(
        frames=tuple(frames),
        vocabulary={ngram: n for n, ngram in enumerate(vocabulary)},
        form_vocabulary={name: n for n, name in enumerate(form)},
        examples=examples,
        extractor=load_extractor(),
        **numbers,
    )


def _pack_arrays(trained: FrameClassifier) -> dict[str, NDArray[Any]]:
    """Return the arrays of the classifier in half precision; the example coordinates are scaled to int8."""
    listed = {name: "\n".join(getattr(trained, name)) for name in LIST_FIELDS}
    numbers = {name: getattr(trained, name).astype(np.float16) for name in ARRAY_FIELDS}
    largest = max(float(np.abs(trained.example_coordinates).max(initial=0.0)), 1e-9)
    numbers["example_coordinates"] = (trained.example_coordinates * (127 / largest)).round().astype(np.int8)
    return {**{name: np.frombuffer(text.encode(), np.uint8) for name, text in listed.items()}, **numbers}


def _write_file(path: Path, trained: FrameClassifier) -> None:
    """Write the classifier to a file, atomically, because other processes read it.

    Errors of the file system are ignored.
    """
    partial = path.with_name(f"{path.stem}-{new_id()}.part.npz")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(partial, allow_pickle=False, **_pack_arrays(trained))
        partial.replace(path)
    with contextlib.suppress(OSError):
        partial.unlink(missing_ok=True)


MIN_EXAMPLES = 3  # of a frame in a language


@dataclass(frozen=True, slots=True)
class LanguageCoverage:
    """The codes of the languages in which all frames have examples, and by frame those in which it has too few."""

    languages: tuple[str, ...]
    missing: Mapping[str, tuple[str, ...]]


def measure_coverage(frames: Mapping[str, Frame], languages: Iterable[str]) -> LanguageCoverage:
    """Return in which of the languages, given by their codes, the frames are chosen."""
    codes = tuple(languages)
    examples = [(frame.name, text) for frame in frames.values() for text in frame.examples]
    counts = Counter((name, code) for name, text in examples for code in detect_languages(text)[:1])
    missing = {name: tuple(code for code in codes if counts[name, code] < MIN_EXAMPLES) for name in frames}
    return LanguageCoverage(
        languages=tuple(code for code in codes if not any(code in lacking for lacking in missing.values())),
        missing={name: lacking for name, lacking in missing.items() if lacking},
    )
