"""The data of each served language, from YAML files: function words, letters, search configuration and patterns.

`data/known_words.yaml` has words that only show the language of a text; `scripts/fit-frames` generates it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

ENGLISH = "en"
LANGUAGES = ("en", "de", "es", "fr", "it", "pt", "nl", "ru", "zh", "ja")
SCRIPT_LANGUAGES = frozenset({"ru", "zh", "ja"})  # whose script identifies them
KNOWN_WORDS = "known_words.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageData:
    """The data of one language. `search` is the text search configuration of PostgreSQL for its words.

    `letters` are letters that few languages have. The patterns are regular expressions: those of `questions` by the
    kind of question, `standing` by what a statement is, `facts` by attribute. `dates` names months, days and units,
    and `numerals` has the words for numbers. English has only words here: its rules are in the modules that use them.
    """

    name: str
    search: str
    letters: str = ""
    words: frozenset[str] = frozenset()
    dates: Mapping[str, Any] = field(default_factory=dict[str, Any])
    numerals: Mapping[str, str] = field(default_factory=dict[str, str])
    questions: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    standing: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    facts: Sequence[Mapping[str, str]] = ()
    openings: str = ""
    asking: str = ""
    ended: str = ""
    negated: str = ""
    safety: str = ""

    @property
    def is_spaced(self) -> bool:
        """Return True if spaces separate the words."""
        return self.name not in ("Chinese", "Japanese")


@cache
def load_language(code: str) -> LanguageData:
    """Return the data of a language by its ISO 639-1 code, one of LANGUAGES."""
    text = files("newton.languages.data").joinpath(f"{code}.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.load(text, Loader=_LOADER)
    words = frozenset(content.pop("words").split())
    return LanguageData(words=words, **content)


@cache
def load_known_words() -> Mapping[str, Sequence[str]]:
    """Return other words of the languages in Latin script, by code, in lower case: those of the examples of frames."""
    text = files("newton.languages.data").joinpath(KNOWN_WORDS).read_text(encoding="utf-8")
    return {code: words.split() for code, words in yaml.load(text, Loader=_LOADER).items()}


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where libyaml is installed
