"""Fit the model of `newton.heart.identity.wish_models`; with --validate, print cross-validated figures first.

Reads user_rules.yaml, and everyday_wishes.yaml, wishes.yaml and a sample of other messages as further examples.
"""

import json
import random
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from newton.heart.identity.wish_models import (
    MaskedSentence,
    SentenceKind,
    list_rule_feature_names,
    list_rule_features,
    mask_sentences,
)
from newton.providers.minilm import MiniLM
from tests.fitting.standing import load_texts

DATA = Path(__file__).parents[1] / "data" / "user_rules.yaml"
MODEL = Path(__file__).parents[2] / "newton" / "heart" / "identity" / "rule_model.json"
REGULARIZATION = 3.0  # the inverse of its strength
FEATURE_SCALE = 0.6
OWN_WEIGHT = 2.0  # of a sentence of user_rules.yaml; the others have 1
OTHER_MESSAGES = 1_800
FOLDS = 5

linear_model = import_module("sklearn.linear_model")  # scikit-learn has no type stubs


class Example(NamedTuple):
    """A sentence with its kind and its weight in the fit."""

    sentence: MaskedSentence
    kind: SentenceKind
    weight: float


def load_examples() -> list[Example]:
    """Return the sentences of all messages, with their kinds."""
    examples: list[Example] = []
    kinds: dict[SentenceKind, list[str]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    for kind, messages in kinds.items():
        for message in messages:
            marked = re.findall(r"\[\[(.*?)\]\]", message)
            for sentence in mask_sentences(re.sub(r"\[\[|\]\]", "", message)):
                is_marked = not marked or any(sentence.text in part or part in sentence.text for part in marked)
                examples.append(Example(sentence, kind if is_marked else "passing", OWN_WEIGHT))
    standing, passing = load_texts()
    sampled = random.Random(1).sample(sorted(passing), OTHER_MESSAGES)
    single = [found[0] for text in standing if len(found := mask_sentences(text)) == 1]
    others = [sentence for text in sampled for sentence in mask_sentences(text)]
    return [
        *examples,
        *(Example(one, "stating", 1.0) for one in single),
        *(Example(one, "passing", 1.0) for one in others),
    ]


def fit(inputs: Any, kinds: Any, weights: Any) -> Any:
    model = linear_model.LogisticRegression(C=REGULARIZATION, max_iter=3_000)
    return model.fit(inputs, kinds, sample_weight=weights)


def validate(inputs: Any, kinds: Any, weights: Any) -> None:
    """Print what models find in the sentences that they have not seen."""
    folds = np.random.default_rng(0).permutation(len(kinds)) % FOLDS
    for kind in ("stating", "lifting"):
        found = np.zeros(len(kinds))
        for fold in range(FOLDS):
            part = folds == fold
            model = fit(inputs[~part], kinds[~part], weights[~part])
            found[part] = model.predict_proba(inputs[part])[:, list(model.classes_).index(kind)]
        for least in (0.3, 0.5, 0.6, 0.7):
            marked, right = found >= least, kinds == kind
            print(f"{kind} from {least}: recall {marked[right].mean():.3f}, precision {right[marked].mean():.3f}")


def main() -> None:
    examples, names = load_examples(), list_rule_feature_names()
    vectors = np.array(MiniLM().embed_now([one.sentence.text for one in examples]))
    own = [set(list_rule_features(one.sentence)) for one in examples]
    features = np.array([[name in found for name in names] for found in own], dtype=float)
    inputs = np.concatenate([vectors, FEATURE_SCALE * features], axis=1)
    kinds, weights = np.array([one.kind for one in examples]), np.array([one.weight for one in examples])
    if "--validate" in sys.argv:
        validate(inputs, kinds, weights)
    model = fit(inputs, kinds, weights)
    rows = {str(kind): row for kind, row in zip(model.classes_, model.coef_, strict=True)}
    data = {
        "vector_model": MiniLM.identity,
        "bases": {
            str(kind): round(float(base), 3) for kind, base in zip(model.classes_, model.intercept_, strict=True)
        },
        "weights": {kind: [round(float(one), 3) for one in row[: -len(names)]] for kind, row in rows.items()},
        "feature_weights": {
            kind: {
                name: round(float(FEATURE_SCALE * one), 3) for name, one in zip(names, row[-len(names) :], strict=True)
            }
            for kind, row in rows.items()
        },
    }
    MODEL.write_text(json.dumps(data, separators=(",", ":")).replace(',"', ',\n"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
