"""Fit of the frame classifier to examples by multinomial logistic regression. Pure."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from newton.cognition.frames.classifier import (
    FrameClassifier,
    FrameExample,
    Matrix,
    Vector,
    find_rows,
    scale_form,
    scale_idf,
)
from newton.cognition.frames.input_features import FeatureExtractor, InputFeatures

# Chosen on the development inputs (scripts/measure-frames); accuracy is stable within a factor of two of each.
INVERSE_PENALTY = 10.0  # 1 / ridge penalty
MIN_NGRAM_EXAMPLES = 3  # minimum document frequency of an n-gram
MIN_FORM_EXAMPLES = 5  # the same of a feature of form
MAX_CLASS_WEIGHT = 3.0  # largest weight of an example of a rare frame
GRADIENT_STEPS = 300
PRINCIPAL_AXES = 48  # dimensions of the stored examples


def train_classifier(
    examples: Sequence[FrameExample], vectors: Sequence[Vector], extractor: FeatureExtractor, *, is_multilingual: bool
) -> FrameClassifier:
    """Train a classifier on the examples.

    `vectors` are their embeddings; if empty, the embedding has no effect. `is_multilingual` says that equal meaning has
    similar embeddings in all languages, so all of them share the weights of the embedding.
    """
    frames = tuple(dict.fromkeys(example.frame for example in examples))
    inputs = [extractor.extract(example.text) for example in examples]
    vocabulary, counts = _count_frequent([each.ngrams for each in inputs], MIN_NGRAM_EXAMPLES)
    idf = np.array([1 + np.log((1 + len(examples)) / (1 + count)) for count in counts], dtype=np.float32)
    form_vocabulary, _ = _count_frequent([each.form for each in inputs], MIN_FORM_EXAMPLES)
    embeddings = np.stack(vectors) if vectors else np.zeros((len(examples), 0), dtype=np.float32)
    blocks = [
        *_split_embeddings(embeddings, inputs, is_multilingual=is_multilingual),
        _build_ngram_matrix(inputs, vocabulary, idf),
        _build_form_matrix(inputs, form_vocabulary),
        np.ones((len(examples), 1), dtype=np.float32),
    ]
    labels = np.array([frames.index(example.frame) for example in examples])
    weights = _fit_logistic_regression(np.hstack(blocks), labels)
    english, other, ngrams, form, intercept = np.split(weights, np.cumsum([block.shape[1] for block in blocks])[:-1])
    mean, axes = _compute_principal_axes(embeddings)
    return FrameClassifier(
        frames=frames,
        vocabulary=vocabulary,
        idf=idf,
        ngram_weights=ngrams,
        form_vocabulary=form_vocabulary,
        form_weights=form,
        embedding_weights=english,
        other_embedding_weights=english if is_multilingual else other,
        intercept=intercept[0],
        mean_vector=mean,
        principal_axes=axes,
        example_coordinates=((embeddings - mean) @ axes).astype(np.float32),
        examples=examples,
        extractor=extractor,
    )


def _count_frequent(
    documents: "Sequence[frozenset[str]] | Sequence[tuple[str, ...]]", min_count: int
) -> tuple[dict[str, int], list[int]]:
    """Return the row of each name that enough documents have, and in how many documents each is, by row."""
    counts = Counter(name for document in documents for name in set(document))
    frequent = sorted(name for name, count in counts.items() if count >= min_count)
    return {name: n for n, name in enumerate(frequent)}, [counts[name] for name in frequent]


def _split_embeddings(embeddings: Matrix, inputs: Sequence[InputFeatures], *, is_multilingual: bool) -> list[Matrix]:
    """Return the embeddings of English inputs and those of all others, with rows of zeros for the rest."""
    if is_multilingual:
        return [embeddings, embeddings[:, :0]]
    is_english = np.array([each.is_english for each in inputs])[:, None]
    return [embeddings * is_english, embeddings * ~is_english]


def _build_ngram_matrix(inputs: Sequence[InputFeatures], vocabulary: dict[str, int], idf: Vector) -> Matrix:
    matrix = np.zeros((len(inputs), len(vocabulary)), dtype=np.float32)
    for row, each in zip(matrix, inputs, strict=True):
        columns = find_rows(each.ngrams, vocabulary)
        row[columns] = scale_idf(idf[columns])
    return matrix


def _build_form_matrix(inputs: Sequence[InputFeatures], vocabulary: dict[str, int]) -> Matrix:
    matrix = np.zeros((len(inputs), len(vocabulary)), dtype=np.float32)
    for row, each in zip(matrix, inputs, strict=True):
        columns = find_rows(each.form, vocabulary)
        row[columns] = scale_form(len(columns))
    return matrix


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
