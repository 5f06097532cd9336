"""Patterns of wishes that hold for later requests though they have no word of duration such as "always". Pure.

Such a wish is on answers in the plural, on a feature of style or a unit ("no emojis", "temperatures in Celsius"), or is
an order without a reference to one case ("ask before you book anything"). The patterns match at the beginning of a
sentence. They are in the file `wish_patterns.yaml`.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from newton.content.yaml_files import parse_trusted

_PART = re.compile(r"\{([a-z_]+)\}")
# A reference to one thing or one time.
_ONE_CASE = re.compile(
    r"\b(?:for now|right now|just once|(?:just )?this (?:time|once|one|text|letter|file|week|month)"
    r"|(?<!starting )today|tonight|tomorrow|yesterday|(?<!from )here"
    r"|(?:in|on|for|of|to|with) (?:this|that|these|those|the following))\b(?! on\b)",
    re.IGNORECASE,
)
_LASTING_CLAUSE = re.compile(r"[^,;]*\b(?:always|never|every time|whenever)\b[^,;]*(?=[,;])", re.IGNORECASE)

_REASON = re.compile(
    r"[,;–—] (?:because|cos|since|as|for|i|i'm|i've|i'd|it|it's|they|he|she|we|my|that's|there)\b.*$", re.IGNORECASE
)
_IN_GENERAL = re.compile(r"\b(?:in general|for good|and always)\b", re.IGNORECASE)


class WishPatterns(NamedTuple):
    """The patterns of orders and of preferences, and those that tell what they are on."""

    orders: Sequence[str]
    preferences: Sequence[str]
    on_answers: re.Pattern[str]
    on_kind: re.Pattern[str]


class PassingPatterns(NamedTuple):
    """The patterns of wishes in a clause of a message on something else.

    `names` are wishes if the message matches `naming`. `openers` begin a clause, `others` are before one that quotes.
    """

    wishes: re.Pattern[str]
    names: re.Pattern[str]
    naming: re.Pattern[str]
    openers: re.Pattern[str]
    others: re.Pattern[str]
    on_manner: re.Pattern[str]


@cache
def load_patterns() -> WishPatterns:
    """Return the patterns of wishes at the beginning of a sentence."""
    orders, preferences = _read_patterns("orders"), _read_patterns("preferences")
    return WishPatterns(orders, preferences, _compile("on_answers"), _compile("on_kind"))


@cache
def load_passing_patterns() -> PassingPatterns:
    """Return the patterns of wishes that are said in passing."""
    names = ("in_passing", "names_in_passing", "naming", "openers", "others", "on_manner")
    return PassingPatterns(*map(_compile, names))


def concerns_manner(text: str) -> bool:
    """Return whether a text has a word of the manner of answers, or of how to address the person."""
    return load_passing_patterns().on_manner.search(text) is not None


@cache
def _read_data() -> Mapping[str, Any]:
    text = files("newton.heart.identity").joinpath("wish_patterns.yaml").read_text(encoding="utf-8")
    return parse_trusted(text)


def _read_patterns(name: str) -> Sequence[str]:
    data = _read_data()
    return [_fill(one, data["parts"]) for one in data[name]]


def _compile(name: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in _read_patterns(name)), re.IGNORECASE)


def concerns_every_answer(text: str) -> bool:
    """Return whether an instruction or preference is on the form of every answer and not on a kind of request.

    >>> texts = ("Always answer in French", "Never suggest meat", "When I ask for code, answer with tests")
    >>> [concerns_every_answer(text) for text in texts]
    [True, False, False]
    """
    patterns = load_patterns()
    return patterns.on_answers.search(text) is not None and patterns.on_kind.search(text) is None


def concerns_one_case(text: str) -> bool:
    """Return whether a text is on one thing or one time, so that no wish in it holds for later requests.

    >>> [concerns_one_case(text) for text in ("Answer this letter in French", "From today on answer in French")]
    [True, False]
    """
    lasting = _LASTING_CLAUSE.match(text)  # the place of a reason after it is no case: "..., that is usual here"
    order = lasting[0] if lasting else _REASON.sub("", text)
    return _ONE_CASE.search(order) is not None and not _IN_GENERAL.search(order)


def _fill(pattern: str, parts: Mapping[str, str]) -> str:
    """Return the pattern with its parts in place of their names."""
    while _PART.search(pattern):
        pattern = _PART.sub(lambda match: parts[match[1]], pattern)
    return pattern
