"""Made-up dialogue: real words in the proportions of real talk, and the same for the same seed."""

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from newton.providers.minilm import VOCABULARY

WORDS = 6_000
FLATTENED = 2.7  # Mandelbrot's shift: the few commonest words are less common than 1/rank says
LINES_A_SESSION = 20
SPEAKERS = (("user", "Ana"), ("assistant", "Ben"))
BEGIN = datetime(2025, 1, 1, 9, tzinfo=UTC)
SHORTEST, MIDDLE, LONGEST = 4, 14, 45


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Lines of an import file, and questions about some of them."""

    lines: tuple[str, ...]
    questions: tuple[str, ...]


def talk(lines: int, questions: int, *, seed: int) -> Talk:
    rng, words = np.random.default_rng(seed), vocabulary()
    weights = _zipf(len(words))
    said = [_drawn(rng, weights, _length(rng)) for _ in range(lines)]
    about = [said[int(place)] for place in rng.random(questions) * lines]
    return Talk(
        lines=tuple(_line(i, _sentence(words, line)) for i, line in enumerate(said)),
        questions=tuple(_question(words, line) for line in about),
    )


def vocabulary() -> list[str]:
    """The model's whole words, which its file lists from the commonest on."""
    entries = VOCABULARY.read_text(encoding="utf-8").splitlines()
    return [entry for entry in entries if entry.isascii() and entry.isalpha() and len(entry) > 1][:WORDS]


def _zipf(number: int) -> NDArray[np.float64]:
    weights = 1 / (np.arange(1, number + 1) + FLATTENED)
    return weights / weights.sum()


def _length(rng: Generator) -> int:
    return min(max(int(MIDDLE * math.exp(rng.normal(0, 0.5))), SHORTEST), LONGEST)


def _drawn(rng: Generator, weights: NDArray[np.float64], number: int) -> list[int]:
    return rng.choice(len(weights), size=number, p=weights).tolist()


def _sentence(words: list[str], line: list[int]) -> str:
    return " ".join(words[i] for i in line).capitalize() + "."


def _question(words: list[str], line: list[int]) -> str:
    """Asks with the rarest words of a line, as people do."""
    return f"What did Ana say about {' '.join(words[i] for i in sorted(set(line))[-5:])}?"


def _line(number: int, content: str) -> str:
    role, name = SPEAKERS[number % len(SPEAKERS)]
    session = number // LINES_A_SESSION
    at = BEGIN + timedelta(hours=session, seconds=30 * (number % LINES_A_SESSION))
    given = {"type": "message", "session": f"s{session}", "ref": f"m{number}", "role": role, "name": name}
    return json.dumps({**given, "content": content, "at": at.isoformat()})
