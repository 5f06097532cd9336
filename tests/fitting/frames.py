"""Fit the frame classifier; with --validate, print cross-validated figures instead.

Reads the examples in frames/*.yaml (English) and frames/languages/*.yaml and the words of newton/text/data, and
writes frames/learnt-*.npz: one file for the embedding model that ships with Newton, one for no embedding model. First
it writes newton/text/data/known_words.yaml, the words of the examples by which languages are detected.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from newton.cognition.frames import classifier
from newton.cognition.frames.classifier import FrameExample, Vector, train_classifier
from newton.cognition.frames.training import load_extractor, load_or_train
from newton.content.frames import load_english_examples, load_frame_languages, load_frames
from newton.providers.minilm import MiniLM
from newton.text.greetings import strip_greeting
from tests.fitting.known_words import write_known_words

FOLDER = Path(__file__).parents[2] / "frames"
FOLDS = 4
TEMPERATURES = np.arange(0.6, 3.01, 0.1)


class FoldExample(NamedTuple):
    """An example, its language and its fold. Translations of one scenario are in one fold."""

    example: FrameExample
    language: str
    fold: int


def fit() -> None:
    """Write the known words and the classifiers of the shipped frames, in place of older ones."""
    write_known_words()
    for stale in FOLDER.glob("learnt-*.npz"):
        stale.unlink()
    for embedder in (MiniLM(), None):
        asyncio.run(load_or_train(load_frames(), embedder, cache=FOLDER))
    print(*sorted(FOLDER.glob("learnt-*.npz")), sep="\n")


def validate() -> None:
    """Print accuracy and best temperature on examples of scenarios that are in no training example."""
    told = list(_list_fold_examples())
    vectors = MiniLM().embed_now([each.example.text for each in told])
    classifier.ENGLISH_TEMPERATURE = classifier.OTHER_TEMPERATURE = 1.0
    rows = [row for fold in range(FOLDS) for row in _predict_fold(told, vectors, fold)]
    for title, is_english in (("English", True), ("others", False)):
        group = [(label, scores) for each, label, scores in rows if (each.language == "en") == is_english]
        print(title, _describe([label for label, _ in group], np.stack([scores for _, scores in group])))


def _list_fold_examples() -> Iterator[FoldExample]:
    english = set(load_english_examples())
    for frame in load_frames().values():
        texts = [text for text in frame.examples if text in english]
        for n, text in enumerate(texts):
            yield FoldExample(FrameExample(frame.name, strip_greeting(text)), "en", n % FOLDS)
    for language in load_frame_languages().values():
        for name, texts in language.examples.items():
            for n, text in enumerate(texts):
                yield FoldExample(FrameExample(name, strip_greeting(text)), language.name, n % FOLDS)


def _predict_fold(
    told: Sequence[FoldExample], vectors: Sequence[Vector], fold: int
) -> Iterator[tuple[FoldExample, int, Vector]]:
    """Train on all other folds; yield the examples of this one with the number and log probabilities of the frames."""
    rest = [n for n, each in enumerate(told) if each.fold != fold]
    examples, extractor = [told[n].example for n in rest], load_extractor()
    trained = train_classifier(examples, [vectors[n] for n in rest], extractor, is_multilingual=False)
    names = sorted(trained.frames)
    for n, each in enumerate(told):
        if each.fold == fold:
            scores = trained.predict_log_proba(extractor.extract(each.example.text), vectors[n])
            yield each, names.index(each.example.frame), np.array([scores[name] for name in names], np.float32)


def _describe(labels: Sequence[int], scores: Vector) -> str:
    rows = np.arange(len(labels))
    losses = [-_log_softmax((scores / each).astype(np.float32))[rows, labels].mean() for each in TEMPERATURES]
    accuracy, best = float((scores.argmax(axis=1) == labels).mean()), TEMPERATURES[int(np.argmin(losses))]
    return f"{len(labels)} examples, accuracy {accuracy:.1%}, best temperature {best:.1f}, log loss {min(losses):.3f}"


def _log_softmax(scores: Vector) -> Vector:
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


if __name__ == "__main__":
    validate() if "--validate" in sys.argv[1:] else fit()
