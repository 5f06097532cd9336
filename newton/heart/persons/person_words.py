"""The words of ten languages by which a text is about a person: one table, read from `person_words.yaml`. Pure."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from newton.content.yaml_files import parse_trusted
from newton.text.languages import load_language
from newton.text.patterns import compile_any

_CAPITAL = r"(?-i:[^\W\d_a-zа-яёß-öø-ÿ])"
_NAME = rf"{_CAPITAL}[\w'’-]*(?: {_CAPITAL}[\w'’-]*){{0,2}}"
_UNSPACED_NAME = (
    r"(?!什么|哪|谁|自己|大家|这|那|何|誰)(?:[A-Za-z][\w'’-]*|[\u4e00-\u9fff]{2,4}?|[\u30a0-\u30ff・]{2,}(?:さん)?)"
)


class PersonWords(NamedTuple):
    """The patterns of one language. `sections` and `topics` are by name, in the order in which they are tried."""

    own: re.Pattern[str]
    sections: Mapping[str, re.Pattern[str]]
    topics: Mapping[str, re.Pattern[str]]
    everything: Sequence[re.Pattern[str]]
    name: re.Pattern[str]
    relation: re.Pattern[str]


@cache
def load_words(code: str) -> PersonWords:
    """Return the patterns of a language by its code."""
    data, is_spaced = _load_data()[code], load_language(code).is_spaced

    def compile_words(pattern: str) -> re.Pattern[str]:
        grouped = _group_by_letter(pattern)
        return re.compile(rf"(?<!\w)(?:{grouped})(?!\w)" if is_spaced else f"(?:{pattern})", re.IGNORECASE)

    gap = " " if is_spaced else ""
    role = rf"(?:{data['own']}){gap}(?:\w+ ){{0,2}}?(?:{data['sections']['people']})" if is_spaced else r"(?!)"
    known = rf"{role}(?: {_NAME})?|{data['self']}|{_NAME if is_spaced else _UNSPACED_NAME}"
    anyone = (
        rf"(?:{data.get('articles', '(?!)')} )?(?P<who>{known}|\w[\w'-]{{2,}})" if is_spaced else rf"(?P<who>{known})"
    )
    questions = [one.replace("{who}", f"(?P<who>{known})").replace("{anyone}", anyone) for one in data["everything"]]
    return PersonWords(
        own=compile_words(data["self"]),
        sections={name: compile_words(_with_drugs(name, pattern)) for name, pattern in data["sections"].items()},
        topics={name: compile_words(pattern) for name, pattern in data["topics"].items()},
        everything=[re.compile(rf"(?<!\w)(?:{one})(?!\w)" if is_spaced else one, re.IGNORECASE) for one in questions],
        name=compile_any(data["name"]),
        relation=compile_words(rf"(?:{data['own']}){gap}(?:\w+ ){{0,2}}?(?P<role>{data['sections']['people']})"),
    )


def _with_drugs(section: str, pattern: str) -> str:
    """Return the pattern of a section, that of health with the endings of the names of medicines."""
    return f"{_load_data()['drugs']}|{pattern}" if section == "health" else pattern


def _group_by_letter(pattern: str) -> str:
    """Return the pattern with the alternatives that begin with the same letter in a group, which is faster.

    >>> _group_by_letter("cat|(?:a|b)c|cow|dog")
    '(?:a|b)c|c(?:at|ow)|d(?:og)'
    """
    groups, others, depth, start = dict[str, list[str]](), list[str](), 0, 0
    for end, sign in enumerate(f"{pattern}|"):
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and not depth:
            first, rest = pattern[start : start + 1], pattern[start + 1 : end]
            is_plain = first.isalpha() and rest[:1] not in ("?", "*", "{")
            (groups.setdefault(first, []) if is_plain else others).append(rest if is_plain else pattern[start:end])
            start = end + 1
    return "|".join([*others, *(f"{first}(?:{'|'.join(rests)})" for first, rests in groups.items())])


@cache
def _load_data() -> Mapping[str, dict[str, Any]]:
    return parse_trusted(files("newton.heart.persons").joinpath("person_words.yaml").read_text(encoding="utf-8"))
