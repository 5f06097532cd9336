"""Classifier that assigns an input to a frame: multinomial logistic regression, its features and its fit. Pure.

The features are n-grams, the form of the input (`input_features`), and its embedding. English and all other languages
have separate weights for the embedding unless the embedding model is multilingual; features of form share theirs.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from newton.cognition.frames.input_features import FeatureExtractor, InputFeatures

Vector: TypeAlias = NDArray[np.float32]
Matrix: TypeAlias = NDArray[np.float32]

NGRAM_NORM = 1.4  # norm of the n-gram vector; the embedding has norm 1
FORM_NORM = 1.4  # norm of the vector of features of form
# Divisors of the scores, so that the probability is calibrated: on examples whose scenario is in no training example.
ENGLISH_TEMPERATURE = 1.2
OTHER_TEMPERATURE = 1.3
UNKNOWN_TEMPERATURE = 4.0  # of an input in an unknown language, of which only punctuation and length are read
MIN_REASON_SHARE = 0.15  # of the largest weight, for a feature to be named as a reason


class FrameExample(NamedTuple):
    """An example input and the frame to which it belongs."""

    frame: str
    text: str


class FrameFeature(NamedTuple):
    """A feature that speaks for one frame against another, with its weight in log odds; below 0 it speaks against.

    `kind` is form, words, embedding, patterns or session. `phrase` are the words of the input that gave the feature.
    """

    kind: str
    name: str
    phrase: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameClassifier:
    """Trained classifier: the weights of a multinomial logistic regression, one column per frame in `frames`.

    `vocabulary` and `form_vocabulary` give the row of an n-gram and of a feature of form in their weights; `idf` are
    the inverse document frequencies of the n-grams. `embedding_weights` are those for English inputs,
    `other_embedding_weights` for all others; they have no rows when trained without an embedder. `example_coordinates`
    are the embeddings of `examples`, which are sorted by frame, minus `mean_vector`, projected on `principal_axes`.
    If it `is_shipped`, its frames are those of Newton, and the reader of inputs may take its place.
    """

    frames: tuple[str, ...]
    vocabulary: Mapping[str, int]
    idf: Vector
    ngram_weights: Matrix
    form_vocabulary: Mapping[str, int]
    form_weights: Matrix
    embedding_weights: Matrix
    other_embedding_weights: Matrix
    intercept: Vector
    mean_vector: Vector
    principal_axes: Matrix
    example_coordinates: Matrix
    examples: Sequence[FrameExample]
    extractor: FeatureExtractor
    is_shipped: bool = False

    def predict_log_proba(self, features: InputFeatures, vector: Vector | None) -> dict[str, float]:
        """Return the log probability of each frame. Without a vector, the embedding has no effect."""
        score = self.intercept + self._score_embedding(features, vector)
        if rows := find_rows(features.ngrams, self.vocabulary):
            score = score + scale_idf(self.idf[rows]) @ self.ngram_weights[rows]
        if rows := find_rows(features.form, self.form_vocabulary):
            score = score + scale_form(len(rows)) * self.form_weights[rows].sum(axis=0)
        score = (score - score.max()) / _select_temperature(features)
        return dict(zip(self.frames, (score - np.log(np.exp(score).sum())).tolist(), strict=True))

    def explain(self, features: InputFeatures, vector: Vector | None, frame: str, other: str) -> list[FrameFeature]:
        """Return the features that speak most for `frame` against `other`, and those against it, largest first."""
        columns = [self.frames.index(frame), self.frames.index(other)]
        found = [*self._weigh_form(features, columns), *self._weigh_words(features, columns)]
        if vector is not None and len(self.embedding_weights):
            score = self._score_embedding(features, vector)[columns]
            found.append(FrameFeature("embedding", "similarity to the examples", "", float(score[0] - score[1])))
        temperature = _select_temperature(features)
        calibrated = [feature._replace(weight=feature.weight / temperature) for feature in found]
        return sorted(calibrated, key=lambda feature: (-abs(feature.weight), feature.name))

    def find_nearest_example(self, vector: Vector, frame: str) -> str | None:
        """Return the text of the frame's example most similar to the vector.

        Return None for a frame without examples, or when trained without an embedder.
        """
        first = bisect_left(self.examples, frame, key=_get_frame)
        after = bisect_right(self.examples, frame, key=_get_frame)
        if first == after or not len(self.embedding_weights):
            return None
        coordinates = self.example_coordinates[first:after]
        projection = (vector - self.mean_vector) @ self.principal_axes
        cosines = coordinates @ projection / np.maximum(np.linalg.norm(coordinates, axis=1), 1e-9)
        return self.examples[first + int(cosines.argmax())].text

    def _score_embedding(self, features: InputFeatures, vector: Vector | None) -> Vector:
        weights = self.embedding_weights if features.is_english else self.other_embedding_weights
        embedding = self.mean_vector if vector is None else vector
        return embedding[: len(weights)] @ weights

    def _weigh_form(self, features: InputFeatures, columns: Sequence[int]) -> list[FrameFeature]:
        names = [name for name in features.form if name in self.form_vocabulary]
        weights = self.form_weights[[self.form_vocabulary[name] for name in names]][:, columns] * scale_form(len(names))
        return [
            FrameFeature("form", name, _join_phrases(name, features.phrases), float(weight[0] - weight[1]))
            for name, weight in zip(names, weights, strict=True)
        ]

    def _weigh_words(self, features: InputFeatures, columns: Sequence[int]) -> list[FrameFeature]:
        """Return the readable n-grams: words and word pairs, not n-grams of masked grammar."""
        rows = find_rows(features.ngrams, self.vocabulary)
        scaled = scale_idf(self.idf[rows])[:, None] * self.ngram_weights[rows][:, columns]
        names = [ngram for ngram in features.ngrams if ngram in self.vocabulary]
        return [
            FrameFeature("words", name, name, float(weight[0] - weight[1]))
            for name, weight in zip(names, scaled, strict=True)
            if _is_readable(name)
        ]


def _get_frame(example: FrameExample) -> str:
    return example.frame


def _select_temperature(features: InputFeatures) -> float:
    if not features.languages:
        return UNKNOWN_TEMPERATURE
    return ENGLISH_TEMPERATURE if features.is_english else OTHER_TEMPERATURE


def select_reasons(features: Sequence[FrameFeature], *, limit: int) -> list[FrameFeature]:
    """Return the first features with enough weight, without words that an earlier feature has already."""
    minimum = MIN_REASON_SHARE * max((abs(feature.weight) for feature in features), default=0.0)
    selected, words = list[FrameFeature](), set[str]()
    for feature in features:
        own = set(feature.phrase.split()) if feature.kind == "words" else set[str]()
        if abs(feature.weight) >= max(minimum, 1e-9) and not own & words:
            selected.append(feature)
            words |= own
    return selected[:limit]


def find_rows(names: "frozenset[str] | tuple[str, ...]", vocabulary: Mapping[str, int]) -> list[int]:
    return [row for name in names if (row := vocabulary.get(name)) is not None]


def scale_idf(idf: Vector) -> Vector:
    """Scale a TF-IDF vector to the norm `NGRAM_NORM`, so that the length of the text has no effect."""
    return NGRAM_NORM * idf / max(float(np.linalg.norm(idf)), 1e-9)


def scale_form(count: int) -> float:
    """Return the value of each of `count` features of form, so that their vector has the norm `FORM_NORM`."""
    return FORM_NORM / max(count, 1) ** 0.5


def _join_phrases(name: str, phrases: Mapping[str, str]) -> str:
    parts = (part.removeprefix("starts with ") for part in name.split(" + "))
    return " … ".join(dict.fromkeys(phrases[part] for part in parts if part in phrases))


def _is_readable(ngram: str) -> bool:
    return len(ngram) > 1 and all(word.isalpha() for word in ngram.split())


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
