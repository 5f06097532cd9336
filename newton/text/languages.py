"""The served languages: the data of each, from YAML files, and the detection of the languages of a text. Pure.

`data/known_words.yaml` has words for the detection of languages only; `scripts/fit-frames` generates it.

Inputs are read in all languages that they may be in (`detect_languages`), memories in one (`detect_language`): English
unless there is evidence of another language, because short texts, names and code have no language.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import yaml

from newton.text.stems import LETTERS

ENGLISH = "en"
LANGUAGES = ("en", "de", "es", "fr", "it", "pt", "nl", "ru", "zh", "ja")
SCRIPT_LANGUAGES = frozenset({"ru", "zh", "ja"})  # whose script identifies them
KNOWN_WORDS = "known_words.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageData:
    """The data of one language. `search` is the text search configuration of PostgreSQL for its words.

    `letters` are letters that few languages have. The patterns are regular expressions: those of `questions` by the
    kind of question, `standing` by what a statement is, `facts` by attribute. `dates` names months, days and units, and
    `numerals` has the words for numbers. English has only words here: its rules are in the modules that use them.
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
        """Return True if spaces separate the words of the language."""
        return self.name not in ("Chinese", "Japanese")


@cache
def load_language(code: str) -> LanguageData:
    """Return the data of a language by its ISO 639-1 code, one of LANGUAGES."""
    content = read_data(f"{code}.yaml")
    words = frozenset(content.pop("words").split())
    return LanguageData(words=words, **content)


@cache
def load_known_words() -> Mapping[str, Sequence[str]]:
    """Return less frequent words by which languages in Latin script are detected, in lower case, by language code.

    They are words of the example inputs of frames.
    """
    return {code: words.split() for code, words in read_data(KNOWN_WORDS).items()}


def read_data(name: str) -> dict[str, Any]:
    """Return the content of a YAML file on languages."""
    text = files("newton.text.data").joinpath(name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=_LOADER)


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where libyaml is installed


MAX_CHARACTERS = 1_000  # of a text that are read
WORD_WEIGHT = 1.0  # of a function word, and of the name of a day, a month or a number
KNOWN_WORD_WEIGHT = 0.4  # of another known word of a language
LETTER_WEIGHT = 0.7  # of each letter that English does not have; the same against a letter of no language
NAME_FACTOR = 0.6  # of a word with a capital behind the first word, which may be a name
MIN_NAME = 3  # letters of a month or day that counts as a word of its language

CANDIDATE_SHARE = 0.6  # of the best score, for a second language
MAX_CANDIDATES = 3
MIN_SCORE = 0.15  # per word; below it, the language is unknown
MIN_WORDS = 4  # a shorter text without known words is taken for English: a name, a command
MIN_EVIDENCE = 0.75  # of the one language of a text, if it is not English: less than one word of no other language
MIN_ADVANTAGE = 1.25  # over the score of English

_KANA = re.compile(r"[\u3040-\u30ff\uff66-\uff9d]")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_NOT_RUSSIAN = re.compile(r"[\u0402-\u040f\u0452-\u045f\u0404\u0406\u0407\u0490\u0491]")
_LATIN = re.compile(r"[a-z\u00c0-\u024f]", re.IGNORECASE)
_OTHER_SCRIPT = re.compile(r"[\u0370-\u03ff\u0530-\u1fff\uac00-\ud7af]")

WeightTable = Mapping[str, Mapping[str, float]]  # by word or letter, the weight for each language that has it


@dataclass(frozen=True, slots=True)
class LanguageEvidence:
    """The score of each language for a text in Latin script. `unknown_letters` counts letters that none of them has."""

    scores: Mapping[str, float]
    word_count: int
    unknown_letters: int

    def rank(self, *, is_ascii: bool) -> tuple[str, ...]:
        """Return the codes of the languages with the best scores, the best first; none if the language is unknown."""
        best = max(self.scores.values(), default=0.0)
        if best <= 0 and self.word_count < MIN_WORDS and is_ascii:
            return (ENGLISH,)
        min_score = MIN_SCORE * self.word_count if self.word_count >= MIN_WORDS else 0.0
        if best - LETTER_WEIGHT * self.unknown_letters <= min_score:
            return ()
        ranked = sorted(self.scores, key=lambda code: (-self.scores[code], code != ENGLISH, code))
        return tuple(code for code in ranked if self.scores[code] >= CANDIDATE_SHARE * best)[:MAX_CANDIDATES]

    def pick(self) -> str:
        """Return the code of the language with the best score; that of English if the score is not clearly better."""
        code = min(self.scores, key=lambda code: (-self.scores[code], code), default=ENGLISH)
        minimum = max(MIN_EVIDENCE, MIN_ADVANTAGE * self.scores.get(ENGLISH, 0.0))
        return code if self.scores.get(code, 0.0) >= minimum else ENGLISH


