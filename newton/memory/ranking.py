"""How likely a memory is what the input is about: its meaning, its words, and what stands beside it. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from newton.memory.memory import Kind

# What a neighbour one and two places away in the same thread lends of its own evidence.
LENT = ((1, 0.5), (2, 0.25))

# A long text matches many words by its length alone; past so many words its lexical evidence counts half.
LONG_WORDS = 80
LONG_FACTOR = 0.5

# How much lexical evidence, a share of the best possible, weighs against the cosine.
LEXICAL_WEIGHT = 1.5


class Hit(NamedTuple):
    """One candidate: where it stands, its cosine to the input, and its share of the best BM25 any text could have."""

    memory_id: UUID
    kind: Kind
    words: int
    thread: UUID | None
    place: int | None
    similarity: float
    lexical: float


def relevances(hits: Sequence[Hit]) -> list[float]:
    """For each hit its relevance to the input; only their order and their distances mean anything.

    In a dialogue a short line often answers the one before it and says little alone, so neighbours lend evidence.
    """
    own = [evidence(hit.similarity, hit.lexical, hit.words) for hit in hits]
    placed = {
        (hit.thread, hit.place): score
        for hit, score in zip(hits, own, strict=True)
        if hit.thread is not None and hit.place is not None
    }
    return [score + _lent(hit, placed) for hit, score in zip(hits, own, strict=True)]


def evidence(similarity: float, lexical: float, words: int) -> float:
    """What its meaning and its words say for a memory by itself."""
    return similarity + LEXICAL_WEIGHT * lexical * (LONG_FACTOR if words > LONG_WORDS else 1.0)


def _lent(hit: Hit, placed: Mapping[tuple[UUID, int], float]) -> float:
    if hit.thread is None or hit.place is None:
        return 0.0
    lent = 0.0
    for distance, part in LENT:
        beside = [placed.get((hit.thread, hit.place + step), 0.0) for step in (-distance, distance)]
        lent += part * max(beside)
    return lent


def stretched(scores: Sequence[float]) -> list[float]:
    """The scores as parts of the best one, in [0, 1], so that other features weigh the same against any input's.

    >>> stretched([2.0, 4.0, -1.0])
    [0.5, 1.0, 0.0]
    """
    best = max(scores, default=0.0)
    return [max(score, 0.0) / best if best > 0 else 0.0 for score in scores]
