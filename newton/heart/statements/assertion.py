"""Probability that a person asserts a sentence in another language than English, by its hints and form. Pure.

The phrases of `commitment` are certain but few: new authors have others. `assertion_cues.yaml` has words that hint at
fiction, reports, doubts, jokes and the like; how much each counts in a sentence, before and behind it is fitted by
`scripts/fit-statements`. English messages are read by `newton.providers.speech_reader`.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from newton.content.yaml_files import parse_trusted
from newton.text.languages import ENGLISH, load_language
from newton.text.pasted_text import MASK
from newton.text.words import split_words

MAX_HINTS = 2  # different words of a kind that count
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+")


class MessagePart(NamedTuple):
    """A part of a message, from `start` to `end`, and whether it asks or requests."""

    start: int
    end: int
    asks: bool


class AssertionModel(NamedTuple):
    """The fitted weights of the features, and the log odds without any."""

    base: float
    weights: Mapping[str, float]


@cache
def load_assertion_model() -> AssertionModel:
    """Return the fitted model of the file `assertion_model.json`."""
    text = files("newton.heart.statements").joinpath("assertion_model.json").read_text(encoding="utf-8")
    return AssertionModel(**json.loads(text))


def score_assertion(features: Mapping[str, float]) -> float:
    """Return the probability that a part with these features is asserted."""
    model = load_assertion_model()
    odds = model.base + sum(model.weights.get(name, 0.0) * value for name, value in features.items())
    return 1 / (1 + math.exp(-odds))


def list_features(
    masked: str, parts: Sequence[MessagePart], code: str, *, earlier: str = "", answers: bool = False
) -> list[dict[str, float]]:
    """Return the features of each part of a message, by name.

    `masked` is the message in the language `code` with masked quotations, `earlier` the person's message before it. It
    `answers` a question of the assistant.
    """
    hints, last = list(_find_hints(masked, code)), {kind for kind, _, _ in _find_hints(earlier, code)}
    return [
        {
            **_hint_features(hints, parts, number),
            **{f"last_{kind}": 1.0 for kind in last},
            **_form_features(masked, parts, number),
            "answers": float(answers and not number),
            "english": float(code == ENGLISH),
        }
        for number in range(len(parts))
    ]


def _hint_features(
    hints: Sequence[tuple[str, int, str]], parts: Sequence[MessagePart], number: int
) -> dict[str, float]:
    """Return how many hints of each kind stand in a part, in the one before it, further before it, and behind it."""
    start, end, _ = parts[number]
    before = parts[number - 1].start if number else 0
    found: dict[str, set[str]] = {}
    for kind, at, word in hints:
        place = "in" if start <= at < end else "after" if at >= end else "before" if at >= before else "earlier"
        found.setdefault(f"{place}_{kind}", set()).add(word)
        found.setdefault(f"any_{kind}", set()).add("")
    return {name: float(min(len(words), MAX_HINTS)) for name, words in found.items()}


def _form_features(masked: str, parts: Sequence[MessagePart], number: int) -> dict[str, float]:
    """Return features of the form of a part and of its place in the message."""
    start, end, asks = parts[number]
    text, words = masked[start:end], [word.casefold() for word in _WORD.findall(masked[start:end])]
    return {
        "asks": float(asks),
        "others_ask": float(any(one.asks for one in parts if one.start != start)),
        "masked_share": text.count(MASK) / max(len(text), 1),
        "quotes": float(MASK in masked),
        "quotes_before": float(MASK in masked[:start][-80:]),
        "behind_colon": float(masked[:start].rstrip().endswith(":")),
        "colon": float(":" in text),
        **{kind: float(any(word in _list_words(kind) for word in words)) for kind in ("speaker", "addressed")},
        "referring": float(bool(words) and words[0] in _list_words("referring")),
        "numbers": float(min(len(_NUMBER.findall(text)), 3)),
        "words": min(len(words), 40) / 10,
        "exclamation": float("!" in text),
        "question_mark": float("?" in masked[start : end + 1]),
        "ellipsis": float(".." in text or "…" in text),
        "capitals": float(any(len(word) > 2 and word.isupper() for word in _WORD.findall(text))),
        "position": float(min(number, 4)),
        "count": float(min(len(parts), 5)),
        "is_only": float(len(parts) == 1),
        "is_last": float(number == len(parts) - 1),
    }


def _find_hints(text: str, code: str) -> Iterator[tuple[str, int, str]]:
    """Yield kind, offset and word of each hint in a text in the language `code`, or in English, which people mix in."""
    for language in dict.fromkeys((code, ENGLISH)):
        for kind, pattern in _load_cues(language).items():
            yield from ((kind, match.start(), match[0].casefold()) for match in pattern.finditer(text))


@cache
def _list_words(kind: str) -> frozenset[str]:
    return frozenset(split_words(_read_cues()["words"][kind]))


@cache
def _load_cues(code: str) -> Mapping[str, re.Pattern[str]]:
    wrap = r"(?<!\w)(?:{})(?!\w)" if load_language(code).is_spaced else "(?:{})"
    return {kind: re.compile(wrap.format(words), re.IGNORECASE) for kind, words in _read_cues()[code].items()}


@cache
def _read_cues() -> Mapping[str, Mapping[str, str]]:
    return parse_trusted(files("newton.heart.statements").joinpath("assertion_cues.yaml").read_text(encoding="utf-8"))
