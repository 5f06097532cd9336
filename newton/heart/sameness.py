"""Whether two statements say the same, without a model. Pure."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two statements are, in [0, 1], what follows, and why in a few words."""

    similarity: float
    verdict: Literal["same", "near", "different"]
    because: str


def likeness(told: str, known: str, *, cosine: float, same: float = 0.95, near: float = 0.85) -> Likeness:
    verdict = "same" if cosine >= same else "near" if cosine >= near else "different"
    return Likeness(cosine, verdict, f"alike {cosine:.2f}")
