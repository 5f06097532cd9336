"""Recognition of requests that programs send on their own (UI tasks), such as one for a chat's title, by a model.

Gradient-boosted trees over the measures of `ui_request_features` give a probability. Three of their features are
scores of linear models over the words: over all, over those of the user's message, and over those of the system
message. `scripts/fit-ui-tasks` fits all of them.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import re2
from pydantic import AfterValidator, Field

from newton.content.ui_request_features import EXAMINED_CHARS, RequestFeatures, extract_features
from newton.content.yaml_files import NamedModel, read_folder

SCALE = 1_000  # of the weights, which are whole numbers in the file


class UiTaskModel(NamedTuple):
    """A model that tells requests of programs from those of people: weights of words in three linear models, and trees.

    `words` have [weight among all, in the user's message, in the system message], `bases` are the log odds without
    words in the same order. `kinds` has the weights of words for each kind of task; that of the empty word counts for
    every request.
    """

    words: Mapping[str, Sequence[int]]
    bases: Sequence[float]
    trees: Sequence[Sequence[Sequence[Any]]]
    base: float
    minimum: float
    kinds: Mapping[str, Mapping[str, int]]


@cache
def load_model() -> UiTaskModel:
    """Return the model that ships with Newton."""
    text = files("newton.content").joinpath("ui_task_model.json").read_text(encoding="utf-8")
    return UiTaskModel(**json.loads(text))


def compute_probability(features: RequestFeatures, model: UiTaskModel) -> float:
    """Return the probability, from 0 to 1, that a program has sent a request by itself."""
    values = {**features.measures, **score_words(features, model)}
    total = model.base + sum(_descend(tree, values) for tree in model.trees)
    return 1 / (1 + math.exp(-total))


def score_words(features: RequestFeatures, model: UiTaskModel) -> dict[str, float]:
    """Return the log odds by the words of both messages together, of the user's message, and of the system message.

    They are of a program as the sender. The last is missing if there is no system message.
    """
    user, system = (_find_weights(words, model) for words in (features.user, features.system))
    # a word of both messages counts once among all
    every = _find_weights(features.user | features.system | features.conversation, model)
    parts = {"all_score": every, "user_score": user}
    parts |= {"system_score": system} if features.measures["has_system"] else {}
    places = enumerate(parts.items())
    return {name: model.bases[place] + sum(one[place] for one in found) / SCALE for place, (name, found) in places}


def name_kind(features: RequestFeatures, model: UiTaskModel) -> str:
    """Return the most probable kind of a request that a program has sent by itself."""
    words = ["", *list_kind_words(features)]
    return max(model.kinds, key=lambda kind: sum(model.kinds[kind].get(word, 0) for word in words))


def list_kind_words(features: RequestFeatures) -> set[str]:
    """Return the words by which the kind is found: of both messages, without marks, and of the conversation."""
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


MAX_OWN_LINE = 0.02  # probability of a task for a line that only a person writes
MAX_LINES = 100  # of a request that are judged alone

_OPTIONS = re2.Options()
_OPTIONS.case_sensitive, _OPTIONS.log_errors = False, False


def _compile(pattern: str) -> "re2.Pattern":
    return re2.compile(f"(?m){pattern}", _OPTIONS)


def _check_pattern(pattern: str) -> str:
    try:
        _compile(pattern)
    except re2.error as error:
        raise ValueError(f"is not a pattern of RE2: {error}") from None
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=1_000), AfterValidator(_check_pattern)]


class UiTask(NamedModel):
    """One kind of request that a program of the operator sends on its own. Patterns are of RE2, case-insensitive."""

    description: str = Field(min_length=1, max_length=500)
    certain: tuple[Pattern, ...] = Field(
        (), description="Patterns whose match alone shows that a program wrote the request."
    )

    @cached_property
    def patterns(self) -> tuple["re2.Pattern", ...]:
        return tuple(_compile(one) for one in self.certain)


def load_ui_tasks(folder: Path) -> tuple[UiTask, ...]:
    """Load the operator's UI tasks (kinds of requests that programs send by themselves) from a folder.

    There are none if the folder does not exist. Raises ConfigError for the first mistake in a file.
    """
    folder = folder.expanduser()
    return tuple(read_folder(folder, UiTask).values()) if folder.is_dir() else ()


def find_ui_task(own: Iterable[UiTask], user: str, *, system: str = "", earlier: Sequence[str] = ()) -> str | None:
    """Return the kind of UI task that a request is; None if a person seems to have written it.

    A UI task is a request that a program sends by itself, such as one for a chat's title. `own` are the operator's
    tasks, whose patterns decide before the model does. `user` is the last message of the user, `system` the system
    message, and `earlier` are the texts before `user`. Pure.
    """
    words = user if len(user) <= 2 * EXAMINED_CHARS else f"{user[:EXAMINED_CHARS]}\n{user[-EXAMINED_CHARS:]}"
    if named := next((one.name for one in own if any(pattern.search(words) for pattern in one.patterns)), None):
        return named
    model, features = load_model(), extract_features(user, system=system, earlier=earlier)
    if compute_probability(features, model) < model.minimum or _contains_own_line(words, system, earlier):
        return None
    return name_kind(features, model)


def _contains_own_line(text: str, system: str, earlier: Sequence[str]) -> bool:
    """Return whether a person presents the text: "This is from the school, is it serious?" over a notice with orders.

    Within a conversation any line may be the person's; in its first message only the first line is, because what a
    program quotes there follows its instruction.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    own = lines[: MAX_LINES if earlier else 1] if len(lines) > 1 else []
    judged = (extract_features(line, system=system, earlier=earlier) for line in own)
    return any(compute_probability(features, load_model()) < MAX_OWN_LINE for features in judged)
