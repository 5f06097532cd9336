"""Reading of what an input needs from memory: an answer, all that bears on a task, both, or nothing. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, cast, get_args
from uuid import UUID

import numpy as np

from newton.cognition.questions.question_kinds import read_question
from newton.ids import derive_model_id
from newton.memory.search_types import RecallQuery
from newton.providers.embedding import Vector
from newton.text.languages import ENGLISH, detect_language
from newton.text.questions import contains_question

Need = Literal["answer", "both", "gather", "none"]

NEEDS: Sequence[Need] = get_args(Need)
# Of the probability of `answer` among the needs that want something: in a frame of questions, and in any other.
MIN_ASKED, MIN_ANSWER = 0.3, 0.85
MIN_NONE = 0.6  # of the probability that an input without a question needs nothing
MAX_WORDS = 60  # that count as length
VECTOR_SCALE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedModel:
    """The weights of features and vector of an input for each need, in the order of `NEEDS`."""

    vector_model: str
    base: Sequence[float]
    features: Sequence[Sequence[float]]
    vector: Sequence[Sequence[float]]


@cache
def load_need_model() -> NeedModel:
    """Return the fitted model of the file `need_model.json`."""
    text = files("newton.cognition.questions").joinpath("need_model.json").read_text(encoding="utf-8")
    return NeedModel(**json.loads(text))


def read_need(query: RecallQuery, *, is_asked: bool) -> Need | None:
    """Return what an input needs from memory; None if that cannot be judged. In a frame of questions it `is_asked`.

    It is judged for English inputs and vectors of the bundled model, if no words of a task were added to the input.

    `both` counts as `gather`: what bears on the task has the answer too.
    """
    text, vector, model_id = query.question, query.vector, query.model_id
    if vector is None or query.text != text or model_id != _derive_vector_model():
        return None
    if detect_language(text) != ENGLISH:
        return None
    needs = estimate_needs(text, vector)
    if needs["none"] >= MIN_NONE and not contains_question(text):
        return "none"
    return "answer" if needs["answer"] >= (MIN_ASKED if is_asked else MIN_ANSWER) * (1 - needs["none"]) else "gather"


def estimate_needs(text: str, vector: Vector) -> Mapping[Need, float]:
    """Return the probability of each need of an input with this unit vector."""
    base, features, weights = _load_weights()
    odds = base + features @ np.array(list_features(text)) + weights @ (VECTOR_SCALE * np.asarray(vector))
    shares = np.exp(odds - odds.max())
    return dict(zip(NEEDS, map(float, shares / shares.sum()), strict=True))


@lru_cache(maxsize=256)
def list_features(text: str) -> tuple[float, ...]:
    """Return the features of the form of an input."""
    kind = read_question(text).kind
    words = min(len(text.split()), MAX_WORDS) / 20
    asks = (contains_question(text), text.rstrip().endswith("?"), kind == "list", kind == "standing")
    return (*map(float, asks), words)


@cache
def _load_weights() -> tuple[Vector, Vector, Vector]:
    model = load_need_model()
    return cast(
        "tuple[Vector, Vector, Vector]", tuple(np.array(one) for one in (model.base, model.features, model.vector))
    )


@cache
def _derive_vector_model() -> UUID:
    return derive_model_id(load_need_model().vector_model)
