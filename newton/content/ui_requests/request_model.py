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

from newton.content.ui_requests.request_features import RequestFeatures

SCALE = 1_000  # of the weights, which are whole numbers in the file


class UiTaskModel(NamedTuple):
    """The weights of each word in all three linear models, the trees, and the weights of each kind of task.

    `words` have [weight among all, in the user's message, in the system message], `bases` are the log odds without
    words in the same order. In `kinds`, the weight of the empty word counts for every request.
    """

    words: Mapping[str, Sequence[int]]
    bases: Sequence[float]
    trees: Sequence[Sequence[Sequence[Any]]]
    base: float
    minimum: float
    kinds: Mapping[str, Mapping[str, int]]


@cache
def load_model() -> UiTaskModel:
    """Return the shipped model."""
    text = files("newton.content.ui_requests").joinpath("request_model.json").read_text(encoding="utf-8")
    return UiTaskModel(**json.loads(text))


def compute_probability(features: RequestFeatures, model: UiTaskModel) -> float:
    """Return the probability that a program has sent a request by itself."""
    values = {**features.measures, **score_words(features, model)}
    total = model.base + sum(_descend(tree, values) for tree in model.trees)
    return 1 / (1 + math.exp(-total))


def score_words(features: RequestFeatures, model: UiTaskModel) -> dict[str, float]:
    """Return the log odds by the words: of both messages together, of the user's message, and of the system message.

    The last is missing if there is no system message.
    """
    user, system = (_find_weights(words, model) for words in (features.user, features.system))
    # a word of both messages counts once among all
    every = _find_weights(features.user | features.system | features.conversation, model)
    parts = {"all_score": every, "user_score": user}
    parts |= {"system_score": system} if features.measures["has_system"] else {}
    places = enumerate(parts.items())
    return {name: model.bases[place] + sum(one[place] for one in found) / SCALE for place, (name, found) in places}


def name_kind(features: RequestFeatures, model: UiTaskModel) -> str:
    """Return the most probable kind of a task."""
    words = ["", *list_kind_words(features)]
    return max(model.kinds, key=lambda kind: sum(model.kinds[kind].get(word, 0) for word in words))


def list_kind_words(features: RequestFeatures) -> set[str]:
    """Return the words of both messages without the marks of their place, and those of the conversation."""
    marked = (word[2:] for word in features.user | features.system if word[1:2] == ":")
    return {*marked, *features.conversation}


def _find_weights(words: Iterable[str], model: UiTaskModel) -> list[Sequence[int]]:
    return [weights for word in words if (weights := model.words.get(word))]


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
