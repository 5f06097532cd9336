"""Ranking of the lines that a search in artifacts found, and their grouping into passages. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from newton.dialogue.artifact_storage.artifact_store import LineMatch, LineSpan, SimilarLine

# Lines shown before and after each of the best found lines; of the others, a page has room for three times as many.
CONTEXT_LINES, LINES_WITH_CONTEXT = 1, 8
NEIGHBOUR_WEIGHT = 0.5  # of a word in the line before or after
RANK_CONSTANT = 10  # of reciprocal rank fusion; small, because the first ranks matter most
MIN_SIMILARITY = (
    0.1  # cosine of a line that is found by its vector; lines of code or of a table are seldom more similar
)

LineKey = tuple[UUID, int]


def rank_lines(matches: Sequence[LineMatch], similar: Sequence[SimilarLine]) -> list[LineKey]:
    """Return the found lines, best first: the ranks by words, by similarity and by contrast are fused.

    Words count as much as both ranks of vectors together.
    """
    scores = _score_by_words(matches)
    by_similarity = {(one.artifact_id, one.line): one.similarity for one in similar}
    by_contrast = {(one.artifact_id, one.line): one.contrast for one in similar}
    fused: dict[LineKey, float] = defaultdict(float)
    for weight, own, lowest in (
        (1.0, scores, 0.0),
        (0.5, by_similarity, MIN_SIMILARITY),
        (0.5, by_contrast, MIN_SIMILARITY),
    ):
        found = [key for key in own if own[key] >= lowest]
        for rank, key in enumerate(sorted(found, key=lambda key: (-own[key], key))):
            fused[key] += weight / (RANK_CONSTANT + rank)
    return sorted(fused, key=lambda key: (-fused[key], key))


def _score_by_words(matches: Sequence[LineMatch]) -> dict[LineKey, float]:
    """Score lines by the weights of their words; words of the line before and after count in part."""
    words: Mapping[LineKey, dict[str, float]] = {
        (match.artifact_id, match.line): dict(zip(match.words, match.weights, strict=True)) for match in matches
    }
    scores: dict[LineKey, float] = {}
    for (artifact_id, line), own in words.items():
        score = sum(own.values())
        nearby = {**words.get((artifact_id, line - 1), {}), **words.get((artifact_id, line + 1), {})}
        score += NEIGHBOUR_WEIGHT * sum(weight for word, weight in nearby.items() if word not in own)
        scores[artifact_id, line] = score
    return scores


def group_lines(ranked: Iterable[LineKey], line_counts: Mapping[UUID, int]) -> list[LineSpan]:
    """Return ranges of lines around the found lines, the best first. Overlapping ranges are merged."""
    ranges: list[LineSpan] = []
    for rank, (artifact_id, line) in enumerate(ranked):
        around = CONTEXT_LINES if rank < LINES_WITH_CONTEXT else 0
        first, last = max(line - around, 1), min(line + around, line_counts[artifact_id])
        found = (line,)
        for index, other in enumerate(ranges):
            if other.artifact_id == artifact_id and other.first <= last + 1 and first <= other.last + 1:
                merged = tuple(sorted({*other.found, line}))
                ranges[index] = LineSpan(artifact_id, min(first, other.first), max(last, other.last), merged)
                break
        else:
            ranges.append(LineSpan(artifact_id, first, last, found))
    return ranges
