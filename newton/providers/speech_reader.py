"""The local reader of messages, offline and on the CPU: what a person does with each part of a message.

It is a transformer whose layers stand in part in the file of the embedding model (`newton.providers.minilm`).
`scripts/fit-speech-reader` trains it on messages of people who have not seen the code (`tests/data/speech`).
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

from newton.providers.minilm import CLS, DATA, SEP, build_tokenizer, clean_text, load_layers, load_word_table
from newton.providers.onnx import RUN_OPTIONS

SpeechAct = Literal[
    "told", "talk", "ask", "unreal", "correct", "veil", "next", "session", "lift", "last", "topic"
]  # fmt: skip
ACTS: tuple[SpeechAct, ...] = get_args(SpeechAct)
# Words of the context that a message corrects, its words that are right instead, and words of the context that it wants
# memory to lose.
MARKS = ("wrong", "right", "gone")
SPEECH_MODEL = DATA / "speech_reader.onnx"
# Reads wishes over memory behind the statements before them. Taught that too, the other marks corrections less exactly.
WISH_MODEL = DATA / "wish_reader.onnx"
MAX_CONTEXT_CHARS = 240  # of what the assistant said before a message, and of the person's message before it
MAX_CONTEXT_PIECES, MAX_TEXT_PIECES = 96, 160
MAX_TOLD_CHARS, MAX_TOLD_PIECES = 600, 160  # of the statements behind which a message is read
BETWEEN = " | "  # statements
MAX_GAP = 2  # unmarked word pieces within a marked part
WINDOW_STEP, WINDOW_EDGE = 120, 20  # word pieces from window to window, and those that a window reads for context only


class SpeechReading(NamedTuple):
    """The log odds of each act for each word piece of a message, with the offsets of the pieces."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    odds: NDArray[np.float32]

    def rate(self, start: int, end: int) -> dict[SpeechAct, float]:
        """Return the probability of each act for a part of the message; no acts for a part without words."""
        chosen = self.odds[(self.starts < end) & (self.ends > start)]
        if not len(chosen):
            return {}
        odds = chosen.mean(axis=0)
        shares = np.exp(odds - odds.max())
        return dict(zip(ACTS, (float(one) for one in shares / shares.sum()), strict=True))


class MarkedPart(NamedTuple):
    """A part of a text that has a mark, and the probability of the mark."""

    start: int
    end: int
    probability: float


class MessageComparison(NamedTuple):
    """The reading of a message behind a statement, the words of the statement that it corrects, and the right ones."""

    reading: SpeechReading
    wrong: MarkedPart | None
    right: MarkedPart | None


class MeantWords(NamedTuple):
    """The probability, for each word piece of a statement, that a message wants memory to lose it, with the offsets."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    rates: NDArray[np.float32]

    def rate(self, start: int, end: int) -> float:
        """Return how surely a part of the statement is meant: the mean of its pieces, 0 for one that was not read."""
        chosen = self.rates[(self.starts < end) & (self.ends > start)]
        return float(chosen.mean()) if len(chosen) else 0.0


class MeantReading(NamedTuple):
    """The reading of a message behind statements, and for each statement which words the message means to be lost."""

    reading: SpeechReading
    meant: Sequence[MeantWords]


class SpeechReader:
    """A local model that reads messages. Loading takes 0.1 s, a message 3 to 8 ms of one core."""

    def __init__(self, model: Path = SPEECH_MODEL) -> None:
        """Load a trained model. Raises ProviderError if its file or that of the embedding model is damaged."""
        self._words = load_word_table()
        self._tokenizer = build_tokenizer()
        self._tokenizer.no_truncation()
        self._session = load_layers(model)

    def read(self, text: str, context: str = "") -> SpeechReading:
        """Return the reading of a message; `context` is what stands before it.

        Each window is read alone: the scales of the quantization are those of a batch.
        """
        before, own = self._encode(context, text)
        windows = range(0, max(len(own.ids) - WINDOW_EDGE, 1), WINDOW_STEP)
        parts = [
            self._run(before.ids[-MAX_CONTEXT_PIECES:], own.ids[at : at + MAX_TEXT_PIECES])[1][
                (WINDOW_EDGE if at else 0) :
            ][: WINDOW_STEP + (0 if at else WINDOW_EDGE)]
            for at in windows
        ]
        offsets = _list_offsets(own, sum(map(len, parts)))
        return SpeechReading(offsets[:, 0], offsets[:, 1], np.concatenate(parts)[:, : len(ACTS)])

    def compare(self, statement: str, message: str) -> MessageComparison:
        """Return what a message corrects in a statement made before it. Of long texts, the beginning is read."""
        before, own = self._encode(statement, message)
        wrong, right = self._run(before.ids[:MAX_CONTEXT_PIECES], own.ids[:MAX_TEXT_PIECES])
        offsets = _list_offsets(own, len(right))
        return MessageComparison(
            SpeechReading(offsets[:, 0], offsets[:, 1], right[:, : len(ACTS)]),
            _find_marked(before.offsets, wrong[:, len(ACTS) + MARKS.index("wrong")], statement),
            _find_marked(own.offsets, right[:, len(ACTS) + MARKS.index("right")], message),
        )

    def find_meant(self, statements: Sequence[str], message: str) -> MeantReading:
        """Return the reading of a message behind statements, and which of their words it wants memory to lose.

        Of long statements the beginning is read, and of many the last.
        """
        context, starts = join_statements(statements)
        before, own = self._encode(context, message)
        told, odds = self._run(before.ids[:MAX_TOLD_PIECES], own.ids[:MAX_TEXT_PIECES])
        places, offsets = _list_offsets(before, len(told)), _list_offsets(own, len(odds))
        rates = np.asarray(1 / (1 + np.exp(-told[:, len(ACTS) + MARKS.index("gone")])), dtype=np.float32)
        meant = list[MeantWords]()
        for start, text in zip(starts, statements, strict=True):
            first = len(context) if start is None else start
            is_own = (places[:, 0] >= first) & (places[:, 1] <= first + min(len(text), MAX_CONTEXT_CHARS))
            meant.append(MeantWords(places[is_own, 0] - first, places[is_own, 1] - first, rates[is_own]))
        return MeantReading(SpeechReading(offsets[:, 0], offsets[:, 1], odds[:, : len(ACTS)]), meant)

    def _encode(self, *texts: str) -> list[Encoding]:
        return self._tokenizer.encode_batch([clean_text(one) for one in texts], add_special_tokens=False)

    def _run(self, before: list[int], pieces: list[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the log odds of acts and marks for each word piece of the context, and of the text."""
        ids = np.array([[CLS, *before, SEP, *pieces, SEP]])
        types = np.array([[0] * (len(before) + 2) + [1] * (len(pieces) + 1)])
        inputs = {
            "word_vectors": self._words.take_vectors(ids), "attention_mask": np.ones_like(ids), "token_type_ids": types
        }  # fmt: skip
        odds = np.asarray(self._session.run(None, inputs, RUN_OPTIONS)[0])[0]
        return odds[1 : len(before) + 1], odds[len(before) + 2 : -1]


