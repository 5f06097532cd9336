"""Patterns of wishes that hold for later requests though they have no word of duration such as "always". Pure.

Such a wish is on answers in the plural, on a feature of style or a unit ("no emojis", "temperatures in Celsius"), or is
an order without a reference to one case ("ask before you book anything"). The patterns match at the beginning of a
sentence. They are in the file `wish_patterns.yaml`.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from newton.content.yaml_source import parse_trusted

_PART = re.compile(r"\{([a-z_]+)\}")
# A reference to one thing or one time.
_ONE_CASE = re.compile(
    r"\b(?:for now|right now|just once|(?:just )?this (?:time|once|one|text|letter|file|week|month)"
    r"|today|tonight|tomorrow|yesterday|here"
    r"|(?:in|on|for|of|to|with) (?:this|that|these|those|the following))\b(?! on\b)",
    re.IGNORECASE,
)
_LASTING_CLAUSE = re.compile(r"[^,;]*\b(?:always|never|every time|whenever)\b[^,;]*(?=[,;])", re.IGNORECASE)


class WishPatterns(NamedTuple):
    """The patterns of orders and of preferences, and those that tell what they are on."""

    orders: Sequence[str]
    preferences: Sequence[str]
    on_answers: re.Pattern[str]
    on_kind: re.Pattern[str]


@cache
def load_patterns() -> WishPatterns:
    """Return the patterns of the file."""
    text = files("newton.heart.identity").joinpath("wish_patterns.yaml").read_text(encoding="utf-8")
    data = parse_trusted(text)
    parts = data["parts"]
    on_answers, on_kind = (re.compile(_fill(data[name][0], parts), re.IGNORECASE) for name in ("on_answers", "on_kind"))
    orders, preferences = ([_fill(one, parts) for one in data[name]] for name in ("orders", "preferences"))
    return WishPatterns(orders, preferences, on_answers, on_kind)


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
    return _ONE_CASE.search(lasting[0] if lasting else text) is not None


def _fill(pattern: str, parts: Mapping[str, str]) -> str:
    """Return the pattern with its parts in place of their names."""
    while _PART.search(pattern):
        pattern = _PART.sub(lambda match: parts[match[1]], pattern)
    return pattern
