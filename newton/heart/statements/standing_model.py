"""Marks of standing wishes by the vector of a short text, for those that no pattern finds. Pure.

A logistic model of the bundled embedding model's vectors, which `scripts/fit-standing` fits. A vector exists shortly
after a text is written, so a wish in words that no pattern knows is marked then.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from newton.heart.identity.wish_patterns import concerns_every_answer, concerns_one_case
from newton.memory.memory import StandingType
from newton.providers.embedding import Vector

MAX_WORDS = 30  # a longer text says more than a wish, and its vector too

_SPEAKER = re.compile(r"^[^:.!?]{1,40}: ")
_PERSON = re.compile(r"\b(?:I|I'd|I'm|my)\b")
# What makes a text one on a single case, a fact or a question.
_DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_FEATURES = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "definite": r"\b(?:the|this|that|these|those|it|him|her|them|his|their|its)\b",
        "time": rf"\b(?:now|then|yet|still|soon|later|already|today|tonight|tomorrow|yesterday|once|{_DAY})\b",
        "question": r"\?\s*$",
        "other_subject": r"^\W*(?:(?:but|and|so|ok|well),? )?(?:he|she|they|we|it|there|every(?:body|one)|nobody"
        r"|somebody|mum|dad|(?:my|our|his|her|the|this|that) (?!pronouns|name)[\w-]+)\b",
        "own_subject": r"^\W*(?:i|i'm|i'd|i've|my)\b",
        "addressed": r"^\W*you\b(?! (?:can|may|should|must|need|don't))",
        "past": r"\b(?:was|were|had|did|said|told|asked|\w{3,}ed)\b",
        "lasting": r"\b(?:always|never|whenever|every|each|any|anything|ever|all|from now|default|when)\b",
        "answer": r"\b(?:answers?|replies|repl(?:y|ied)|sentences?|words?|explain\w*|explanations?|language|you)\b",
        "name": r"(?<=[a-z,] )(?-i:[A-Z][a-z]+)",
        "polite": r"\b(?:please|thanks)\b",
        "number": r"\d",
        "others": r"\b(?:he|she|they|we|us|our|ours)\b",
        "reported": r"\b(?:says?|said|told|tells?|wants?|asks?|asked)\b",
        "order": r"^\W*(?:don't|do not|no|stop|avoid|never|without|only|keep|use|be)\b",
    }.items()
}


class StandingModel(NamedTuple):
    """The weights of the vector and of the features of a text, and the least probability of a standing wish."""

    vector_model: str
    min_probability: float
    base: float
    weights: Sequence[float]
    feature_weights: Mapping[str, float]


@cache
def load_model() -> StandingModel:
    """Return the fitted model of the file `standing_model.json`."""
    text = files("newton.heart.statements").joinpath("standing_model.json").read_text(encoding="utf-8")
    return StandingModel(**json.loads(text))


def find_standing_by_vector(embedded_text: str, vector: Vector, *, vector_model: str) -> StandingType | None:
    """Return the type of the standing wish that a text of the person probably states; None for none.

    `embedded_text` may begin with the speaker. Another embedding model than that of the fit finds none.
    """
    text, model = _SPEAKER.sub("", embedded_text, count=1), load_model()
    if vector_model != model.vector_model or not 2 <= len(text.split()) <= MAX_WORDS:
        return None
    if concerns_one_case(text) or compute_probability(text, vector) < model.min_probability:
        return None
    if concerns_every_answer(text):
        return "manner"
    return "preference" if _PERSON.search(text) else "instruction"


def compute_probability(text: str, vector: Vector) -> float:
    """Return the probability that a text with this unit vector states a standing wish."""
    model = load_model()
    odds = model.base + float(np.dot(vector, model.weights))
    odds += sum(model.feature_weights[name] for name in list_features(text))
    return 1 / (1 + math.exp(-odds))


def list_features(text: str) -> Sequence[str]:
    """Return the names of the features that a text has.

    >>> list_features("Never use emojis, please.")
    ['lasting', 'polite', 'order']
    """
    plain = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return [name for name, pattern in _FEATURES.items() if pattern.search(plain)]


def list_feature_names() -> Sequence[str]:
    return list(_FEATURES)
