"""Fit the model of `newton.heart.statements.change_detection`, and print cross-validated figures.

Reads labelled pairs (tests/data/updates_dev.yaml, updates_train.yaml), and as further compatible pairs the statements of
tellings.yaml and everyday_statements.yaml about one person. The held-out pairs are read only by the test that measures.
"""

import itertools
import json
import random
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from newton.heart.statements.change_detection import MIN_COSINE, find_exclusion
from newton.heart.statements.change_features import extract_features
from newton.providers.minilm import MiniLM

DATA = Path(__file__).parents[1] / "data"
MODEL = Path(__file__).parents[2] / "newton" / "heart" / "statements" / "change_model.json"
PARAMETERS = {"max_iter": 120, "max_leaf_nodes": 8, "learning_rate": 0.1, "min_samples_leaf": 8, "random_state": 0}
UPDATE_MIN, UNSURE_MIN = 0.95, 0.7
LABELLED = ("announced", "plain_same", "plain_other", "compatible")
UNRELATED_WEIGHT = 600  # the total weight of pairs about different things; labelled pairs weigh 1 each

# scikit-learn has no type stubs.
ensemble, model_selection = (import_module(f"sklearn.{name}") for name in ("ensemble", "model_selection"))

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
    return [{"older": older, "newer": newer, "group": "unrelated", "expect": "compatible"} for older, newer in told]


def with_cosines(pairs: list[Pair]) -> list[Pair]:
    texts = sorted({pair[side] for pair in pairs for side in ("older", "newer")})
    vectors = dict(zip(texts, MiniLM().embed_now(texts), strict=True))
    measured = [pair | {"cosine": float(vectors[pair["older"]] @ vectors[pair["newer"]])} for pair in pairs]
    return [pair for pair in measured if pair["group"] in LABELLED or pair["cosine"] >= MIN_COSINE]


def main() -> None:
    labelled = [p for name in ("updates_dev.yaml", "updates_train.yaml") for p in load_yaml(name)]
    labelled = [pair for pair in labelled if pair["expect"] != "conflict"]
    first_person = [p["older"] for p in labelled if p["older"].split()[0] in ("I", "I'm", "I've", "My", "We", "Our")]
    pairs = with_cosines([*labelled, *unrelated_pairs(first_person)])
    features = [extract_features(p["older"], p["newer"], cosine=p["cosine"]) for p in pairs]
    names = sorted(features[0])
    matrix = np.array([[f[name] for name in names] for f in features])
    changed = np.array([p["expect"] == "update" for p in pairs])
    groups = np.array([p["group"] for p in pairs])
    unrelated = groups == "unrelated"
    weights = np.where(unrelated, UNRELATED_WEIGHT / unrelated.sum(), 1.0)
    excluded = np.array([bool(find_exclusion(f)) for f in features])
    scores = np.zeros(len(pairs))
    for rest, part in model_selection.StratifiedKFold(6, shuffle=True, random_state=0).split(matrix, groups):
        own = rest[~excluded[rest]]
        scores[part] = fit(matrix[own], changed[own], weights[own]).predict_proba(matrix[part])[:, 1]
    scores[excluded] = 0.0
    for group in (*LABELLED, "unrelated"):
        own = scores[groups == group]
        print(f"{group}: {len(own)} pairs, update {(own >= UPDATE_MIN).mean():.4f}, ", end="")
        print(f"unsure {((own < UPDATE_MIN) & (own >= UNSURE_MIN)).mean():.4f}")
    model = fit(matrix[~excluded], changed[~excluded], weights[~excluded])
    trees = [to_tree(predictor.nodes, names) for (predictor,) in model._predictors]
    data = {
        "trees": trees,
        "base": float(model._baseline_prediction.item()),
        "update_min": UPDATE_MIN,
        "unsure_min": UNSURE_MIN,
    }
    MODEL.write_text(json.dumps(data, separators=(",", ":")).replace("],[[", "],\n[[") + "\n", encoding="utf-8")
    assert abs(score(data, features[0]) - model.decision_function(matrix[:1])[0]) < 1e-3


def fit(matrix: Any, changed: Any, weights: Any) -> Any:
    return ensemble.HistGradientBoostingClassifier(**PARAMETERS).fit(matrix, changed, sample_weight=weights)


def to_tree(nodes: Any, names: list[str]) -> list[list[Any]]:
    """Return the nodes of a tree: [value] for a leaf, else [feature, threshold, left, right]."""
    return [
        [round(float(node["value"]), 5)]
        if node["is_leaf"]
        else [names[node["feature_idx"]], round(float(node["num_threshold"]), 5), int(node["left"]), int(node["right"])]
        for node in nodes
    ]


def score(data: dict[str, Any], features: dict[str, float]) -> float:
    """Return the log odds of the exported model."""
    total = data["base"]
    for tree in data["trees"]:
        node = tree[0]
        while len(node) > 1:
            node = tree[node[2] if features[node[0]] <= node[1] else node[3]]
        total += node[0]
    return total


if __name__ == "__main__":
    main()
