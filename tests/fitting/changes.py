"""Fit the trees of `newton.heart.statements.change_detection`; print what they find in pairs that they have not seen.

The pairs that trained the reader, and statements about one person that are all true, count without the score of the
reader, which is too sure of them. The pairs of CALIBRATED files and families count with it and without. With --report
the model stays as it is.
"""

import argparse
import itertools
import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from newton.heart.statements.change_detection import ChangeModel, compute_probability, is_comparable
from newton.heart.statements.change_features import extract_features
from newton.providers.minilm import READER_MODEL, MiniLM, PairReader
from tests.fitting.canonical import draw_pairs
from tests.fitting.reader import pairs
from tests.fitting.reader.pairs import StatementPair
from tests.fitting.reader.slot_families import FamilyDraw, load_families

DATA = Path(__file__).parents[1] / "data"
MODEL = Path(__file__).parents[2] / "newton" / "heart" / "statements" / "change_model.json"
TREES = {
    "max_iter": 200,
    "max_leaf_nodes": 12,
    "learning_rate": 0.06,
    "min_samples_leaf": 25,
    "l2_regularization": 5.0,
    "max_features": 0.25,
    "random_state": 0,
}
FOLDS = 6
UPDATE_MIN, UNSURE_MIN = 0.75, 0.6
FAMILY_PAIRS = 4_000
TAUGHT = ("updates_dev", "updates_train")
# The weight of a pair that trained the reader, of a calibrated one without its score, and of a group of
# those with it: unrelated ones are many, and few look-alikes are like those that were written to deceive.
UNREAD, CALIBRATED_UNREAD = 0.4, 0.3
WEIGHTS = {"unrelated": 0.1, "updates_chat_g": 0.2, "families": 0.5}
# The total weight of pairs about different things, by source.
UNRELATED_WEIGHTS = {"tellings": 600, "stores": 1_500, "dossiers": 1_000}

# scikit-learn has no type stubs.
ensemble, model_selection = (import_module(f"sklearn.{name}") for name in ("ensemble", "model_selection"))


class JudgedPair(NamedTuple):
    """A labelled pair with its features and its weight."""

    pair: StatementPair
    features: dict[str, float]
    weight: float

    def without_reading(self, weight: float) -> "JudgedPair":
        """Return the pair as the trees see it where the reader has not read it."""
        return JudgedPair(self.pair, self.features | {"reading": math.nan}, self.weight * weight)


def load_yaml(name: str) -> Any:
    return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))


def load_taught() -> list[tuple[StatementPair, float]]:
    """Return the pairs that count without the score of the reader, with their weights."""
    taught, mentions = pairs.load_labelled(TAUGHT), pairs.load_mentions(pairs.MENTIONED)
    first_person = [one.older for one in taught if one.older.split()[0] in ("I", "I'm", "I've", "My", "We", "Our")]
    plain = [StatementPair(p["older"], p["newer"], pairs.LABELS[p["expect"]], "canonical") for p in draw_pairs()]
    unrelated = _pair_tellings(first_person)
    unrelated += [one._replace(group="stores 0") if not one.label else one for one in pairs.load_stores()]
    unrelated += [one._replace(group="dossiers 0") for one in pairs.load_dossiers()]
    counts = Counter(one.group for one in unrelated)
    weighed = [(one, UNRELATED_WEIGHTS.get(one.group.split(" ")[0], 1) / counts[one.group]) for one in unrelated]
    return [(one, 1.0) for one in (*taught, *mentions, *plain)] + [
        (p, 1.0 if p.label else weight) for p, weight in weighed
    ]


def _pair_tellings(first_person: Sequence[str]) -> list[StatementPair]:
    """Return pairs of statements about one person that do not replace each other."""
    rows = [
        (fact["subject"], text, n)
        for n, fact in enumerate(load_yaml("tellings.yaml")["facts"])
        for _, text in fact["tellings"]
    ]
    both_true = [(a[1], b[1]) for a, b in itertools.permutations(rows, 2) if a[0] == b[0]]
    life = load_yaml("everyday_statements.yaml")
    replaced = {frozenset((one["id"], one.get("replaced_by"))) for one in life}
    others = [(a, b) for a, b in itertools.permutations(life, 2) if frozenset((a["id"], b["id"])) not in replaced]
    both_true += [(a[field], b[field]) for a, b in others for field in ("text", "fact")]
    draw = random.Random(1)
    both_true += [tuple(draw.sample(first_person, 2)) for _ in range(3_000)]
    return [StatementPair(older, newer, 0.0, "tellings 0") for older, newer in both_true]


def load_calibrated(embedder: MiniLM) -> list[StatementPair]:
    """Return labelled pairs that the training of the reader has not seen, and unrelated ones near to them."""
    labelled = [*pairs.load_labelled(pairs.CALIBRATED), *pairs.load_mentions(pairs.MENTIONED_CALIBRATED)]
    families = FamilyDraw(load_families(calibrated=True), 0).draw_pairs(FAMILY_PAIRS)
    near = pairs.draw_unrelated(labelled, lambda texts: np.stack(embedder.embed_now(texts)), each=3, seed=0)
    return [*labelled, *families, *near]


def load_held_out() -> list[StatementPair]:
    """Return labelled pairs on which nothing was fitted."""
    scenarios = [pair for name in pairs.HELD_OUT_SCENARIOS for pair in pairs.load_scenarios(name)]
    return [*pairs.load_labelled(pairs.HELD_OUT), *scenarios, *pairs.load_others("everyday_lives_heldout")]


