"""Classifier that assigns an input to a frame: multinomial logistic regression on features of three kinds. Pure.

The features are n-grams, the form of the input (`form.py`), and its embedding. English and all other languages have
separate weights for the embedding unless the embedding model is multilingual; features of form share theirs.
"""

from bisect import bisect_left, bisect_right
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
