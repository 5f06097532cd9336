"""Plain rankings of the messages of a conversation: BM25, cosine similarity and reciprocal rank fusion. Pure."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from newton.memory.recall import K1, B

RRF_K = 60  # the usual constant of reciprocal rank fusion

Ranking = list[int]


class Bm25Index:
    """An index of texts that are lists of stems."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        lengths = np.array([len(text) for text in texts], dtype=np.float64)
        self._damping = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1.0))
        self._counts: dict[str, list[tuple[int, int]]] = {}
        for number, text in enumerate(texts):
            for stem, count in Counter(text).items():
                self._counts.setdefault(stem, []).append((number, count))

    def score(self, question: Sequence[str]) -> NDArray[np.float64]:
        """Return the BM25 score of each text."""
        scores = np.zeros(len(self._damping))
        for stem in dict.fromkeys(question):
            postings = np.array(self._counts.get(stem, ()), dtype=np.int64).reshape(-1, 2)
            rows, counts, n = postings[:, 0], postings[:, 1], len(postings)
            idf = np.log(1 + (len(scores) - n + 0.5) / (n + 0.5))
            scores[rows] += idf * counts * (K1 + 1) / (counts + self._damping[rows])
        return scores


def rank_scores(scores: NDArray[np.floating]) -> Ranking:
    """Return the positions from the highest score to the lowest; equal scores keep their order.

    >>> rank_scores(np.array([0.1, 0.9, 0.9]))
    [1, 2, 0]
    """
    return [int(number) for number in np.argsort(-scores, kind="stable")]


def fuse_rankings(rankings: Sequence[Ranking]) -> Ranking:
    """Return the positions by the sum of 1 / (RRF_K + rank) over rankings of the same positions.

    >>> fuse_rankings([[2, 0, 1], [2, 1, 0]])
    [2, 0, 1]
    """
    scores = np.zeros(len(rankings[0]))
    for ranking in rankings:
        scores[ranking] += 1 / (RRF_K + 1 + np.arange(len(ranking)))
    return rank_scores(scores)
