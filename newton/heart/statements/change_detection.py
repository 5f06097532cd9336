"""Decide whether a newer statement replaces an older one, without a language model. Pure.

Gradient-boosted trees over the features of `change_features` give a probability. Rules before it exclude pairs that
only look alike: plans, exceptions, earlier times, other persons and restatements. `scripts/fit-changes` fits the
trees.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from newton.heart.statements.change_features import extract_features

ChangeKind = Literal["update", "unsure", "compatible"]

MIN_COSINE = 0.3  # pairs below it are not compared
SHOWN_EVIDENCE = 3  # features named in a reason

# The name of each feature in a reason. Features without a name only count.
_DESCRIPTIONS = {
    "newer_cessation": "the newer one ends something",
    "newer_replacement": "the newer one replaces something",
    "newer_amount": "the newer one changes an amount",
    "newer_correction": "the newer one corrects",
    "newer_milestone": "the newer one reports an event that changes a state",
    "newer_present": "the newer one names the present",
    "negation_differs": "one denies what the other says",
    "single_shared": "both name a relation with one value at a time",
    "one_word_each": "they differ in one word each",
    "only_numbers_differ": "they differ only in numbers",
    "substitution": "one value stands in the place of another",
    "subject_equal": "the subject is the same",
    "older_subject_found": "the newer one names the subject",
    "opposite": "they use opposite words",
}


class ChangeVerdict(NamedTuple):
    """Whether the newer statement replaces the older one, the probability in [0, 1] and a short reason."""

    kind: ChangeKind
    probability: float
    reason: str


class ChangeModel(NamedTuple):
    """Trees that add up to log odds, the log odds without them, and the minimum probabilities of update and unsure."""

    trees: Sequence[Sequence[Sequence[Any]]]
    base: float
    update_min: float
    unsure_min: float


@cache
def load_model() -> ChangeModel:
    """Return the shipped model."""
    text = files("newton.heart.statements").joinpath("change_model.json").read_text(encoding="utf-8")
    return ChangeModel(**json.loads(text))


def compute_probability(features: Mapping[str, float], model: ChangeModel) -> float:
    """Return the probability of an update. A leaf is [log odds]; another node is [feature, threshold, left, right]."""
    total = model.base
    for tree in model.trees:
        node = tree[0]
        while len(node) > 1:
            feature, threshold, left, right = node
            node = tree[left if features[feature] <= threshold else right]
        total += node[0]
    return 1 / (1 + math.exp(-total))


def detect_change(older: str, newer: str, *, cosine: float) -> ChangeVerdict:
    """Return whether `newer` replaces `older`. `cosine` is the similarity of their vectors."""
    if cosine < MIN_COSINE:
        return ChangeVerdict("compatible", 0.0, "their meaning is not close")
    features = extract_features(older, newer, cosine=cosine)
    if reason := find_exclusion(features):
        return ChangeVerdict("compatible", 0.0, reason)
    model = load_model()
    probability = compute_probability(features, model)
    if probability < model.unsure_min:
        return ChangeVerdict("compatible", probability, "too little evidence of a change")
    kind: ChangeKind = "update" if probability >= model.update_min else "unsure"
    evidence = [text for name, text in _DESCRIPTIONS.items() if features[name]]
    return ChangeVerdict(kind, probability, ", ".join(evidence[:SHOWN_EVIDENCE]) or "the words are close")


def find_exclusion(features: Mapping[str, float]) -> str:
    """Return why the pair cannot be an update, or ""."""
    return next((reason for reason, applies in _EXCLUSIONS.items() if applies(features)), "")


def _is_plain(f: Mapping[str, float]) -> bool:
    return not f["announces"]


_EXCLUSIONS: Mapping[str, Callable[[Mapping[str, float]], bool]] = {
    "they say the same": lambda f: bool(f["restates"]),
    "the newer one repeats the same names and numbers": lambda f: bool(
        f["same_pair_of_names"] and _is_plain(f) and not f["negation_differs"] and not f["opposite"]
    ),
    "the newer one is a plan": lambda f: bool(f["newer_plan"] and not f["newer_correction"]),
    "the newer one is about an exception": lambda f: bool(f["newer_exception"] and _is_plain(f)),
    "the newer one is about an earlier time": lambda f: bool(
        f["newer_past"] and not (f["newer_cessation"] or f["newer_correction"] or f["newer_present"])
    ),
    "they are about different subjects": lambda f: bool(f["subjects_apart"]),
    "the newer one is about a relative": lambda f: bool(f["relative"]),
    "they name different things": lambda f: bool(f["subject_identifier_differs"] and _is_plain(f)),
}
