"""Fit the model of `newton.heart.statements.change_detection`; with --validate, print cross-validated figures first.

Reads labelled pairs (tests/data/updates_dev.yaml, updates_train.yaml), statements about one subject
(updates_stores.yaml), facts about one thing in several words (updates_dossiers.yaml), plain sentences from templates,
and as further compatible pairs the statements of tellings.yaml and everyday_statements.yaml about one person. Only the
tests that measure read the held-out pairs, unrelated_store.yaml and week.yaml.
"""

import itertools
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from newton.heart.statements.change_detection import MIN_COSINE, combine_vectors
from newton.heart.statements.change_features import extract_features
from newton.providers.minilm import MiniLM
from tests.fitting.canonical import draw_pairs

DATA = Path(__file__).parents[1] / "data"
MODEL = Path(__file__).parents[2] / "newton" / "heart" / "statements" / "change_model.json"
TREES = {
    "max_iter": 300,
    "max_leaf_nodes": 31,
    "learning_rate": 0.05,
    "min_samples_leaf": 15,
    "l2_regularization": 2.0,
    "max_features": 0.1,
    "random_state": 0,
}
REGULARIZATION = 0.02  # of the linear model, the inverse of its strength
FOLDS = 6
UPDATE_MIN, UNSURE_MIN = 0.9, 0.6
LABELLED = ("announced", "plain_same", "plain_other", "compatible")
# The total weight of pairs about different things, by source; labelled pairs weigh 1 each.
UNRELATED_WEIGHTS = {"tellings": 600, "stores": 1_500, "dossiers": 1_000}

# scikit-learn has no type stubs.
ensemble, linear_model, model_selection = (
    import_module(f"sklearn.{name}") for name in ("ensemble", "linear_model", "model_selection")
)

Pair = dict[str, Any]


def load_yaml(name: str) -> Any:
    return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))


def unrelated_pairs(first_person: list[str]) -> list[Pair]:
    """Return pairs of statements about one person that do not replace each other."""
    rows = [
        (fact["subject"], text, n)
        for n, fact in enumerate(load_yaml("tellings.yaml")["facts"])
        for _, text in fact["tellings"]
    ]
    told = [(a[1], b[1]) for a, b in itertools.permutations(rows, 2) if a[0] == b[0]]
    life = load_yaml("everyday_statements.yaml")
    replaced = {frozenset((one["id"], one.get("replaced_by"))) for one in life}
    others = [(a, b) for a, b in itertools.permutations(life, 2) if frozenset((a["id"], b["id"])) not in replaced]
    told += [(a[field], b[field]) for a, b in others for field in ("text", "fact")]
    draw = random.Random(1)
    told += [tuple(draw.sample(first_person, 2)) for _ in range(3_000)]
    return [_unrelated(older, newer, "tellings") for older, newer in told]


def store_pairs() -> list[Pair]:
    """Return the pairs of statements of each store: updates, and statements about one subject that are both true."""
    return [
        pair | {"store": store["subject"]} for store in load_yaml("updates_stores.yaml") for pair in _pair_up(store)
    ]


def dossier_pairs() -> list[Pair]:
    """Return the pairs of tellings of each dossier, also those of one fact: none replaces another."""
    dossiers = [[text for tellings in dossier for text in tellings] for dossier in load_yaml("updates_dossiers.yaml")]
    return [
        _unrelated(older, newer, "dossiers") | {"store": f"dossier {n}"}
        for n, texts in enumerate(dossiers)
        for older, newer in itertools.permutations(texts, 2)
    ]


def _pair_up(store: dict[str, Any]) -> Iterator[Pair]:
    rows = [(key, "", text) for key, text in store["facts"].items()]
    rows += [("", change.get("of", ""), change["text"]) for change in store["changes"]]
    for (key, of, older), (other_key, other_of, newer) in itertools.permutations(rows, 2):
        if key and key == other_of:
            yield {"older": older, "newer": newer, "group": "announced", "expect": "update", "file": "stores"}
        elif not of or of not in (other_key, other_of):
            yield _unrelated(older, newer, "stores")


def _unrelated(older: str, newer: str, file: str) -> Pair:
    return {"older": older, "newer": newer, "group": "unrelated", "expect": "compatible", "file": file}


def with_vectors(pairs: list[Pair]) -> list[Pair]:
    texts = sorted({pair[side] for pair in pairs for side in ("older", "newer")})
    vectors = dict(zip(texts, MiniLM().embed_now(texts), strict=True))
    for pair in pairs:
        older, newer = vectors[pair["older"]], vectors[pair["newer"]]
        pair |= {"cosine": float(older @ newer), "vectors": combine_vectors(older, newer)}
    return [pair for pair in pairs if pair["group"] in LABELLED or pair["cosine"] >= MIN_COSINE]