def detect_languages(text: str) -> tuple[str, ...]:
    """Return the codes of the languages that a text may be in, the most probable first; none if it is unknown.

    >>> [detect_languages(text) for text in ("Wo wohnt Clara?", "Ciao, come stai?", "Jak działa pompa ciepła?")]
    [('de',), ('it',), ()]
    """
    text = text[:MAX_CHARACTERS]
    by_script = None if text.isascii() else _detect_script(text)
    return _weigh(text).rank(is_ascii=text.isascii()) if by_script is None else by_script


@lru_cache(maxsize=4_096)
def detect_language(text: str) -> str:
    """Return the code of the one language of a text, one of LANGUAGES. Any text in Cyrillic script is Russian.

    >>> [detect_language(text) for text in ("Wo wohnt Clara?", "¿Dónde vive?", "Clara, Leipzig", "克拉拉住在哪里")]
    ['de', 'es', 'en', 'zh']
    """
    text = text[:MAX_CHARACTERS]
    by_script = None if text.isascii() else _detect_script(text)
    if by_script is None:
        return _weigh(text).pick()
    return by_script[0] if by_script else "ru" if _CYRILLIC.search(text) else ENGLISH


def list_detection_weights() -> list[str]:
    """Return a line with the weights of each word and letter by which languages are detected, to compute a hash."""
    tables = (_word_weights(), _letter_weights())
    return [f"{key} {sorted(weights.items())}" for table in tables for key, weights in sorted(table.items())]


def _detect_script(text: str) -> tuple[str, ...] | None:
    """Return the languages of a text that is not in Latin script; None if it is."""
    han, kana, cyrillic, latin, other = (
        len(pattern.findall(text)) for pattern in (_HAN, _KANA, _CYRILLIC, _LATIN, _OTHER_SCRIPT)
    )
    if kana and 4 * (han + kana) > latin:  # a character stands for several letters
        return ("ja",)
    if han and 4 * han > latin:
        return ("zh",)
    if 2 * cyrillic > latin and cyrillic:
        return () if _NOT_RUSSIAN.search(text) else ("ru",)
    return () if other > latin else None


def _weigh(text: str) -> LanguageEvidence:
    """Return the sum of the weights of the words and letters of a text for each language; each of them counts once."""
    words, letters, scores = _word_weights(), _letter_weights(), defaultdict[str, float](float)
    found = dict.fromkeys(LETTERS.findall(text))
    for n, written in enumerate(found):
        factor = NAME_FACTOR if n and not written.islower() else 1.0
        for code, weight in words.get(written.lower(), {}).items():
            scores[code] += factor * weight
    unknown = 0
    for letter in set("" if text.isascii() else text.lower()):
        for code, weight in letters.get(letter, {}).items():
            scores[code] += weight
        unknown += letter.isalpha() and not letter.isascii() and letter not in letters
    return LanguageEvidence(scores, len(found), unknown)


@cache
def _word_weights() -> WeightTable:
    known = ((word, code, KNOWN_WORD_WEIGHT) for code, words in load_known_words().items() for word in words)
    spaced = ((code, load_language(code)) for code in LANGUAGES if code not in SCRIPT_LANGUAGES)
    frequent = ((word, code, WORD_WEIGHT) for code, data in spaced for word in data.words | _date_words(data))
    return _share_weights([*known, *frequent])


@cache
def _letter_weights() -> WeightTable:
    latin = (code for code in LANGUAGES if code not in SCRIPT_LANGUAGES)
    return _share_weights((letter, code, LETTER_WEIGHT) for code in latin for letter in load_language(code).letters)


def _share_weights(entries: Iterable[tuple[str, str, float]]) -> WeightTable:
    """Divide the weight of a word or letter by the number of languages that have it."""
    table = defaultdict[str, dict[str, float]](dict)
    for key, code, weight in entries:
        table[key][code] = weight
    return MappingProxyType(
        {key: {code: weight / len(codes) for code, weight in codes.items()} for key, codes in table.items()}
    )


def _date_words(data: LanguageData) -> frozenset[str]:
    """Return the names of days and months of a language, and its words for numbers."""
    names = (entry.partition("|")[0] for group in ("months", "weekdays") for entry in data.dates.get(group, ()))
    others = (*data.dates.get("days", ()), *data.dates.get("numbers", ()))
    return frozenset(name for name in (*names, *others) if name.isalpha() and len(name) >= MIN_NAME)
