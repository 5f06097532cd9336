"""Detection of the language of a text by its script, its function words and its letters. Pure.

A text is English unless there is evidence of another language, because short texts, names and code have none.
"""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache

from newton.languages.language_data import ENGLISH, LANGUAGES, LanguageData, load_language

MAX_CHARACTERS = 1_000  # of a text that are read
MIN_EVIDENCE = 0.75  # the weight of about one function word that no other language has
MIN_ADVANTAGE = 1.25  # over the evidence of English
NAME_FACTOR = 0.6  # of a word with a capital behind the first word, which may be a name
LETTER_WEIGHT = 0.6  # of a word with a letter that only one language has
MIN_NAME = 3  # letters of a month or day that counts as a word of its language
MIN_CJK_SHARE = 0.2  # of the letters; a Chinese character stands for several letters

_WORD = re.compile(r"[^\W\d_]+")
_KANA = re.compile(r"[\u3040-\u30ff\uff66-\uff9d]")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")


@lru_cache(maxsize=4_096)
def detect_language(text: str) -> str:
    """Return the code of the language of a text, one of LANGUAGES.

    >>> [detect_language(text) for text in ("Wo wohnt Clara?", "¿Dónde vive?", "Clara, Leipzig", "克拉拉住在哪里")]
    ['de', 'es', 'en', 'zh']
    """
    text = text[:MAX_CHARACTERS]
    if not text.isascii() and (code := _detect_script(text)):
        return code
    evidence = Counter[str]()
    weights, letters = _word_weights(), _letter_weights()
    for n, written in enumerate(dict.fromkeys(_WORD.findall(text))):
        factor, word = NAME_FACTOR if n and not written.islower() else 1.0, written.lower()
        evidence.update({code: factor * weight for code, weight in weights.get(word, {}).items()})
        if not word.isascii():
            for letter in set(word):
                evidence.update(letters.get(letter, {}))
    english = evidence.pop(ENGLISH, 0.0)
    code, most = max(evidence.items(), key=lambda pair: pair[1], default=(ENGLISH, 0.0))
    return code if most >= MIN_EVIDENCE and most > MIN_ADVANTAGE * english else ENGLISH


def _detect_script(text: str) -> str | None:
    """Return the language that a script shows; None for a text mainly in Latin script."""
    letters = sum(map(str.isalpha, text))
    han, kana, cyrillic = (len(pattern.findall(text)) for pattern in (_HAN, _KANA, _CYRILLIC))
    if letters and (han + kana) / letters >= MIN_CJK_SHARE:
        return "ja" if kana else "zh"
    return "ru" if letters and cyrillic / letters > 1 / 2 else None


@cache
def _word_weights() -> Mapping[str, Mapping[str, float]]:
    """Return the weight of each function word for each language: 1 if no other language has it."""
    owners: dict[str, list[str]] = {}
    for code in LANGUAGES:
        data = load_language(code)
        for word in data.words | _date_words(data) if data.is_spaced else ():
            owners.setdefault(word, []).append(code)
    return {word: {code: 1 / len(codes) for code in codes} for word, codes in owners.items()}


def _date_words(data: LanguageData) -> frozenset[str]:
    """Return the names of days and months of a language, and its words for numbers."""
    names = (entry.partition("|")[0] for group in ("months", "weekdays") for entry in data.dates.get(group, ()))
    others = (*data.dates.get("days", ()), *data.dates.get("numbers", ()))
    return frozenset(name for name in (*names, *others) if name.isalpha() and len(name) >= MIN_NAME)


@cache
def _letter_weights() -> Mapping[str, Mapping[str, float]]:
    owners: dict[str, list[str]] = {}
    for code in LANGUAGES:
        for letter in load_language(code).letters:
            owners.setdefault(letter, []).append(code)
    return {letter: {code: LETTER_WEIGHT / len(codes) for code in codes} for letter, codes in owners.items()}
