"""Ranking of memories by their relevance to an input: cosine, BM25, speaker and neighbouring messages. Pure."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.memory.memory import Kind
from newton.text.stems import WORD

# A long text matches many words by its length alone, so its lexical evidence counts half.
LONG_TEXT_WORDS = 80
LONG_TEXT_FACTOR = 0.5
# All passages of a document share the words of its subject, so these say little about which passage answers.
PASSAGE_FACTOR = 0.2

# Evidence is rounded to four-byte floats, as stored contexts keep it, so that replays compute the same values.
SINGLE_PRECISION = struct.Struct("<3f")

# The neighbours of this many of the best messages are fetched.
MAX_NEIGHBOUR_SOURCES = 60

ROLE_NAMES = frozenset({"User", "Assistant", "Program", "Tool"})  # speakers without a name


ThreadPosition = tuple[UUID | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingWeights:
    """The weights of the kinds of evidence for a memory. A weight of 0 disables the search for this evidence.

    `similarity` multiplies the cosine, `lexical` the share of the best possible BM25. `neighbours` are the factors for
    messages one, two, … positions away in the same thread. `speaker` is added if the input names the speaker, `thread`
    to messages of preferred threads, and `task` to memories of the current task. `time_range` is the weight of a match
    in time, against 1 for all other evidence. Memories of `excluded_kinds` are not searched.
    """

    similarity: float = 1.0
    lexical: float = 1.5
    neighbours: tuple[float, ...] = (0.5, 0.25)
    speaker: float = 0.15
    thread: float = 0.15
    task: float = 0.3
    time_range: float = 0.35
    excluded_kinds: frozenset[Kind] = frozenset()


DEFAULT_WEIGHTS = RankingWeights()
TIME_FIRST = 2.0  # as `time_range`: matches in time come before all others


class PreferredMemories(NamedTuple):
    """Memories that rank higher than others: messages of `threads`, and memories of the current task.

    The task has the messages in `ranges` (thread, first position, last position) and the memories with these `ids`.
    """

    threads: AbstractSet[UUID] = frozenset()
    ranges: Sequence[tuple[UUID, int, int]] = ()
    ids: AbstractSet[UUID] = frozenset()

    def is_of_task(self, hit: "SearchHit") -> bool:
        """Return True if a hit belongs to the current task."""
        return hit.memory_id in self.ids or any(
            hit.kind == "exchange" and hit.thread_id == thread_id and first <= (hit.position or 0) <= last
            for thread_id, first, last in self.ranges
        )


NO_PREFERENCE = PreferredMemories()


class SearchHit(NamedTuple):
    """A memory found by a search, with its place in a thread, its cosine similarity, and its lexical evidence.

    `lexical` is its BM25 score as a share of the best possible one. `is_long` is True for a text longer than a summary.
    """

    memory_id: UUID
    kind: Kind
    word_count: int
    thread_id: UUID | None
    position: int | None
    speaker: str | None
    is_long: bool
    similarity: float
    lexical: float


def find_named_speakers(text: str, speakers: Iterable[str | None]) -> frozenset[str]:
    """Return the speakers whose first name occurs in the text as a word with the same capitals.

    >>> sorted(find_named_speakers("Will Ana come?", ["Ana Lima", "Will", "Marta", "User", None]))
    ['Ana Lima', 'Will']
    """
    words = set(WORD.findall(text))
    known = {speaker: WORD.findall(speaker) for speaker in speakers if speaker and speaker not in ROLE_NAMES}
    return frozenset(speaker for speaker, parts in known.items() if parts and parts[0] in words)


def evidence_score(
    kind: Kind, similarity: float, lexical: float, word_count: int, weights: RankingWeights = DEFAULT_WEIGHTS
) -> float:
    """Return the weighted sum of the cosine similarity and the lexical evidence (share of the best BM25) of a memory.

    `lexical` counts half for a memory with many words, and a fifth for a passage of a document. Evidence from
    neighbouring messages is not included.
    """
    factor = LONG_TEXT_FACTOR if word_count > LONG_TEXT_WORDS else 1.0
    factor = PASSAGE_FACTOR if kind == "passage" else factor
    return weights.similarity * similarity + weights.lexical * factor * lexical


def _evidence_scores(hits: Sequence[SearchHit], weights: RankingWeights) -> list[float]:
    return [evidence_score(hit.kind, hit.similarity, hit.lexical, hit.word_count, weights) for hit in hits]


def score_relevance(
    hits: Sequence[SearchHit],
    weights: RankingWeights = DEFAULT_WEIGHTS,
    speakers: AbstractSet[str] = frozenset(),
    preferred: PreferredMemories = NO_PREFERENCE,
) -> list[float]:
    """Return the relevance of each hit to an input that names `speakers`. The scale is arbitrary.

    The `preferred` memories rank higher. Neighbouring messages add evidence, because a short message often
    answers the one before it and means little alone.
    """
    own = _evidence_scores(hits, weights)
    by_position = {(hit.thread_id, hit.position): score for hit, score in zip(hits, own, strict=True)}
    return [
        score
        + neighbour_score((hit.thread_id, hit.position), by_position, weights)
        + (weights.speaker if hit.speaker in speakers else 0.0)
        + (weights.thread if hit.thread_id in preferred.threads else 0.0)
        + (weights.task if preferred.is_of_task(hit) else 0.0)
        for hit, score in zip(hits, own, strict=True)
    ]


def blend_time_match(
    relevance: Sequence[float], in_range: Sequence[bool], weights: RankingWeights = DEFAULT_WEIGHTS
) -> list[float]:
    """Return the weighted mean of each relevance and its match in time (1 in the range, else 0).

    >>> blend_time_match([1.0, 0.5], [False, True], RankingWeights(time_range=1.0))
    [0.5, 0.75]
    """
    total = 1 + weights.time_range
    return [(own + weights.time_range * matches) / total for own, matches in zip(relevance, in_range, strict=True)]


def select_best(
    hits: Sequence[SearchHit],
    limits: Mapping[Kind, int],
    *,
    weights: RankingWeights = DEFAULT_WEIGHTS,
    text: str = "",
    in_range: AbstractSet[UUID] = frozenset(),
    preferred: PreferredMemories = NO_PREFERENCE,
) -> dict[UUID, tuple[float, float, float]]:
    """Return cosine, lexical share and relevance of the most relevant hits by id, within the limit of each kind.

    Speakers that `text`, the query, names make their messages more relevant. The memories `in_range` match the
    requested time. The `preferred` ones rank higher.
    """
    remaining = dict(limits)
    speakers = find_named_speakers(text, {hit.speaker for hit in hits})
    relevance = normalize_by_max(score_relevance(hits, weights, speakers, preferred))
    if in_range:
        relevance = blend_time_match(relevance, [hit.memory_id in in_range for hit in hits], weights)
    best: dict[UUID, tuple[float, float, float]] = {}
    for score, hit in sorted(zip(relevance, hits, strict=True), key=lambda pair: (-pair[0], pair[1].memory_id)):
        if remaining[hit.kind] > 0:
            remaining[hit.kind] -= 1
            packed = SINGLE_PRECISION.pack(hit.similarity, hit.lexical, score)
            best[hit.memory_id] = SINGLE_PRECISION.unpack(packed)
    return best


def find_neighbours(hits: Sequence[SearchHit], weights: RankingWeights = DEFAULT_WEIGHTS) -> list[tuple[UUID, int]]:
    """Return thread id and position of each message next to one of the best hits in its thread, if it is no hit itself.

    `weights.neighbours` has a factor for each distance that counts as next to.
    """
    scores = _evidence_scores(hits, weights)
    ranked = sorted(zip(scores, hits, strict=True), key=lambda pair: (-pair[0], pair[1].memory_id))
    sources = [hit for _, hit in ranked if hit.thread_id is not None][:MAX_NEIGHBOUR_SOURCES]
    known = {(hit.thread_id, hit.position) for hit in hits}
    steps = [sign * distance for distance in range(1, len(weights.neighbours) + 1) for sign in (-1, 1)]
    adjacent = {
        (hit.thread_id, hit.position + step): None
        for hit in sources
        for step in steps
        if hit.thread_id is not None and hit.position is not None and hit.position + step >= 0
    }
    return [pair for pair in adjacent if pair not in known]


def neighbour_score(
    place: ThreadPosition, scores: Mapping[ThreadPosition, float], weights: RankingWeights = DEFAULT_WEIGHTS
) -> float:
    """Return the evidence that hits next to a message in its thread add to the message `place`.

    `scores` are those of the hits. At each distance, the better of the two sides counts.
    """
    thread_id, position = place
    total = 0.0
    if thread_id is None or position is None:
        return total
    for distance, factor in enumerate(weights.neighbours, 1):
        sides = (scores.get((thread_id, position + step), 0.0) for step in (-distance, distance))
        total += factor * max(sides)
    return total


def normalize_by_max(scores: Sequence[float]) -> list[float]:
    """Return the scores divided by the largest one, and 0 for negative ones.

    The best score is then 1 for every input, so that the other features of a memory have the same weight for all
    inputs.

    >>> normalize_by_max([2.0, 4.0, -1.0])
    [0.5, 1.0, 0.0]
    """
    best = max(scores, default=0.0)
    return [max(score, 0.0) / best if best > 0 else 0.0 for score in scores]