def _list_offsets(encoded: Encoding, count: int) -> NDArray[np.int64]:
    return np.array(encoded.offsets or np.zeros((0, 2)), dtype=np.int64)[:count]


def _find_marked(offsets: Sequence[tuple[int, int]], odds: NDArray[np.float32], text: str) -> MarkedPart | None:
    """Return the whole words from the first to the last marked piece around the surest one."""
    if not len(odds) or odds.max() < 0:
        return None
    first = last = int(odds.argmax())
    while first and odds[max(first - MAX_GAP, 0) : first].max() > 0:
        first -= 1
    while last + 1 < len(odds) and odds[last + 1 : last + 1 + MAX_GAP].max() > 0:
        last += 1
    start, end = offsets[first][0], offsets[last][1]
    while start and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
        end += 1
    chosen = odds[first : last + 1]
    return MarkedPart(start, end, float((1 / (1 + np.exp(-chosen[chosen > 0]))).mean()))


def join_statements(statements: Sequence[str]) -> tuple[str, list[int | None]]:
    """Return the beginnings of the last statements as one text, and where each begins in it.

    >>> join_statements(["Ann lives in Ghent.", "She rides."])
    ('Ann lives in Ghent. | She rides.', [0, 22])
    """
    parts, size = list[str](), 0
    for one in reversed(statements):
        part = re.sub(r"\s", " ", one[:MAX_CONTEXT_CHARS])
        size += len(part) + len(BETWEEN)
        if parts and size > MAX_TOLD_CHARS:
            break
        parts.insert(0, part)
    starts = [sum(len(one) + len(BETWEEN) for one in parts[:n]) for n in range(len(parts))]
    return BETWEEN.join(parts), [*[None] * (len(statements) - len(parts)), *starts]


@cache
def load_speech_reader() -> SpeechReader:
    """Return the reader of messages, loaded once. Raises ProviderError if a file is damaged."""
    return SpeechReader()


@cache
def load_wish_reader() -> SpeechReader:
    """Return the reader of wishes over memory, loaded once. Raises ProviderError if a file is damaged."""
    return SpeechReader(WISH_MODEL)


@lru_cache(maxsize=512)  # each message of a session is read again with those behind it
def read_speech(text: str, assistant: str = "", earlier: str = "") -> SpeechReading:
    """Return the reading of a message behind what the assistant, and before that the person, said."""
    return load_speech_reader().read(text, "\n".join(one[-MAX_CONTEXT_CHARS:] for one in (assistant, earlier)))


@lru_cache(maxsize=64)
def read_meant(statements: tuple[str, ...], message: str) -> MeantReading:
    """Return the reading of a message behind statements of its person, and which of their words it wants to be lost."""
    return load_wish_reader().find_meant(statements, message)
