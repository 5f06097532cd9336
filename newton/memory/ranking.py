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
LONG_TEXT_WORDS = 80
LONG_TEXT_FACTOR = 0.5

# Evidence is as exact as a float of four bytes before anything is made of it: so a stored context keeps it.
SINGLE_PRECISION = struct.Struct("<3f")

# What stands beside so many of the best lines is looked at too, as far away as a neighbour lends.
MAX_NEIGHBOUR_SOURCES = 60

ROLE_NAMES = frozenset({"User", "Assistant", "System", "Tool"})  # how a speaker is called who has no name

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingWeights:
    """What counts as evidence, and how much; what counts 0 is not looked for.

    `meaning` weighs the cosine and `words` the share of the best possible BM25. `lent` is what a neighbour one, two, …
    places away in the same thread lends of its own evidence. `named` is what a line gets whose speaker the input names.
    `timed` is what being of a time that the input asks for weighs, beside 1 for all the rest. Kinds in `without` are
    not searched.
    """

    similarity: float = 1.0
    lexical: float = 1.5
    neighbours: tuple[float, ...] = (0.5, 0.25)
    speaker: float = 0.15
    time_range: float = 0.35
    excluded_kinds: frozenset[Kind] = frozenset()


DEFAULT_WEIGHTS = RankingWeights()
TIME_FIRST = 2.0  # weighed so, what is of the time that is asked for comes before whatever is not


class SearchHit(NamedTuple):
    """One candidate: where it stands, its cosine to the input, and its share of the best BM25 any text could have."""

    memory_id: UUID
    kind: Kind
    word_count: int
    thread_id: UUID | None
    position: int | None
    speaker: str | None
    similarity: float
    lexical: float


def find_named_speakers(text: str, speakers: Iterable[str | None]) -> frozenset[str]:
    """The speakers whose first name, written as a name, is a word of the text.

    >>> sorted(find_named_speakers("Will Ana come?", ["Ana Lima", "Will", "Marta", "User", None]))
    ['Ana Lima', 'Will']
    """
    words = set(_WORD.findall(text))
    known = {speaker: _WORD.findall(speaker) for speaker in speakers if speaker and speaker not in ROLE_NAMES}
    return frozenset(speaker for speaker, parts in known.items() if parts and parts[0] in words)


def evidence_score(
    similarity: float, lexical: float, word_count: int, weights: RankingWeights = DEFAULT_WEIGHTS
) -> float:
    """What its meaning and its words say for a memory by itself."""
    part = LONG_TEXT_FACTOR if word_count > LONG_TEXT_WORDS else 1.0
    return weights.similarity * similarity + weights.lexical * part * lexical


def _evidence_scores(hits: Sequence[SearchHit], weights: RankingWeights) -> list[float]:
    return [evidence_score(hit.similarity, hit.lexical, hit.word_count, weights) for hit in hits]


def score_relevance(
    hits: Sequence[SearchHit], weights: RankingWeights = DEFAULT_WEIGHTS, speakers: AbstractSet[str] = frozenset()
) -> list[float]:
    """For each hit its relevance to an input that names `speakers`; only their order and distances mean anything.

    In a dialogue a short line often answers the one before it and says little alone, so neighbours lend evidence.
    """
    own = _evidence_scores(hits, weights)
    threads: defaultdict[UUID, dict[int, float]] = defaultdict(dict)
    for hit, score in zip(hits, own, strict=True):
        if hit.thread_id is not None and hit.position is not None:
            threads[hit.thread_id][hit.position] = score
    return [
        score
        + (
            _neighbour_score(threads[hit.thread_id], hit.position, weights)
            if hit.thread_id is not None and hit.position is not None
            else 0.0
        )
        + (weights.speaker if hit.speaker in speakers else 0.0)
        for hit, score in zip(hits, own, strict=True)
    ]


def blend_time_match(
    relevance: Sequence[float], in_range: Sequence[bool], weights: RankingWeights = DEFAULT_WEIGHTS
) -> list[float]:
    """Parts of the best, as before, of which so many are of the time that is asked for.

    >>> blend_time_match([1.0, 0.5], [False, True], RankingWeights(time_range=1.0))
    [0.5, 0.75]
    """
    whole = 1 + weights.time_range
    return [(own + weights.time_range * of_it) / whole for own, of_it in zip(relevance, in_range, strict=True)]


def select_best(
    hits: Sequence[SearchHit],
    limits: Mapping[Kind, int],
    *,
    weights: RankingWeights = DEFAULT_WEIGHTS,
    text: str = "",
    in_range: AbstractSet[UUID] = frozenset(),
) -> dict[UUID, tuple[float, float, float]]:
    """The `most` relevant of each kind: cosine, lexical share and relevance of each. Those in `then` are of a time that
    is asked for."""
    left = dict(limits)
    relevance = normalize_by_max(
        score_relevance(hits, weights, find_named_speakers(text, {hit.speaker for hit in hits}))
    )
    relevance = (
        blend_time_match(relevance, [hit.memory_id in in_range for hit in hits], weights) if in_range else relevance
    )
    kept: dict[UUID, tuple[float, float, float]] = {}
    for place in sorted(range(len(hits)), key=lambda i: (-relevance[i], hits[i].memory_id)):
        hit = hits[place]
        if left[hit.kind] > 0:
            left[hit.kind] -= 1
            kept[hit.memory_id] = SINGLE_PRECISION.unpack(
                SINGLE_PRECISION.pack(hit.similarity, hit.lexical, relevance[place])
            )
    return kept


def find_neighbours(hits: Sequence[SearchHit], weights: RankingWeights = DEFAULT_WEIGHTS) -> list[tuple[UUID, int]]:
    """The places that the best hits lend to and no hit stands at, each with its thread."""
    own = _evidence_scores(hits, weights)
    ranked = sorted(range(len(hits)), key=lambda i: (-own[i], hits[i].memory_id))
    lenders = [hits[i] for i in ranked if hits[i].thread_id is not None][:MAX_NEIGHBOUR_SOURCES]
    taken = {(hit.thread_id, hit.position) for hit in hits}
    steps = [sign * distance for distance in range(1, len(weights.neighbours) + 1) for sign in (-1, 1)]
    reached = {
        (hit.thread_id, hit.position + step): None
        for hit in lenders
        for step in steps
        if hit.thread_id is not None and hit.position is not None and hit.position + step >= 0
    }
    return [place for place in reached if place not in taken]


def _neighbour_score(scores: Mapping[int, float], position: int, weights: RankingWeights) -> float:
    """What the hits around a place of a thread lend to the one that stands there."""
    lent = 0.0
    for distance, part in enumerate(weights.neighbours, 1):
        lent += part * max(scores.get(position - distance, 0.0), scores.get(position + distance, 0.0))
    return lent


def normalize_by_max(scores: Sequence[float]) -> list[float]:
    """The scores as parts of the best one, in [0, 1], so that other features weigh the same against any input's.

    >>> normalize_by_max([2.0, 4.0, -1.0])
    [0.5, 1.0, 0.0]
    """
    best = max(scores, default=0.0)
    return [max(score, 0.0) / best if best > 0 else 0.0 for score in scores]
