"""Patterns of phrases that announce a change, limit a statement, or name a relation, from `change_cues.yaml`."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from re import Pattern
from typing import NamedTuple

from newton.content.yaml_files import parse_trusted


class ChangeCues(NamedTuple):
    """Compiled patterns by name.

    `cues` announce a change or limit a statement. `single_valued` and `multi_valued` name relations with one or with
    several values at a time. `former` match phrases before or after a thing that has ended.
    """

    cues: Mapping[str, Pattern[str]]
    single_valued: Mapping[str, Pattern[str]]
    multi_valued: Mapping[str, Pattern[str]]
    former: Mapping[str, Pattern[str]]


@cache
def load_cues() -> ChangeCues:
    """Return the patterns of the file `change_cues.yaml`."""
    text = files("newton.heart.statements").joinpath("change_cues.yaml").read_text(encoding="utf-8")
    groups: dict[str, dict[str, str]] = parse_trusted(text)
    return ChangeCues(*(_compile_group(groups[name]) for name in ChangeCues._fields))


def _compile_group(phrases: Mapping[str, str]) -> dict[str, Pattern[str]]:
    return {
        name: re.compile(rf"(?<!\w)(?:{text.replace('; ', '|')})(?!\w)", re.IGNORECASE)
        for name, text in phrases.items()
    }
