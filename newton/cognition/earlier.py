"""Which artifacts of its session go with an input: the nearest few that the conversation sent does not hold. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from newton.cognition.fill import FULL
from newton.cognition.request import InView
from newton.memory.recall import Found

LAYER = "session"
FEWEST_LETTERS = 10  # a shorter input, such as "ok", says too little to look for anything by

IN_VIEW = "in view: the conversation itself is sent"
COVERED = 1.0  # so much as its nearness counts it for an artifact that all the words of the input are in it
WORDED = 2 / 3  # and so much for how near it is: a table of numbers has no meaning, but it has names

Lines = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selecting:
    """How artifacts are chosen: of `top_k` candidates in plain order, or of `rerank`, 0 for none, in an order in which
    the words of the input count too, those from the `threshold` on, and of these the first `final`. They have `tokens`
    together, with their heading."""

    top_k: int = 5
    threshold: float = 0.25
    rerank: int = 20
    final: int = 3
    tokens: int = 800

    @property
    def candidates(self) -> int:
        """How many are looked at."""
        return max(self.top_k, self.rerank)

    @property
    def order(self) -> str:
        """What the order goes by, in words."""
        return "by meaning and by its words" if self.rerank else "by meaning"


NEAREST = Selecting()


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """How the artifacts among the candidates are chosen, and the first and last line that each covers."""

    selecting: Selecting = NEAREST
    lines: Mapping[UUID, Lines] = field(default_factory=dict[UUID, Lines])

    def room(self, artifacts: Sequence[Found], view: InView | None) -> int:
        """The most that they may cost with their heading; 0 when none can be chosen. What they cost is known only when
        the lines of the context are, so others take what they leave."""
        return self.selecting.tokens if chosen(artifacts, self, view).places else 0


NOTHING = Earlier()


class Chosen(NamedTuple):
    """The artifacts for an input, best first with the place each has, and why the others stay out."""

    places: Mapping[UUID, str]
    out: Mapping[UUID, str]


def wanted(text: str) -> bool:
    """Whether an input says enough to look for anything by."""
    return len(text.strip()) >= FEWEST_LETTERS


def nearness(found: Found, selecting: Selecting) -> float:
    """How near it is to the input: by meaning, by its share of the words where nobody knows a vector, and by whichever
    says more where words count too."""
    if not found.similarity:
        return found.lexical
    return max(found.similarity, WORDED * found.lexical) if selecting.rerank else found.similarity


def ranked(artifacts: Sequence[Found], selecting: Selecting) -> list[Found]:
    """The nearest first; with re-ranking, words count beside the meaning."""
    weight = COVERED if selecting.rerank else 0.0
    return sorted(artifacts, key=lambda f: (-((f.similarity or f.lexical) + weight * f.lexical), f.memory_id))


def chosen(
    artifacts: Sequence[Found],
    earlier: Earlier,
    view: InView | None,
    *,
    barred: Mapping[UUID, str] | None = None,
    room: float = math.inf,
) -> Chosen:
    """Every artifact once, with its place or the reason why it stays out. What is `barred` takes no place, nor what is
    too large for the tokens that are left of the `room`: what comes behind it may fit."""
    selecting = earlier.selecting
    places, out = dict[UUID, str](), dict[UUID, str](barred or {})
    for found in ranked(artifacts, selecting):
        if found.memory_id in out:
            continue
        if view and (lines := earlier.lines.get(found.memory_id)) and view.covers(*lines):
            out[found.memory_id] = IN_VIEW
        elif (near := nearness(found, selecting)) < selecting.threshold:
            out[found.memory_id] = f"too far from the input: {near:.2f}, not {selecting.threshold:.2f}"
        elif len(places) >= selecting.final:
            out[found.memory_id] = f"behind the best {selecting.final} of the session, {selecting.order}"
        elif found.summary_tokens > room:
            out[found.memory_id] = FULL
        else:
            room -= found.summary_tokens
            places[found.memory_id] = f"number {len(places) + 1} of the session, {selecting.order}"
    return Chosen(places, out)