def judge_pairs(
    rows: Sequence[tuple[StatementPair, float]], embedder: MiniLM, reader: PairReader | None
) -> list[JudgedPair]:
    """Return the pairs that the trees judge, with their features."""
    texts = list(dict.fromkeys(text for pair, _ in rows for text in pair[:2]))
    vectors = dict(zip(texts, embedder.embed_now(texts), strict=True))
    readings = reader.score_pairs([pair[:2] for pair, _ in rows]) if reader else [math.nan] * len(rows)
    judged = list[JudgedPair]()
    for (pair, weight), reading in zip(rows, readings, strict=True):
        cosine = float(vectors[pair.older] @ vectors[pair.newer])
        if is_comparable(pair.older, pair.newer, cosine=cosine):
            features = extract_features(pair.older, pair.newer, cosine=cosine, reading=reading)
            judged.append(JudgedPair(pair, features, weight))
    return [one for one in judged if not one.features["restates"]]


def fit_trees(rows: Sequence[JudgedPair], names: Sequence[str]) -> Any:
    """Return fitted trees of scikit-learn."""
    matrix = np.array([[one.features[name] for name in names] for one in rows])
    labels, weights = np.array([one.pair.label for one in rows]), np.array([one.weight for one in rows])
    rising = [1 if name == "reading" else 0 for name in names]
    model = ensemble.HistGradientBoostingClassifier(**TREES, monotonic_cst=rising)
    return model.fit(matrix, labels, sample_weight=weights)


def validate(taught: Sequence[JudgedPair], calibrated: Sequence[JudgedPair], names: Sequence[str]) -> None:
    """Print what models find in the calibrated pairs of other older statements than those that they were fitted to."""
    groups = [one.pair.older for one in calibrated]
    found = np.zeros(len(calibrated))
    for rest, part in model_selection.GroupKFold(FOLDS).split(groups, groups=groups):
        rows = [calibrated[n] for n in rest]
        model = fit_trees([*taught, *rows, *(one.without_reading(CALIBRATED_UNREAD) for one in rows)], names)
        matrix = np.array([[calibrated[n].features[name] for name in names] for n in part])
        found[part] = model.predict_proba(matrix)[:, 1]
    print_shares(calibrated, found)


def print_shares(rows: Sequence[JudgedPair], found: Any) -> None:
    """Print the share of updates and of unsure pairs for each group, and of updates at other limits."""
    shares = defaultdict[tuple[str, float], list[float]](list)
    for one, probability in zip(rows, found, strict=True):
        shares[one.pair.group, one.pair.label].append(probability)
    for (group, label), values in shares.items():
        array = np.array(values)
        update, unsure = array >= UPDATE_MIN, (array < UPDATE_MIN) & (array >= UNSURE_MIN)
        limits = " ".join(f"{limit}: {(array >= limit).mean():.3f}" for limit in (0.65, 0.7, 0.75, 0.8, 0.85, 0.9))
        kind = "updates" if label else "compatible"
        print(
            f"  {group}, {kind}: {len(array)} pairs, update {update.mean():.3f}, unsure {unsure.mean():.3f}; {limits}"
        )


def write_model(model: Any, names: Sequence[str]) -> None:
    """Write fitted trees as a file of the product."""
    data = {
        "trees": [to_tree(predictor.nodes, names) for (predictor,) in model._predictors],
        "base": float(model._baseline_prediction.item()),
        "update_min": UPDATE_MIN,
        "unsure_min": UNSURE_MIN,
        "vector_model": MiniLM.identity,
    }
    MODEL.write_text(json.dumps(data, separators=(",", ":")).replace("],[[", "],\n[[") + "\n", encoding="utf-8")


def to_tree(nodes: Any, names: Sequence[str]) -> list[list[Any]]:
    """Return the nodes of a tree: [value] for a leaf, else [feature, threshold, left, right, missing goes left]."""
    return [
        [round(float(node["value"]), 5)]
        if node["is_leaf"]
        else [
            names[node["feature_idx"]],
            round(float(node["num_threshold"]), 5),
            int(node["left"]),
            int(node["right"]),
            int(node["missing_go_to_left"]),
        ]
        for node in nodes
    ]


def main() -> None:
    """Fit the trees, write them, and print what they find."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    reader, embedder = PairReader(READER_MODEL), MiniLM()
    if not arguments.report:
        rows = [(pair, WEIGHTS.get(pair.group.split()[0], 1.0)) for pair in load_calibrated(embedder)]
        calibrated = judge_pairs(rows, embedder, reader)
        taught = [one.without_reading(UNREAD) for one in judge_pairs(load_taught(), embedder, None)]
        names = sorted(calibrated[0].features)
        print("Calibrated pairs, by models that have not seen them:")
        validate(taught, calibrated, names)
        unread = [one.without_reading(CALIBRATED_UNREAD) for one in calibrated]
        write_model(fit_trees([*taught, *calibrated, *unread], names), names)
    print("Held out:")
    held_out = judge_pairs([(pair, 1.0) for pair in load_held_out()], embedder, reader)
    model = ChangeModel(**json.loads(MODEL.read_text(encoding="utf-8")))
    for name, rows in (("with the reader", held_out), ("without", [one.without_reading(1.0) for one in held_out])):
        print(f" {name}:")
        print_shares(rows, [compute_probability(one.features, model) for one in rows])


if __name__ == "__main__":
    main()
