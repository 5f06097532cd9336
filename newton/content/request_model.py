"""The model that tells requests that programs send by themselves from those that persons type. Pure.

Gradient-boosted trees over the measures of `request_features` give a probability. Three of their features are scores of
linear models over the words: over all, over those of the user's message, and over those of the system message.
`scripts/fit-ui-tasks` fits all of them.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from newton.content.request_features import RequestFeatures

SCALE = 1_000  # of the weights, which are whole numbers in the file


class RequestModel(NamedTuple):
    """The weights of each word in all three linear models, the trees, and the weights of each kind of task.

    `words` have [weight among all, weight in its own message]; `bases` are the log odds without words: of all, of the
    user's message, of the system message.
    """

    words: Mapping[str, Sequence[int]]
    bases: Sequence[float]
    trees: Sequence[Sequence[Sequence[Any]]]
    base: float
    minimum: float
    kinds: Mapping[str, Mapping[str, int]]


@cache
def load_model() -> RequestModel:
    """Return the shipped model."""
    text = files("newton.content").joinpath("request_model.json").read_text(encoding="utf-8")
    return RequestModel(**json.loads(text))


def compute_probability(features: RequestFeatures, model: RequestModel) -> float:
    """Return the probability that a program has sent a request by itself."""
    values = {**features.measures, **score_words(features, model)}
    total = model.base + sum(_descend(tree, values) for tree in model.trees)
    return 1 / (1 + math.exp(-total))


def score_words(features: RequestFeatures, model: RequestModel) -> dict[str, float]:
    """Return the log odds by the words: of all, of the user's message, and of the system message if there is one."""
    user, own = _add_weights(features.user, model)
    system, own_system = _add_weights(features.system, model)
    conversation, _ = _add_weights(features.conversation, model)
    all_base, user_base, system_base = model.bases
    scores = {"all_score": all_base + user + system + conversation, "user_score": user_base + own}
    return scores | ({"system_score": system_base + own_system} if features.measures["has_system"] else {})


def name_kind(features: RequestFeatures, model: RequestModel) -> str:
    """Return the most probable kind of a task."""
    words = features.user | features.system
    return max(model.kinds, key=lambda kind: sum(model.kinds[kind].get(word, 0) for word in words))


def _add_weights(words: Iterable[str], model: RequestModel) -> tuple[float, float]:
    known = [weights for word in words if (weights := model.words.get(word))]
    return sum(one[0] for one in known) / SCALE, sum(one[1] for one in known) / SCALE


def _descend(tree: Sequence[Sequence[Any]], values: Mapping[str, float]) -> float:
    """Return the log odds that a tree adds.

    A leaf is [log odds]; another node is [feature, threshold, left, right, whether a missing value goes left].
    """
    node = tree[0]
    while len(node) > 1:
        name, threshold, left, right, missing_left = node
        value = values.get(name, math.nan)
        node = tree[left if value <= threshold or (missing_left and math.isnan(value)) else right]
    return node[0]
