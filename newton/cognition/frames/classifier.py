"""Multinomial logistic regression that classifies an input into frames by embedding and n-grams. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from newton.cognition.frames.ngrams import extract_ngrams

Vector: TypeAlias = NDArray[np.float32]
Matrix: TypeAlias = NDArray[np.float32]

# Chosen by cross-validation over the examples; accuracy is stable within a factor of two of each.
NGRAM_NORM = 1.4  # norm of the n-gram vector; the embedding has norm 1
INVERSE_PENALTY = 10.0  # 1 / ridge penalty
MIN_NGRAM_EXAMPLES = 3  # minimum document frequency of an n-gram
MAX_CLASS_WEIGHT = 3.0  # largest weight of an example of a rare frame
GRADIENT_STEPS = 300
PRINCIPAL_AXES = 48  # dimensions of the stored examples


class FrameExample(NamedTuple):
    """A typical input of a frame."""

    frame: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameClassifier:
    """Weights of a multinomial logistic regression, one column per frame in `frames`.

    `embedding_weights` has one row per vector dimension, and none when trained without an embedder. `ngram_weights` has
    one row per n-gram of `vocabulary`, scaled by `idf`. `example_coordinates` are the `examples` relative to
    `mean_vector`, projected on `principal_axes`.
    """

    frames: tuple[str, ...]
    vocabulary: Mapping[str, int]
    idf: Vector
    ngram_weights: Matrix
    embedding_weights: Matrix
    intercept: Vector
    mean_vector: Vector
    principal_axes: Matrix
    example_coordinates: Matrix
    examples: Sequence[FrameExample]

    def predict_log_proba(self, text: str, vector: Vector | None) -> dict[str, float]:
        """Return the log probability of each frame. Without a vector, use the n-grams alone."""
        meaning = self.mean_vector if vector is None else vector
        score = self.intercept + meaning[: len(self.embedding_weights)] @ self.embedding_weights
        if known := self._lookup_ngrams(text):
            score = score + _scale_idf(self.idf[known]) @ self.ngram_weights[known]
        score = score - score.max()
        return dict(zip(self.frames, (score - np.log(np.exp(score).sum())).tolist(), strict=True))

    def find_top_ngrams(self, text: str, frame: str, *, limit: int) -> list[str]:
        """Return the readable n-grams of the text that speak most for the frame, without overlapping words."""
        column = self.frames.index(frame)
        lead = {
            cue: float(self.idf[n] * (2 * self.ngram_weights[n, column] - self.ngram_weights[n].max()))
            for cue in extract_ngrams(text)
            if (n := self.vocabulary.get(cue)) is not None and _is_readable(cue)
        }
        least = max(max(lead.values(), default=0.0) / 2, 1e-9)
        ranked = sorted((cue for cue in lead if lead[cue] >= least), key=lambda cue: (-lead[cue], cue))
        kept: list[str] = []
        for cue in ranked:
            if not any(set(cue.split()) & set(other.split()) for other in kept):
                kept.append(cue)
        return kept[:limit]

    def find_nearest_example(self, vector: Vector, frame: str) -> str | None:
        """Return the frame's example with the highest cosine similarity; None when trained without an embedder."""
        rows = [n for n, example in enumerate(self.examples) if example.frame == frame]
        if not rows or not len(self.embedding_weights):
            return None
        place = (vector - self.mean_vector) @ self.principal_axes
        near = (
            self.example_coordinates[rows]
            @ place
            / np.maximum(np.linalg.norm(self.example_coordinates[rows], axis=1), 1e-9)
        )
        return self.examples[rows[int(near.argmax())]].text

    def _lookup_ngrams(self, text: str) -> list[int]:
        return [n for cue in extract_ngrams(text) if (n := self.vocabulary.get(cue)) is not None]


