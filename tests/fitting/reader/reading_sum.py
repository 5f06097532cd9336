"""Fit the sum of the trees of change detection and of the change reader; print what both find in pairs they never saw.

The pairs are those of CALIBRATED files, with unrelated ones. With --report the sum stays as it is. What is written
elsewhere with --out is not judged.
"""

import argparse
import json
import math
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from newton.heart.statements.change_detection import (
    ReadingModel,
    compute_probability,
    detect_change,
    is_comparable,
    is_single_event,
    load_model,
    load_reading_model,
    score_vectors,
    weigh_evidence,
)
from newton.heart.statements.change_features import extract_features
from newton.providers.minilm import READER_MODEL, MiniLM, PairReader
from tests.fitting.reader import pairs
from tests.fitting.reader.pairs import StatementPair

SUM = Path(__file__).parents[3] / "newton" / "heart" / "statements" / "reading_model.json"
REGULARIZATION = 3.0
# Unrelated pairs are many and easy. The look-alikes of the chats were written to deceive: few are like them.
WEIGHTS = {"unrelated": 0.08, "updates_chat_g": 0.2}
# Chosen by hand from what --report prints: as many updates as possible, with hardly more false ones than the trees
# alone find in the compatible groups, and none in the six weeks of tests/data/everyday_statements.yaml.
UPDATE_MIN, UNSURE_MIN, DOUBT = 0.75, 0.5, -1.5

# scikit-learn has no type stubs.
linear_model = import_module("sklearn.linear_model")


class ReadPairs:
    """Pairs with the vectors of their texts and the score of a reader for each."""

    def __init__(self, rows: Sequence[StatementPair], reader: PairReader, embedder: MiniLM) -> None:
        """Read pairs."""
        self.rows = rows
        texts = list(dict.fromkeys(text for pair in rows for text in pair[:2]))
        self._vectors = dict(zip(texts, embedder.embed_now(texts), strict=True))
        self._readings = reader.score_pairs([pair[:2] for pair in rows])

    def list_evidence(self) -> list[tuple[float, ...] | None]:
        """Return what the sum weighs for each pair, None for those that the models do not judge."""
        return [self._weigh(pair, reading) for pair, reading in zip(self.rows, self._readings, strict=True)]

    def _weigh(self, pair: StatementPair, reading: float) -> tuple[float, ...] | None:
        older, newer = self._vectors[pair.older], self._vectors[pair.newer]
        cosine = float(older @ newer)
        if not is_comparable(pair.older, pair.newer, cosine=cosine) or is_single_event(pair.older, pair.newer):
            return None
        features = extract_features(pair.older, pair.newer, cosine=cosine, vector_score=score_vectors(older, newer))
        probability = compute_probability(features, load_model())
        return None if features["restates"] else weigh_evidence(probability, reading, cosine)

    def count_verdicts(self, *, with_reader: bool) -> list[str]:
        """Return a line for each group of pairs: how many there are, and the shares of both verdicts."""
        verdicts = [self._judge(*one, with_reader) for one in zip(self.rows, self._readings, strict=True)]
        lines = list[str]()
        for group, label in dict.fromkeys((pair.group, pair.label) for pair in self.rows):
            places = [n for n, pair in enumerate(self.rows) if (pair.group, pair.label) == (group, label)]
            found = [verdicts[n] for n in places]
            shares = ", ".join(f"{kind} {found.count(kind) / len(found):.3f}" for kind in ("update", "unsure"))
            lines.append(f"  {group}, {'updates' if label else 'compatible'}: {len(found)} pairs, {shares}")
        return lines

    def _judge(self, pair: StatementPair, reading: float, with_reader: bool) -> str:
        older, newer = self._vectors[pair.older], self._vectors[pair.newer]
        return detect_change(
            pair.older,
            pair.newer,
            cosine=float(older @ newer),
            vector_score=score_vectors(older, newer),
            reading=reading if with_reader else math.nan,
        ).kind


def fit(read: ReadPairs) -> ReadingModel:
    """Return the sum that fits pairs best, with the limits."""
    judged = [(pair, one) for pair, one in zip(read.rows, read.list_evidence(), strict=True) if one]
    labels: Any = np.array([pair.label for pair, _ in judged])
    weights = np.array([WEIGHTS.get(pair.group, 1.0) for pair, _ in judged])
    model = linear_model.LogisticRegression(C=REGULARIZATION, max_iter=2_000)
    model.fit(np.array([one for _, one in judged]), labels, sample_weight=weights)
    numbers = [round(float(number), 4) for number in (*model.intercept_, *model.coef_[0])]
    return ReadingModel(*numbers, update_min=UPDATE_MIN, unsure_min=UNSURE_MIN, doubt=DOUBT)


def report(reader: PairReader, embedder: MiniLM, calibrated: ReadPairs) -> None:
    """Print the verdicts with and without the reader on pairs that the training left out."""
    held_out = [
        *pairs.load_labelled(pairs.HELD_OUT),
        *(pair for name in pairs.HELD_OUT_SCENARIOS for pair in pairs.load_scenarios(name)),
        *pairs.load_others("everyday_lives_heldout"),
    ]
    for name, read in (("Calibration", calibrated), ("Held out", ReadPairs(held_out, reader, embedder))):
        for with_reader in (False, True):
            print(f"{name}, {'with the reader' if with_reader else 'the trees alone'}:")
            print(*read.count_verdicts(with_reader=with_reader), sep="\n")


def main() -> None:
    """Fit the sum and print what it finds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--reader", type=Path, default=READER_MODEL)
    parser.add_argument("--out", type=Path, default=SUM)
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    reader, embedder = PairReader(arguments.reader), MiniLM()
    labelled = pairs.load_labelled(pairs.CALIBRATED)
    unrelated = pairs.draw_unrelated(labelled, lambda texts: np.stack(embedder.embed_now(texts)), each=3, seed=0)
    calibrated = ReadPairs([*labelled, *unrelated], reader, embedder)
    if not arguments.report:
        text = json.dumps(fit(calibrated)._asdict(), indent=1)
        arguments.out.write_text(text + "\n", encoding="utf-8")
        load_reading_model.cache_clear()
    if arguments.out.resolve() == SUM:
        report(reader, embedder, calibrated)


if __name__ == "__main__":
    main()
