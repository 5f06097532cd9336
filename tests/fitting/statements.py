"""Fit the model of `newton.heart.statements.statement_selection`; with --validate, print cross-validated figures first.

Reads labelled messages (tests/data/chat_messages_train.yaml, chat_messages.yaml), questions without a fact
(unknown_questions.yaml) and, with a small weight, announced changes (updates_dev.yaml, updates_train.yaml). Only the
tests that measure read the held-out messages.
"""

import json
import random
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from newton.heart.statements.statement_candidates import ClauseForm, StatementCandidate, split_message
from newton.heart.statements.statement_features import extract_features
from newton.heart.statements.statement_selection import load_model
from newton.providers.minilm import MiniLM
from tests.fitting.assertions import fit_assertions

DATA = Path(__file__).parents[1] / "data"
MODEL = Path(__file__).parents[2] / "newton" / "heart" / "statements" / "statement_model.json"
REGULARIZATION = {"vectors": 0.02, "plain": 0.05}  # the inverse of its strength
FEATURE_SCALE, CLAUSE_SCALE, MESSAGE_SCALE = 0.5, 6.0, 4.0  # of standardized features and of unit vectors
FIRST_MIN, PLAIN_FIRST_MIN, OTHER_MIN = 0.6, 0.65, 0.5
ANNOUNCED_WEIGHT = 0.05
# Added to the log odds of a plain sentence about what it names. It isn't fitted: labelled messages have hardly any.
PLAIN_NAMED_WEIGHT = 0.8
FOLDS = 6
BLOCK = 5  # neighbouring messages are often variants of each other, and belong to one fold
MIN_LABELLED, MIN_WHOLE = 0.5, 0.8  # share of a clause that facts cover, or of a fact that a clause covers

linear_model = import_module("sklearn.linear_model")  # scikit-learn has no type stubs

Message = dict[str, Any]


def load_messages() -> list[Message]:
    """Return the labelled messages, each with its block and weight."""
    rows = [("train", one, 1.0) for one in _load("chat_messages_train.yaml")]
    rows += [("chat", one, 1.0) for one in _load("chat_messages.yaml")]
    rows += [("unknown", {"text": text}, 1.0) for text in _load("unknown_questions.yaml")]
    for name in ("updates_dev.yaml", "updates_train.yaml"):
        pairs = [one for one in _load(name) if one["group"] == "announced" and one["expect"] == "update"]
        rows += [(name, {"text": one["newer"], "facts": [one["newer"]]}, ANNOUNCED_WEIGHT) for one in pairs]
    return [one | {"block": f"{name} {n // BLOCK}", "weight": weight} for n, (name, one, weight) in enumerate(rows)]


def _load(name: str) -> Any:
    return yaml.safe_load((DATA / name).read_text(encoding="utf-8"))


def list_clauses(messages: list[Message]) -> list[dict[str, Any]]:
    """Return the clauses that state something, with features, vectors and label."""
    rows = list(_iter_clauses(messages))
    texts = sorted({row[name] for row in rows for name in ("text", "message")})
    vectors = dict(zip(texts, MiniLM().embed_now(texts), strict=True))
    return [row | {"clause_vector": vectors[row["text"]], "message_vector": vectors[row["message"]]} for row in rows]


def _iter_clauses(messages: list[Message]) -> Iterator[dict[str, Any]]:
    for number, message in enumerate(messages):
        candidates = split_message(message["text"])
        for position, one in enumerate(candidates):
            if one.form is ClauseForm.STATEMENT:
                yield {
                    "number": number,
                    "text": one.text,
                    "message": message["text"],
                    "features": extract_features(candidates, position),
                    "is_fact": _is_fact(message, one),
                    "weight": message["weight"],
                    "block": message["block"],
                }


def _is_fact(message: Message, one: StatementCandidate) -> bool:
    covered = set[int]()
    for fact in message.get("facts") or ():
        start = message["text"].lower().find(fact.lower())
        shared = set(range(max(one.start, start), min(one.end, start + len(fact)))) if start >= 0 else set[int]()
        if shared and len(shared) >= MIN_WHOLE * len(fact):
            return True
        covered |= shared
    return len(covered) >= MIN_LABELLED * (one.end - one.start)


