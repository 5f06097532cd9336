"""Ranking of the lines that a search in artifacts found, and their grouping into passages. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from newton.dialogue.artifact_storage.artifact_store import LineMatch, LineSpan, SimilarLine

# Lines shown before and after each of the best found lines; of the others, a page has room for three times as many.
CONTEXT_LINES, LINES_WITH_CONTEXT = 1, 8
MAX_SPAN_LINES = 16  # to which ranges are merged; of a word that every line has, the range would be the whole text
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
    """Return ranges of lines around the found lines, the best first.

    Ranges that overlap or adjoin are merged, up to MAX_SPAN_LINES. A line that belongs to no range then has its own.
    """
    ranges: list[LineSpan] = []
    for rank, (artifact_id, line) in enumerate(ranked):
        around = CONTEXT_LINES if rank < LINES_WITH_CONTEXT else 0
        own = LineSpan(artifact_id, max(line - around, 1), min(line + around, line_counts[artifact_id]), (line,))
        near = [n for n, one in enumerate(ranges) if _adjoin(one, own)]
        for number in near:
            if merged := _merge(ranges[number], own):
                ranges[number] = merged
                break
        else:
            ranges.append(own._replace(first=line, last=line) if near else own)
    return ranges


def _adjoin(one: LineSpan, other: LineSpan) -> bool:
    return one.artifact_id == other.artifact_id and one.first <= other.last + 1 and other.first <= one.last + 1


def _merge(one: LineSpan, other: LineSpan) -> LineSpan | None:
    """Return the union of two adjoining ranges, or None if it is too long and the first lacks the found line."""
    found = tuple(sorted({*one.found, *other.found}))
    first, last = min(one.first, other.first), max(one.last, other.last)
    if last - first < MAX_SPAN_LINES:
        return LineSpan(one.artifact_id, first, last, found)
    return one._replace(found=found) if one.first <= other.found[0] <= one.last else None
