"""How well a choice is thought through, as it is stated: a score from 0 to 1 with its parts. Pure."""

from collections.abc import Callable, Mapping

from newton.brain.choice import Choice

FEWEST_WORDS = 3
MOST_CHARACTERS = 200  # of a description that says in a line what was chosen

# What a part is worth, and how much of it a choice has, from 0 to 1. The worths add up to 1.
PARTS: Mapping[str, tuple[float, Callable[[Choice], float]]] = {
    "described": (0.15, lambda c: float(len(c.description.split()) >= FEWEST_WORDS and _in_a_line(c.description))),
    "reasoned": (0.20, lambda c: float(bool(c.reasons))),
    "independent reasons": (0.15, lambda c: float(len({reason.kind for reason in c.reasons}) >= 2)),
    "alternatives": (0.20, lambda c: min(len(c.alternatives), 2) / 2),
    "context": (0.10, lambda c: float(c.context is not None)),
    "expected": (0.10, lambda c: float(c.expected is not None)),
    "look again": (0.10, lambda c: float(c.look_again_at is not None)),
}


def quality(choice: Choice) -> dict[str, float]:
    """What each part gives; their sum is the score."""
    return {name: round(worth * share(choice), 4) for name, (worth, share) in PARTS.items()}


def score(parts: Mapping[str, float]) -> float:
    return round(sum(parts.values()), 4)


def _in_a_line(text: str) -> bool:
    return len(text) <= MOST_CHARACTERS and "\n" not in text
