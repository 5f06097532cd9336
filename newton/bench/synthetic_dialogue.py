"""Synthetic dialogue: real words with a Zipf-Mandelbrot distribution, deterministic for a seed."""

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from newton.providers.minilm import VOCABULARY

VOCABULARY_SIZE = 6_000
MANDELBROT_SHIFT = 2.7  # Mandelbrot's shift: the few commonest words are less common than 1/rank says
MESSAGES_PER_SESSION = 20
SPEAKERS = (("user", "Ana"), ("assistant", "Ben"))
FIRST_MESSAGE_AT = datetime(2025, 1, 1, 9, tzinfo=UTC)
MIN_WORDS, MEDIAN_WORDS, MAX_WORDS = 4, 14, 45


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticDialogue:
    """Lines of an import file, and questions about some of them."""

    lines: tuple[str, ...]
    questions: tuple[str, ...]


def generate_dialogue(lines: int, questions: int, *, seed: int) -> SyntheticDialogue:
    rng, words = np.random.default_rng(seed), load_vocabulary()
    weights = _zipf_weights(len(words))
    said = [_sample_words(rng, weights, _sample_length(rng)) for _ in range(lines)]
    about = [said[int(place)] for place in rng.random(questions) * lines]
    return SyntheticDialogue(
        lines=tuple(_make_import_line(i, _make_sentence(words, line)) for i, line in enumerate(said)),
        questions=tuple(_make_question(words, line) for line in about),
    )


def load_vocabulary() -> list[str]:
    """Return the whole words of the model's vocabulary, most frequent first."""
    entries = VOCABULARY.read_text(encoding="utf-8").splitlines()
    return [entry for entry in entries if entry.isascii() and entry.isalpha() and len(entry) > 1][:VOCABULARY_SIZE]


def _zipf_weights(number: int) -> NDArray[np.float64]:
    weights = 1 / (np.arange(1, number + 1) + MANDELBROT_SHIFT)
    return weights / weights.sum()


def _sample_length(rng: Generator) -> int:
    return min(max(int(MEDIAN_WORDS * math.exp(rng.normal(0, 0.5))), MIN_WORDS), MAX_WORDS)


def _sample_words(rng: Generator, weights: NDArray[np.float64], number: int) -> list[int]:
    return rng.choice(len(weights), size=number, p=weights).tolist()


def _make_sentence(vocabulary: list[str], line: list[int]) -> str:
    return " ".join(vocabulary[i] for i in line).capitalize() + "."


def _make_question(vocabulary: list[str], line: list[int]) -> str:
    """Return a question with the rarest words of a line."""
    return f"What did Ana say about {' '.join(vocabulary[i] for i in sorted(set(line))[-5:])}?"


def _make_import_line(number: int, content: str) -> str:
    role, name = SPEAKERS[number % len(SPEAKERS)]
    session = number // MESSAGES_PER_SESSION
    at = FIRST_MESSAGE_AT + timedelta(hours=session, seconds=30 * (number % MESSAGES_PER_SESSION))
    given = {"type": "message", "session": f"s{session}", "ref": f"m{number}", "role": role, "name": name}
    return json.dumps({**given, "content": content, "at": at.isoformat()})