class ClauseMatrix:
    """The features of clauses, standardized, with and without their vectors."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.names = sorted(rows[0]["features"].keys() - {"plain_named"})
        values = np.array([[row["features"][name] for name in self.names] for row in rows])
        self.mean, deviation = values.mean(0), values.std(0)
        self.scale = FEATURE_SCALE / np.where(deviation, deviation, 1.0)
        self.plain = (values - self.mean) * self.scale
        clause = CLAUSE_SCALE * np.array([row["clause_vector"] for row in rows])
        message = MESSAGE_SCALE * np.array([row["message_vector"] for row in rows])
        self.full = np.concatenate([self.plain, clause, message], axis=1)
        self.labels = np.array([row["is_fact"] for row in rows])
        self.weights = np.array([row["weight"] for row in rows])

    def fit(self, kind: str, part: Any) -> Any:
        """Fit a logistic model to a part of the clauses; `kind` is "vectors" or "plain"."""
        model = linear_model.LogisticRegression(C=REGULARIZATION[kind], max_iter=500)
        matrix = self.full if kind == "vectors" else self.plain
        return model.fit(matrix[part], self.labels[part], sample_weight=self.weights[part])

    def unscale(self, model: Any) -> tuple[float, dict[str, float]]:
        """Return the intercept and the weights for features that are not standardized."""
        weights = model.coef_[0][: len(self.names)] * self.scale
        base = float(model.intercept_[0] - weights @ self.mean)
        named = {name: round(float(weight), 4) for name, weight in zip(self.names, weights, strict=True)}
        return round(base, 4), named | {"plain_named": PLAIN_NAMED_WEIGHT}


def split(rows: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """Return the indexes of the rest and of the part of each fold. A block is in one part."""
    blocks = sorted({row["block"] for row in rows})
    random.Random(0).shuffle(blocks)
    fold_of = {block: n % FOLDS for n, block in enumerate(blocks)}
    folds = np.array([fold_of[row["block"]] for row in rows])
    return [(np.flatnonzero(folds != n), np.flatnonzero(folds == n)) for n in range(FOLDS)]


def validate(messages: list[Message], rows: list[dict[str, Any]], matrix: ClauseMatrix) -> None:
    """Print precision and recall of messages and clauses, by models that have not seen the clause."""
    for kind in REGULARIZATION:
        found = np.zeros(len(rows))
        for rest, part in split(rows):
            inputs = (matrix.full if kind == "vectors" else matrix.plain)[part]
            found[part] = matrix.fit(kind, rest).predict_proba(inputs)[:, 1]
        for first_min in (0.5, 0.55, FIRST_MIN, PLAIN_FIRST_MIN, 0.7):
            _print_figures(f"{kind} from {first_min}", messages, rows, _select(rows, found, first_min))


def _select(rows: list[dict[str, Any]], found: Any, first_min: float) -> list[bool]:
    best = dict[int, float]()
    for row, probability in zip(rows, found, strict=True):
        best[row["number"]] = max(best.get(row["number"], 0.0), probability)
    return [best[row["number"]] >= first_min and p >= OTHER_MIN for row, p in zip(rows, found, strict=True)]


def _print_figures(name: str, messages: list[Message], rows: list[dict[str, Any]], selected: list[bool]) -> None:
    own = [(row, is_selected) for row, is_selected in zip(rows, selected, strict=True) if row["weight"] == 1]
    chosen = {row["number"] for row, is_selected in own if is_selected}
    stating = {n for n, one in enumerate(messages) if one.get("facts") and one["weight"] == 1}
    right = sum(row["is_fact"] for row, is_selected in own if is_selected)
    print(
        f"{name}: messages precision {len(chosen & stating) / len(chosen):.3f}"
        f" recall {len(chosen & stating) / len(stating):.3f};"
        f" clauses precision {right / sum(is_selected for _, is_selected in own):.3f}"
        f" recall {right / sum(row['is_fact'] for row, _ in own):.3f}"
    )


CHAT_WEIGHT = 0.3  # of a clause of these messages for the model of assertions: what is no fact may be asserted


def label_parts(messages: list[Message]) -> Iterator[Message]:
    """Yield the messages with the clauses that are facts as asserted parts, and the others as unasserted ones."""
    for one in (message for message in messages if message["weight"] == 1):
        clauses = [clause for clause in split_message(one["text"]) if clause.form is ClauseForm.STATEMENT]
        parts = {is_fact: [c.text for c in clauses if _is_fact(one, c) == is_fact] for is_fact in (True, False)}
        labelled = {"asserted": parts[True], "unasserted": parts[False]}
        yield {"text": one["text"], "author": "chat", "weight": CHAT_WEIGHT} | labelled


def main() -> None:
    messages = load_messages()
    rows = list_clauses(messages)
    matrix = ClauseMatrix(rows)
    if "--validate" in sys.argv:
        validate(messages, rows, matrix)
    every = np.arange(len(rows))
    full, plain = matrix.fit("vectors", every), matrix.fit("plain", every)
    (base, weights), (plain_base, plain_weights) = matrix.unscale(full), matrix.unscale(plain)
    vector_weights = full.coef_[0][len(matrix.names) :]
    clause, message = np.split(vector_weights, 2)
    data = {
        "vector_model": MiniLM.identity,
        "first_min": FIRST_MIN,
        "plain_first_min": PLAIN_FIRST_MIN,
        "other_min": OTHER_MIN,
        "base": base,
        "weights": weights,
        "clause_weights": [round(float(weight), 4) for weight in CLAUSE_SCALE * clause],
        "message_weights": [round(float(weight), 4) for weight in MESSAGE_SCALE * message],
        "plain_base": plain_base,
        "plain_weights": plain_weights,
    }
    MODEL.write_text(json.dumps(data, separators=(",", ":")).replace(',"', ',\n"') + "\n", encoding="utf-8")
    load_model.cache_clear()  # the model of assertions has its probabilities as a feature
    fit_assertions(list(label_parts(messages)))


if __name__ == "__main__":
    main()
