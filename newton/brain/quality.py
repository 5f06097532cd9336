"""The quality of a decision draft: a score from 0 to 1, which is the sum of the scores of its parts. Pure."""

from collections.abc import Callable, Mapping

from newton.brain.draft import DecisionDraft

MIN_WORDS = 3
MAX_CHARS = 200  # of a one-line description

# The weight of each part, and its score from 0 to 1. The weights add up to 1.
QUALITY_PARTS: Mapping[str, tuple[float, Callable[[DecisionDraft], float]]] = {
    "described": (0.15, lambda c: float(len(c.description.split()) >= MIN_WORDS and _is_single_line(c.description))),
    "reasoned": (0.20, lambda c: float(bool(c.reasons))),
    "independent reasons": (0.15, lambda c: float(len({reason.kind for reason in c.reasons}) >= 2)),
    "alternatives": (0.20, lambda c: min(len(c.alternatives), 2) / 2),
    "context": (0.10, lambda c: float(c.context is not None)),
    "expected": (0.10, lambda c: float(c.expected is not None)),
    "review date": (0.10, lambda c: float(c.look_again_at is not None)),
}

# what a draft lacks if its part has less than the full score; other parts are called by their names
PART_LABELS = {
    "described": f"a description of one line and at least {MIN_WORDS} words",
    "reasoned": "a reason",
    "independent reasons": "reasons of two kinds",
    "alternatives": "two alternatives",
    "expected": "expected outcome",
}


def score_parts(draft: DecisionDraft) -> dict[str, float]:
    """Return the weighted score of each part by name. The sum of the scores is the quality."""
    return {name: round(worth * share(draft), 4) for name, (worth, share) in QUALITY_PARTS.items()}


def format_quality(parts: Mapping[str, float]) -> str:
    """Return a text with the quality score and what the draft lacks."""
    missing = [PART_LABELS.get(name, name) for name, score in parts.items() if score < QUALITY_PARTS[name][0]]
    return f"Quality {total_score(parts):.2f}." + (f" Missing: {', '.join(missing)}." if missing else "")


def total_score(parts: Mapping[str, float]) -> float:
    return round(sum(parts.values()), 4)


def _is_single_line(text: str) -> bool:
    return len(text) <= MAX_CHARS and "\n" not in text
