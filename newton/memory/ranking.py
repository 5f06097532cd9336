"""How likely a memory is what the input is about: its meaning, its words, who says it, what stands beside it. Pure."""

import re
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.memory.memory import Kind

# A long text matches many words by its length alone; past so many words its lexical evidence counts half.
LONG_WORDS = 80
LONG_FACTOR = 0.5

# Evidence is as exact as a float of four bytes before anything is made of it: so a stored context keeps it.
EXACT = struct.Struct("<3f")

# What stands beside so many of the best lines is looked at too, as far away as a neighbour lends.
LENDERS = 60

ROLES = frozenset({"User", "Assistant", "System", "Tool"})  # how a speaker is called who has no name

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """What counts as evidence, and how much; what counts 0 is not looked for.

    `meaning` weighs the cosine and `words` the share of the best possible BM25. `lent` is what a neighbour one, two, …
    places away in the same thread lends of its own evidence. `named` is what a line gets whose speaker the input names.
    `timed` is what being of a time that the input asks for weighs, beside 1 for all the rest. Kinds in `without` are
    not searched.
    """

    meaning: float = 1.0
    words: float = 1.5
    lent: tuple[float, ...] = (0.5, 0.25)
    named: float = 0.15
    timed: float = 0.35
    without: frozenset[Kind] = frozenset()


USUAL = Weighing()
FIRST = 2.0  # weighed so, what is of the time that is asked for comes before whatever is not


class Hit(NamedTuple):
    """One candidate: where it stands, its cosine to the input, and its share of the best BM25 any text could have."""

    memory_id: UUID
    kind: Kind
    words: int
    thread: UUID | None
    place: int | None
    speaker: str | None
    similarity: float
    lexical: float


def named(text: str, speakers: Iterable[str | None]) -> frozenset[str]:
    """The speakers whose first name, written as a name, is a word of the text.

    >>> sorted(named("Will Ana come?", ["Ana Lima", "Will", "Marta", "User", None]))
    ['Ana Lima', 'Will']
    """
    words = set(_WORD.findall(text))
    known = {speaker: _WORD.findall(speaker) for speaker in speakers if speaker and speaker not in ROLES}
    return frozenset(speaker for speaker, parts in known.items() if parts and parts[0] in words)


def evidence(similarity: float, lexical: float, words: int, weighing: Weighing = USUAL) -> float:
    """What its meaning and its words say for a memory by itself."""
    part = LONG_FACTOR if words > LONG_WORDS else 1.0
    return weighing.meaning * similarity + weighing.words * part * lexical


def _alone(hits: Sequence[Hit], weighing: Weighing) -> list[float]:
    return [evidence(hit.similarity, hit.lexical, hit.words, weighing) for hit in hits]


def relevances(
    hits: Sequence[Hit], weighing: Weighing = USUAL, speakers: AbstractSet[str] = frozenset()
) -> list[float]:
    """For each hit its relevance to an input that names `speakers`; only their order and distances mean anything.

    In a dialogue a short line often answers the one before it and says little alone, so neighbours lend evidence.
    """
    own = _alone(hits, weighing)
    threads: defaultdict[UUID, dict[int, float]] = defaultdict(dict)
    for hit, score in zip(hits, own, strict=True):
        if hit.thread is not None and hit.place is not None:
            threads[hit.thread][hit.place] = score
    return [
        score
        + (_lent(threads[hit.thread], hit.place, weighing) if hit.thread is not None and hit.place is not None else 0.0)
        + (weighing.named if hit.speaker in speakers else 0.0)
        for hit, score in zip(hits, own, strict=True)
    ]


def of_the_time(relevance: Sequence[float], timely: Sequence[bool], weighing: Weighing = USUAL) -> list[float]:
    """Parts of the best, as before, of which so many are of the time that is asked for.

    >>> of_the_time([1.0, 0.5], [False, True], Weighing(timed=1.0))
    [0.5, 0.75]
    """
    whole = 1 + weighing.timed
    return [(own + weighing.timed * of_it) / whole for own, of_it in zip(relevance, timely, strict=True)]


def best(
    hits: Sequence[Hit],
    most: Mapping[Kind, int],
    *,
    weighing: Weighing = USUAL,
    text: str = "",
    then: AbstractSet[UUID] = frozenset(),
) -> dict[UUID, tuple[float, float, float]]:
    """The `most` relevant of each kind: cosine, lexical share and relevance of each. Those in `then` are of a time that
    is asked for."""
    left = dict(most)
    relevance = stretched(relevances(hits, weighing, named(text, {hit.speaker for hit in hits})))
    relevance = of_the_time(relevance, [hit.memory_id in then for hit in hits], weighing) if then else relevance
    kept: dict[UUID, tuple[float, float, float]] = {}
    for place in sorted(range(len(hits)), key=lambda i: (-relevance[i], hits[i].memory_id)):
        hit = hits[place]
        if left[hit.kind] > 0:
            left[hit.kind] -= 1
            kept[hit.memory_id] = EXACT.unpack(EXACT.pack(hit.similarity, hit.lexical, relevance[place]))
    return kept


def beside(hits: Sequence[Hit], weighing: Weighing = USUAL) -> list[tuple[UUID, int]]:
    """The places that the best hits lend to and no hit stands at, each with its thread."""
    own = _alone(hits, weighing)
    ranked = sorted(range(len(hits)), key=lambda i: (-own[i], hits[i].memory_id))
    lenders = [hits[i] for i in ranked if hits[i].thread is not None][:LENDERS]
    taken = {(hit.thread, hit.place) for hit in hits}
    steps = [sign * distance for distance in range(1, len(weighing.lent) + 1) for sign in (-1, 1)]
    reached = {
        (hit.thread, hit.place + step): None
        for hit in lenders
        for step in steps
        if hit.thread is not None and hit.place is not None and hit.place + step >= 0
    }
    return [place for place in reached if place not in taken]


def _lent(thread: Mapping[int, float], place: int, weighing: Weighing) -> float:
    """What the hits around a place of a thread lend to the one that stands there."""
    lent = 0.0
    for distance, part in enumerate(weighing.lent, 1):
        lent += part * max(thread.get(place - distance, 0.0), thread.get(place + distance, 0.0))
    return lent


def stretched(scores: Sequence[float]) -> list[float]:
    """The scores as parts of the best one, in [0, 1], so that other features weigh the same against any input's.

    >>> stretched([2.0, 4.0, -1.0])
    [0.5, 1.0, 0.0]
    """
    best = max(scores, default=0.0)
    return [max(score, 0.0) / best if best > 0 else 0.0 for score in scores]
