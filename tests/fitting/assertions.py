"""Fit the model of `newton.heart.statements.assertion` to the messages of tests/data/told.

Each message has parts that its author asserts and parts that they don't, as other people than the developers have
written them. The held-out tests don't read these. Messages in English count too: people think alike.
"""

import json
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from newton.heart.statements.answers import find_question
from newton.heart.statements.assertion import MessagePart, list_features
from newton.heart.statements.statement_candidates import mask_message
from newton.text.languages import detect_language
from newton.text.patterns import list_sentences

DATA = Path(__file__).parents[1] / "data" / "told"
MODEL = Path(__file__).parents[2] / "newton" / "heart" / "statements" / "assertion_model.json"
FEATURE_SCALE = 0.5  # of standardized features
REGULARIZATION = 0.03  # the inverse of its strength
MIN_SHARED = 0.5  # of a sentence that must be in a labelled part

linear_model = import_module("sklearn.linear_model")  # scikit-learn has no type stubs

Message = dict[str, Any]


def load_told() -> list[Message]:
    """Return the labelled messages of all authors."""
    return [one for path in sorted(DATA.glob("*.yaml")) for one in yaml.safe_load(path.read_text(encoding="utf-8"))]


def list_parts(message: Message) -> Iterator[tuple[dict[str, float], bool]]:
    """Yield the features of the labelled sentences of a message that ask nothing, and whether they are asserted."""
    text = message["text"]
    masked, code = mask_message(text)[1], detect_language(text)
    parts = [MessagePart(*one) for one in list_sentences(masked, code)]
    answers = bool(find_question(message.get("question", "")))
    found = list_features(masked, parts, code, earlier=message.get("earlier", ""), answers=answers)
    for one, features in zip(parts, found, strict=True):
        label = _label(message, one.start, one.end)
        if label is not None and not one.asks:
            yield features, label


def _label(message: Message, start: int, end: int) -> bool | None:
    """Return whether a part is asserted; None if it isn't labelled."""
    shares = {}
    for name in ("asserted", "unasserted"):
        covered = set[int]()
        for part in message.get(name, ()):
            at = message["text"].find(part)
            covered |= set(range(max(at, start), min(at + len(part), end)))
        shares[name] = len(covered) / max(end - start, 1)
    name = max(shares, key=lambda one: shares[one])
    return name == "asserted" if shares[name] >= MIN_SHARED else None


def fit(parts: Sequence[tuple[dict[str, float], bool]]) -> dict[str, Any]:
    """Return the fields of the fitted model, with weights for features that are not standardized."""
    names = sorted({name for features, _ in parts for name in features})
    values = np.array([[features.get(name, 0.0) for name in names] for features, _ in parts])
    deviation = values.std(0)
    scale = FEATURE_SCALE / np.where(deviation, deviation, 1.0)
    model = linear_model.LogisticRegression(C=REGULARIZATION, max_iter=800)
    model.fit((values - values.mean(0)) * scale, [label for _, label in parts])
    weights = model.coef_[0] * scale
    base = float(model.intercept_[0] - weights @ values.mean(0))
    named = {name: round(float(weight), 4) for name, weight in zip(names, weights, strict=True)}
    return {"base": round(base, 4), "weights": named}


def main() -> None:
    fitted = fit([part for message in load_told() for part in list_parts(message)])
    MODEL.write_text(json.dumps(fitted, separators=(",", ":")).replace(',"', ',\n"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
