"""Ranking of the lines that a search in artifacts found, and their grouping into passages. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from newton.dialogue.artifact_storage.artifact_store import LineMatch, LineSpan, SimilarLine

# Lines shown before and after each of the best found lines; of the others, a page has room for three times as many.
CONTEXT_LINES, LINES_WITH_CONTEXT = 1, 8
NEIGHBOUR_WEIGHT = 0.5  # of a word in the line before or after
RANK_CONSTANT = 10  # of reciprocal rank fusion; small, because the first ranks matter most
MIN_SIMILARITY = 0.2  # cosine of a line that is found by its vector

LineKey = tuple[UUID, int]


def rank_lines(matches: Sequence[LineMatch], similar: Sequence[SimilarLine]) -> list[LineKey]:
    """Return the found lines, best first: the ranks by words and by vectors are fused."""
    scores = _score_by_words(matches)
    by_words = sorted(scores, key=lambda key: (-scores[key], key))
    by_meaning = [(one.artifact_id, one.line) for one in similar if one.similarity >= MIN_SIMILARITY]
    fused: dict[LineKey, float] = defaultdict(float)
    for ranking in (by_words, by_meaning):
        for rank, key in enumerate(ranking):
            fused[key] += 1 / (RANK_CONSTANT + rank)
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
