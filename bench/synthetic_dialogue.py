"""Synthetic dialogue of real words in a Zipf-Mandelbrot distribution. The same seed gives the same dialogue."""

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from newton.providers.minilm import VOCABULARY

VOCABULARY_SIZE = 6_000
MANDELBROT_SHIFT = 2.7  # makes the most frequent words less frequent than 1/rank
MESSAGES_PER_SESSION = 20
SPEAKERS = (("user", "Ana"), ("assistant", "Ben"))
FIRST_MESSAGE_AT = datetime(2025, 1, 1, 9, tzinfo=UTC)
MIN_WORDS, MEDIAN_WORDS, MAX_WORDS = 4, 14, 45


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticDialogue:
    """The lines of an import file, and questions about some of them."""

    lines: tuple[str, ...]
    questions: tuple[str, ...]


def generate_dialogue(lines: int, questions: int, *, seed: int) -> SyntheticDialogue:
    """Generate lines of dialogue, and questions that contain the rarest words of lines chosen at random."""
    rng, vocabulary = np.random.default_rng(seed), load_vocabulary()
    weights = 1 / (np.arange(1, len(vocabulary) + 1) + MANDELBROT_SHIFT)
    weights /= weights.sum()
    ranks = [_sample_ranks(rng, weights) for _ in range(lines)]
    sentences = [" ".join(vocabulary[rank] for rank in line).capitalize() + "." for line in ranks]
    rarest = [sorted(set(ranks[int(position)]))[-5:] for position in rng.random(questions) * lines]
    return SyntheticDialogue(
        lines=tuple(_make_import_line(number, sentence) for number, sentence in enumerate(sentences)),
        questions=tuple(f"What did Ana say about {' '.join(vocabulary[rank] for rank in some)}?" for some in rarest),
    )


def load_vocabulary() -> list[str]:
    """Return the whole words in the vocabulary of the embedding model, most frequent first."""
    entries = VOCABULARY.read_text(encoding="utf-8").splitlines()
    return [entry for entry in entries if entry.isascii() and entry.isalpha() and len(entry) > 1][:VOCABULARY_SIZE]


def _sample_ranks(rng: Generator, weights: NDArray[np.float64]) -> list[int]:
    """Draw the words of one line, as their ranks by frequency."""
    length = min(max(int(MEDIAN_WORDS * math.exp(rng.normal(0, 0.5))), MIN_WORDS), MAX_WORDS)
    return rng.choice(len(weights), size=length, p=weights).tolist()


def _make_import_line(number: int, content: str) -> str:
    role, name = SPEAKERS[number % len(SPEAKERS)]
    session = number // MESSAGES_PER_SESSION
    at = FIRST_MESSAGE_AT + timedelta(hours=session, seconds=30 * (number % MESSAGES_PER_SESSION))
    line = {"type": "message", "session": f"s{session}", "ref": f"m{number}", "role": role, "name": name}
    return json.dumps({**line, "content": content, "at": at.isoformat()})