def train_classifier(examples: Sequence[FrameExample], vectors: Sequence[Vector]) -> FrameClassifier:
    """Fit a classifier to the examples. Without `vectors`, use n-grams alone."""
    frames = tuple(dict.fromkeys(example.frame for example in examples))
    said = [extract_ngrams(example.text) for example in examples]
    heard = Counter(cue for each in said for cue in each)
    vocabulary = {
        cue: n for n, cue in enumerate(sorted(c for c, times in heard.items() if times >= MIN_NGRAM_EXAMPLES))
    }
    rarity = np.array([1 + np.log((1 + len(said)) / (1 + heard[cue])) for cue in vocabulary], dtype=np.float32)
    words = np.zeros((len(said), len(vocabulary)), dtype=np.float32)
    for row, each in zip(words, said, strict=True):
        known = [vocabulary[cue] for cue in each if cue in vocabulary]
        row[known] = _scale_idf(rarity[known])
    meaning = np.stack(vectors) if vectors else np.zeros((len(said), 0), dtype=np.float32)
    features = np.hstack([meaning, words, np.ones((len(said), 1), dtype=np.float32)])
    weights = _fit_logistic_regression(features, np.array([frames.index(example.frame) for example in examples]))
    dimensions = meaning.shape[1]
    middle, axes = _compute_principal_axes(meaning)
    return FrameClassifier(
        frames=frames,
        vocabulary=vocabulary,
        idf=rarity,
        ngram_weights=weights[dimensions:-1],
        embedding_weights=weights[:dimensions],
        intercept=weights[-1],
        mean_vector=middle,
        principal_axes=axes,
        example_coordinates=((meaning - middle) @ axes).astype(np.float32),
        examples=examples,
    )


def _scale_idf(idf: Vector) -> Vector:
    """Normalize the TF-IDF vector, so that texts of any length weigh the same."""
    return NGRAM_NORM * idf / max(float(np.linalg.norm(idf)), 1e-9)


def _is_readable(cue: str) -> bool:
    return len(cue) > 1 and all(word.isalpha() for word in cue.split())


def _compute_principal_axes(embeddings: Matrix) -> tuple[Vector, Matrix]:
    """Return the mean of the rows and their principal components."""
    middle = embeddings.mean(axis=0)
    away = (embeddings - middle).astype(np.float64)
    _, directions = np.linalg.eigh(away.T @ away)
    return middle, directions[:, ::-1][:, :PRINCIPAL_AXES].astype(np.float32)


def _fit_logistic_regression(features: Matrix, labels: NDArray[np.int_]) -> Matrix:
    """Fit multinomial logistic regression with a ridge penalty by accelerated gradient descent.

    Returns one weight per feature and class. Works in the dual space: the weights are linear combinations of the rows.
    """
    count = np.bincount(labels)
    share = np.minimum(count.mean() / count, MAX_CLASS_WEIGHT)[labels][:, None].astype(np.float32)
    wanted = np.eye(len(count), dtype=np.float32)[labels]
    alike, penalty = features @ features.T, 1 / INVERSE_PENALTY
    steepest = 0.5 * _estimate_largest_eigenvalue(alike) * float(share.max()) + penalty
    root = (penalty / steepest) ** 0.5
    momentum = (1 - root) / (1 + root)
    now = ahead = np.zeros_like(wanted)
    for _ in range(GRADIENT_STEPS):
        off = _softmax((alike @ ahead).astype(np.float32)) - wanted
        moved = ahead - (share * off + penalty * ahead) / steepest
        now, ahead = moved, moved + momentum * (moved - now)
    return features.T @ now


def _softmax(scores: Matrix) -> Matrix:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def _estimate_largest_eigenvalue(gram_matrix: Matrix) -> float:
    """Return an upper estimate of the largest eigenvalue, by power iteration."""
    vector = np.ones(len(gram_matrix), dtype=np.float32)
    for _ in range(20):
        vector = gram_matrix @ vector
        vector /= np.linalg.norm(vector)
    return 1.05 * float(vector @ gram_matrix @ vector)
