"""Fit the model of `newton.heart.identity.wish_models`; with --validate, print cross-validated figures first.

Reads everyday_wishes.yaml and wishes.yaml. Other messages (chat_messages_train.yaml, ui_requests_train.yaml) are
examples without a standing wish, unless the patterns find one in them.
"""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import yaml

from newton.heart.identity.standing_wishes import find_standing_type
from newton.heart.identity.wish_models import MAX_WORDS, list_standing_feature_names, list_standing_features
from newton.providers.minilm import MiniLM

DATA = Path(__file__).parents[1] / "data"
MODEL = Path(__file__).parents[2] / "newton" / "heart" / "identity" / "standing_model.json"
OTHERS = ("chat_messages_train.yaml", "ui_requests_train.yaml")
SPEAKER = "User: "  # with which the text of a message is embedded
REGULARIZATION = 10.0  # the inverse of its strength
FEATURE_SCALE = 0.6
FOLDS = 6
MIN_PROBABILITY = 0.4

linear_model = import_module("sklearn.linear_model")  # scikit-learn has no type stubs


def load_texts() -> tuple[list[str], list[str]]:
    """Return the texts with and without a standing wish."""
    everyday, others = _load("everyday_wishes.yaml")["train"], _load("wishes.yaml")
    standing = [*everyday["standing"], *(one["text"] for half in others["standing"].values() for one in half)]
    passing = [*everyday["passing"], *(text for half in others["passing"].values() for text in half)]
    plain = {
        text for name in ("chat_messages_train.yaml", "ui_requests_train.yaml") for text in _iter_texts(_load(name))
    }
    return standing, [
        *passing,
        *sorted(t for t in plain if 2 < len(t.split()) <= MAX_WORDS and not find_standing_type(t)),
    ]


def _load(name: str) -> Any:
    return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))


def _iter_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        parts = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
        for one in parts:
            yield from _iter_texts(one)


def fit(inputs: Any, labels: Any) -> Any:
    """Return a logistic model of the inputs."""
    return linear_model.LogisticRegression(C=REGULARIZATION, max_iter=3_000).fit(inputs, labels)


def validate(inputs: Any, labels: Any) -> None:
    """Print how many of the texts are marked by models that have not seen them."""
    folds, found = np.random.default_rng(0).permutation(len(labels)) % FOLDS, np.zeros(len(labels))
    for fold in range(FOLDS):
        part = folds == fold
        found[part] = fit(inputs[~part], labels[~part]).predict_proba(inputs[part])[:, 1]
    for least in (0.2, 0.3, 0.4, 0.5, 0.6):
        marked = found >= least
        print(f"from {least}: recall {marked[labels].mean():.3f}, precision {labels[marked].mean():.3f}")


def main() -> None:
    standing, passing = load_texts()
    texts, names = [*standing, *passing], list_standing_feature_names()
    vectors = np.array(MiniLM().embed_now([f"{SPEAKER}{text}" for text in texts]))
    features = np.array([[name in own for name in names] for own in map(list_standing_features, texts)], dtype=float)
    inputs = np.concatenate([vectors, FEATURE_SCALE * features], axis=1)
    labels = np.array([True] * len(standing) + [False] * len(passing))
    if "--validate" in sys.argv:
        validate(inputs, labels)
    model = fit(inputs, labels)
    weights = model.coef_[0]
    data = {
        "vector_model": MiniLM.identity,
        "min_probability": MIN_PROBABILITY,
        "base": round(float(model.intercept_[0]), 3),
        "weights": [round(float(weight), 3) for weight in weights[: -len(names)]],
        "feature_weights": {
            name: round(float(FEATURE_SCALE * weight), 3)
            for name, weight in zip(names, weights[-len(names) :], strict=True)
        },
    }
    MODEL.write_text(json.dumps(data, separators=(",", ":")).replace(',"', ',\n"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
