"""Classifier that assigns an input to a frame: multinomial logistic regression on embedding and n-grams. Pure."""

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
    """An example input and the frame to which it belongs."""

    frame: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameClassifier:
    """Trained classifier: the weights of a multinomial logistic regression, one column per frame in `frames`.

    `embedding_weights` has one row per vector dimension, none when trained without an embedder. `ngram_weights` has one
    row per n-gram of `vocabulary`; `idf` are the inverse document frequencies. `example_coordinates` are the embeddings
    of `examples` minus `mean_vector`, projected on `principal_axes`.
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
        """Return the log probability of each frame. Without a vector, only the n-grams are used."""
        embedding = self.mean_vector if vector is None else vector
        score = self.intercept + embedding[: len(self.embedding_weights)] @ self.embedding_weights
        if known := [n for ngram in extract_ngrams(text) if (n := self.vocabulary.get(ngram)) is not None]:
            score = score + _scale_idf(self.idf[known]) @ self.ngram_weights[known]
        score = score - score.max()
        return dict(zip(self.frames, (score - np.log(np.exp(score).sum())).tolist(), strict=True))

    def find_top_ngrams(self, text: str, frame: str, *, limit: int) -> list[str]:
        """Return the n-grams of the text that speak most for the frame, best first, without overlapping words.

        Only words and word pairs are returned, not n-grams of masked grammar.
        """
        column = self.frames.index(frame)
        evidence = {
            ngram: float(self.idf[n] * (2 * self.ngram_weights[n, column] - self.ngram_weights[n].max()))
            for ngram in extract_ngrams(text)
            if (n := self.vocabulary.get(ngram)) is not None and _is_readable(ngram)
        }
        minimum = max(max(evidence.values(), default=0.0) / 2, 1e-9)
        top: list[str] = []
        for ngram in sorted(evidence, key=lambda ngram: (-evidence[ngram], ngram)):
            if evidence[ngram] >= minimum and set(ngram.split()).isdisjoint(" ".join(top).split()):
                top.append(ngram)
        return top[:limit]

    def find_nearest_example(self, vector: Vector, frame: str) -> str | None:
        """Return the text of the frame's example most similar to the vector.

        Return None for a frame without examples, or when trained without an embedder.
        """
        rows = [n for n, example in enumerate(self.examples) if example.frame == frame]
        if not rows or not len(self.embedding_weights):
            return None
        coordinates = self.example_coordinates[rows]
        projection = (vector - self.mean_vector) @ self.principal_axes
        cosines = coordinates @ projection / np.maximum(np.linalg.norm(coordinates, axis=1), 1e-9)
        return self.examples[rows[int(cosines.argmax())]].text


def train_classifier(examples: Sequence[FrameExample], vectors: Sequence[Vector]) -> FrameClassifier:
    """Train a classifier on the examples. `vectors` are their embeddings; if empty, only n-grams are used."""
    frames = tuple(dict.fromkeys(example.frame for example in examples))
    documents = [extract_ngrams(example.text) for example in examples]
    counts = Counter(ngram for document in documents for ngram in document)
    frequent = sorted(ngram for ngram, count in counts.items() if count >= MIN_NGRAM_EXAMPLES)
    vocabulary = {ngram: n for n, ngram in enumerate(frequent)}
    idf = np.array([1 + np.log((1 + len(examples)) / (1 + counts[ngram])) for ngram in vocabulary], dtype=np.float32)
    tf_idf = np.zeros((len(examples), len(vocabulary)), dtype=np.float32)
    for row, document in zip(tf_idf, documents, strict=True):
        known = [vocabulary[ngram] for ngram in document if ngram in vocabulary]
        row[known] = _scale_idf(idf[known])
    embeddings = np.stack(vectors) if vectors else np.zeros((len(examples), 0), dtype=np.float32)
    features = np.hstack([embeddings, tf_idf, np.ones((len(examples), 1), dtype=np.float32)])
    weights = _fit_logistic_regression(features, np.array([frames.index(example.frame) for example in examples]))
    dimensions = embeddings.shape[1]
    mean, axes = _compute_principal_axes(embeddings)
    return FrameClassifier(
        frames=frames,
        vocabulary=vocabulary,
        idf=idf,
        ngram_weights=weights[dimensions:-1],
        embedding_weights=weights[:dimensions],
        intercept=weights[-1],
        mean_vector=mean,
        principal_axes=axes,
        example_coordinates=((embeddings - mean) @ axes).astype(np.float32),
        examples=examples,
    )


def _scale_idf(idf: Vector) -> Vector:
    """Scale a TF-IDF vector to the norm `NGRAM_NORM`, so that the length of the text has no effect."""
    return NGRAM_NORM * idf / max(float(np.linalg.norm(idf)), 1e-9)


def _is_readable(ngram: str) -> bool:
    return len(ngram) > 1 and all(word.isalpha() for word in ngram.split())


def _compute_principal_axes(embeddings: Matrix) -> tuple[Vector, Matrix]:
    """Return the mean of the rows, and the first `PRINCIPAL_AXES` principal components as columns."""
    mean = embeddings.mean(axis=0)
    centered = (embeddings - mean).astype(np.float64)
    _, eigenvectors = np.linalg.eigh(centered.T @ centered)
    return mean, eigenvectors[:, ::-1][:, :PRINCIPAL_AXES].astype(np.float32)


def _fit_logistic_regression(features: Matrix, labels: NDArray[np.int_]) -> Matrix:
    """Fit multinomial logistic regression with a ridge penalty by Nesterov's accelerated gradient descent.

    Return one weight per feature (row) and class (column). The dual problem is solved, in which the weights are linear
    combinations of the rows of `features`.
    """
    counts = np.bincount(labels)
    class_weights = np.minimum(counts.mean() / counts, MAX_CLASS_WEIGHT)[labels][:, None].astype(np.float32)
    targets = np.eye(len(counts), dtype=np.float32)[labels]
    gram_matrix, penalty = features @ features.T, 1 / INVERSE_PENALTY
    lipschitz = 0.5 * _estimate_largest_eigenvalue(gram_matrix) * float(class_weights.max()) + penalty
    root = (penalty / lipschitz) ** 0.5
    momentum = (1 - root) / (1 + root)
    current = lookahead = np.zeros_like(targets)
    for _ in range(GRADIENT_STEPS):
        error = _softmax((gram_matrix @ lookahead).astype(np.float32)) - targets
        step = lookahead - (class_weights * error + penalty * lookahead) / lipschitz
        current, lookahead = step, step + momentum * (step - current)
    return features.T @ current


def _softmax(scores: Matrix) -> Matrix:
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def _estimate_largest_eigenvalue(gram_matrix: Matrix) -> float:
    """Estimate the largest eigenvalue by power iteration, and add 5 % to get an upper bound."""
    vector = np.ones(len(gram_matrix), dtype=np.float32)
    for _ in range(20):
        vector = gram_matrix @ vector
        vector /= np.linalg.norm(vector)
    return 1.05 * float(vector @ gram_matrix @ vector)
