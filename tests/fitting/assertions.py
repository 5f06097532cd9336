"""Fit the model of `newton.heart.statements.assertion` to the messages of tests/data/told.

Each message has parts that its author asserts and parts that they don't, as other people than the developers have
written them. A clause of statements.py's messages that is a fact is asserted too. The held-out tests don't read these.
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
from newton.heart.statements.statement_candidates import ClauseForm, mask_message, split_message
from newton.heart.statements.statement_selection import MessageContext, compute_probabilities, describe, list_texts
from newton.providers.minilm import MiniLM
from newton.text.languages import ENGLISH, detect_language
from newton.text.patterns import list_sentences

DATA = Path(__file__).parents[1] / "data" / "told"
MODEL = Path(__file__).parents[2] / "newton" / "heart" / "statements" / "assertion_model.json"
PART_SCALE, MESSAGE_SCALE, FEATURE_SCALE = 5.0, 4.0, 0.5  # of unit vectors and of standardized features
REGULARIZATION = {"vectors": 0.02, "plain": 0.03}  # the inverse of its strength
MIN_SHARED = 0.5  # of a clause that must be in a labelled part

linear_model = import_module("sklearn.linear_model")  # scikit-learn has no type stubs

Message = dict[str, Any]


def load_told() -> list[Message]:
    """Return the labelled messages of each author."""
    paths = sorted(DATA.glob("*.yaml"))
    return [one | {"author": path.stem} for path in paths for one in yaml.safe_load(path.read_text(encoding="utf-8"))]


def list_parts(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the parts of messages that look like statements, with features, vectors and label."""
    minilm = MiniLM()
    texts = sorted({text for one in messages for text in list_texts(one["text"])})
    vectors = dict(zip(texts, minilm.embed_now(texts), strict=True))
    rows = [row for one in messages for row in _iter_parts(one, vectors)]
    zero = np.zeros(MiniLM.dimensions)
    for row in rows:
        is_known = row["text"] in vectors and row["message"] in vectors
        row["part_vector"], row["message_vector"] = (
            (vectors[row["text"]], vectors[row["message"]]) if is_known else (zero, zero)
        )
    return rows


def _iter_parts(message: Message, vectors: Any) -> Iterator[dict[str, Any]]:
    text, earlier = message["text"], message.get("earlier", "")
    context = MessageContext(earlier, find_question(message.get("question", "")))
    if (code := detect_language(text)) == ENGLISH:
        candidates = split_message(text)
        has_vectors = text in vectors
        worth = compute_probabilities(text, candidates, vectors if has_vectors else None)
        found = describe(text, candidates, worth, context)
        spans = [(one.start, one.end, one.form in (ClauseForm.STATEMENT, ClauseForm.FRAGMENT)) for one in candidates]
    else:
        masked = mask_message(text)[1]
        parts = [MessagePart(*one) for one in list_sentences(masked, code)]
        found = list_features(masked, parts, code, earlier=earlier, answers=bool(context.question))
        spans = [(one.start, one.end, not one.asks) for one in parts]
    for (start, end, is_stated), features in zip(spans, found, strict=True):
        label = _label(message, start, end)
        if is_stated and label is not None:
            yield {
                "text": text[start:end],
                "message": text,
                "features": features,
                "is_asserted": label,
                "author": message["author"],
                "weight": message.get("weight", 1.0),
            }


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


class PartMatrix:
    """The standardized features of parts, with and without their vectors."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self.names = sorted({name for row in rows for name in row["features"]})
        values = np.array([[row["features"].get(name, 0.0) for name in self.names] for row in rows])
        self.mean, deviation = values.mean(0), values.std(0)
        self.scale = FEATURE_SCALE / np.where(deviation, deviation, 1.0)
        self.plain = (values - self.mean) * self.scale
        part = PART_SCALE * np.array([row["part_vector"] for row in rows])
        message = MESSAGE_SCALE * np.array([row["message_vector"] for row in rows])
        self.full = np.concatenate([self.plain, part, message], axis=1)
        self.labels = np.array([row["is_asserted"] for row in rows])
        self.weights = np.array([row["weight"] for row in rows])

    def fit(self, kind: str, chosen: Any) -> Any:
        """Fit a logistic model to some of the parts; `kind` is "vectors" or "plain"."""
        model = linear_model.LogisticRegression(C=REGULARIZATION[kind], max_iter=800)
        matrix = self.full if kind == "vectors" else self.plain
        return model.fit(matrix[chosen], self.labels[chosen], sample_weight=self.weights[chosen])

    def export(self, chosen: Any) -> dict[str, Any]:
        """Return the fields of the fitted model, with weights for features that are not standardized."""
        full, plain = self.fit("vectors", chosen), self.fit("plain", chosen)
        part, message = np.split(full.coef_[0][len(self.names) :], 2)
        (base, weights), (plain_base, plain_weights) = self._unscale(full), self._unscale(plain)
        return {
            "base": base,
            "weights": weights,
            "part_weights": [round(float(one), 3) for one in PART_SCALE * part],
            "message_weights": [round(float(one), 3) for one in MESSAGE_SCALE * message],
            "plain_base": plain_base,
            "plain_weights": plain_weights,
        }

    def _unscale(self, model: Any) -> tuple[float, dict[str, float]]:
        weights = model.coef_[0][: len(self.names)] * self.scale
        base = float(model.intercept_[0] - weights @ self.mean)
        named = {name: round(float(weight), 4) for name, weight in zip(self.names, weights, strict=True)}
        return round(base, 4), named


def fit_assertions(messages: Sequence[Message]) -> None:
    """Fit the model to all messages of tests/data/told and to these, and write its file."""
    rows = list_parts([*load_told(), *messages])
    fitted = PartMatrix(rows).export(np.arange(len(rows)))
    MODEL.write_text(json.dumps(fitted, separators=(",", ":")).replace(',"', ',\n"') + "\n", encoding="utf-8")