def main() -> None:
    labelled = [p | {"file": name} for name in ("updates_dev.yaml", "updates_train.yaml") for p in load_yaml(name)]
    labelled = [pair for pair in labelled if pair["expect"] != "conflict"]
    first_person = [p["older"] for p in labelled if p["older"].split()[0] in ("I", "I'm", "I've", "My", "We", "Our")]
    plain = [pair | {"file": "canonical"} for pair in draw_pairs()]
    pairs = with_vectors([*labelled, *plain, *unrelated_pairs(first_person), *store_pairs(), *dossier_pairs()])
    combined = np.array([pair["vectors"] for pair in pairs])
    changed = np.array([pair["expect"] == "update" for pair in pairs])
    groups = np.array([pair["group"] for pair in pairs])
    weights = weigh(pairs)
    folds = split(pairs, groups)
    scores = np.zeros(len(pairs))  # by models that have not seen the pair
    for rest, part in folds:
        scores[part] = fit_linear(combined[rest], changed[rest], weights[rest]).decision_function(combined[part])
    features = [
        extract_features(p["older"], p["newer"], cosine=p["cosine"], vector_score=score)
        for p, score in zip(pairs, scores, strict=True)
    ]
    names = sorted(features[0])
    matrix = np.array([[f[name] for name in names] for f in features])
    restates = matrix[:, names.index("restates")] > 0
    if "--validate" in sys.argv:
        files = np.array([pair["file"] for pair in pairs])
        validate(matrix, names, changed, weights, folds, restates, groups, files)
    linear, model = fit_linear(combined, changed, weights), fit_trees(matrix, names, changed, weights)
    data = {
        "trees": [to_tree(predictor.nodes, names) for (predictor,) in model._predictors],
        "base": float(model._baseline_prediction.item()),
        "update_min": UPDATE_MIN,
        "unsure_min": UNSURE_MIN,
        "vector_model": MiniLM.identity,
        "vector_weights": [round(float(weight), 4) for weight in linear.coef_[0]],
        "vector_base": round(float(linear.intercept_[0]), 4),
    }
    MODEL.write_text(json.dumps(data, separators=(",", ":")).replace("],[[", "],\n[[") + "\n", encoding="utf-8")


def weigh(pairs: list[Pair]) -> Any:
    """Return the weight of each pair."""
    counts = Counter(pair["file"] for pair in pairs if pair["group"] == "unrelated")
    return np.array(
        [UNRELATED_WEIGHTS[p["file"]] / counts[p["file"]] if p["group"] == "unrelated" else 1.0 for p in pairs]
    )


def validate(
    matrix: Any, names: list[str], changed: Any, weights: Any, folds: Any, restates: Any, groups: Any, files: Any
) -> None:
    """Print for each group and file the share of updates and of unsure pairs, by models that have not seen the pair."""
    without = matrix.copy()
    without[:, names.index("vector_score")] = np.nan
    kinds = {"with vectors of the bundled model": matrix, "with vectors of another model": without}
    found = {name: np.zeros(len(groups)) for name in kinds}
    for rest, part in folds:
        model = fit_trees(matrix[rest], names, changed[rest], weights[rest])
        for name, features in kinds.items():
            found[name][part] = np.where(restates[part], 0.0, model.predict_proba(features[part])[:, 1])
    for name, probability in found.items():
        print(f"{name}, from {UPDATE_MIN} update, from {UNSURE_MIN} unsure:")
        for group in (*LABELLED, "unrelated"):
            for file in dict.fromkeys(files):
                print_shares(f"{group}, {file}", probability[(groups == group) & (files == file)])


def print_shares(name: str, found: Any) -> None:
    if len(found):
        update, unsure = found >= UPDATE_MIN, (found < UPDATE_MIN) & (found >= UNSURE_MIN)
        print(f"  {name}: {len(found)} pairs, update {update.mean():.4f}, unsure {unsure.mean():.4f}")


def split(pairs: list[Pair], groups: Any) -> Any:
    """Return the indexes of the rest and of the part of each fold. A store is in one part."""
    stores = [pair.get("store", str(n)) for n, pair in enumerate(pairs)]
    folds = model_selection.StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0)
    return list(folds.split(groups, groups, stores))


def fit_linear(combined: Any, changed: Any, weights: Any) -> Any:
    model = linear_model.LogisticRegression(C=REGULARIZATION, max_iter=500)
    return model.fit(combined, changed, sample_weight=weights)


def fit_trees(matrix: Any, names: list[str], changed: Any, weights: Any) -> Any:
    """Fit with each pair twice, once without the score of its vectors, for other embedding models."""
    without = matrix.copy()
    without[:, names.index("vector_score")] = np.nan
    twice = np.concatenate([weights, weights / 2])
    model = ensemble.HistGradientBoostingClassifier(**TREES)
    return model.fit(np.concatenate([matrix, without]), np.concatenate([changed, changed]), sample_weight=twice)


def to_tree(nodes: Any, names: list[str]) -> list[list[Any]]:
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


if __name__ == "__main__":
    main()
