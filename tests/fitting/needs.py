"""Fit the model of `newton.cognition.questions.needs`, and print how it reads the inputs of stores that are left out.

Reads the stores of tests/data/need_stores; those of the folder `unseen` are only read for the figures.
"""

import json
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from newton.cognition.questions.needs import NEEDS, VECTOR_SCALE, list_features
from newton.providers.minilm import MiniLM

STORES = Path(__file__).parents[1] / "data" / "need_stores"
MODEL = Path(__file__).parents[2] / "newton" / "cognition" / "questions" / "need_model.json"
REGULARIZATION = 0.1  # the inverse of its strength

linear_model = import_module("sklearn.linear_model")  # scikit-learn has no type stubs


def read_inputs(folder: Path) -> tuple[Any, Any, Any]:
    """Return the features with vector, the need and the store of each input of the stores of a folder."""
    stores = [json.loads(path.read_text(encoding="utf-8"))["inputs"] for path in sorted(folder.glob("*.json"))]
    texts = [one["text"] for store in stores for one in store]
    vectors = VECTOR_SCALE * np.array(MiniLM().embed_now(texts))
    inputs = np.concatenate([np.array(list(map(list_features, texts))), vectors], axis=1)
    needs = np.array([one["need"] for store in stores for one in store])
    return inputs, needs, np.repeat(np.arange(len(stores)), list(map(len, stores)))


def fit(inputs: Any, needs: Any) -> Any:
    """Return a logistic model of the inputs."""
    return linear_model.LogisticRegression(C=REGULARIZATION, max_iter=1_000).fit(inputs, needs)


def show(name: str, read: Any, needs: Any) -> None:
    """Print the share of inputs that are read rightly, and as what those of each need are read."""
    table = {need: dict(Counter(map(str, read[needs == need]))) for need in NEEDS}
    print(f"{name}: {(read == needs).mean():.3f} of {len(needs)} right, {table}")


def main() -> None:
    inputs, needs, stores = read_inputs(STORES)
    read = np.empty(len(needs), dtype=object)
    for store in np.unique(stores):
        read[stores == store] = fit(inputs[stores != store], needs[stores != store]).predict(inputs[stores == store])
    show("stores left out", read, needs)
    model = fit(inputs, needs)
    assert list(model.classes_) == list(NEEDS)
    unseen, wanted, _ = read_inputs(STORES / "unseen")
    show("unseen stores", model.predict(unseen), wanted)
    count = len(list_features(""))
    rows = [[round(float(one), 3) for one in row] for row in model.coef_]
    data = {
        "vector_model": MiniLM.identity,
        "base": [round(float(one), 3) for one in model.intercept_],
        "features": [row[:count] for row in rows],
        "vector": [row[count:] for row in rows],
    }
    MODEL.write_text(f"{json.dumps(data)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
