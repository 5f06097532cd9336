"""Preparation of texts for the search by words, whose lexemes PostgreSQL makes. Pure.

Words are stemmed in the language of the text. Names in other languages than English are also stemmed as in English, so
that texts in two languages share them. Chinese and Japanese have no spaces: runs of their characters become single
characters and pairs, which need no dictionary and find parts of compounds.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

from newton.languages.detection import detect_language
from newton.languages.language_data import ENGLISH, load_language

MAX_INPUT_CHARACTERS = 20_000  # of an input
MAX_TEXT_CHARACTERS = 200_000  # of a memory: PostgreSQL limits a tsvector to 1 MiB

_UNSPACED = re.compile(
    r"(?P<han>[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々]+)|(?P<hiragana>[\u3040-\u309f]+)"
    r"|(?P<katakana>[\u30a0-\u30ff]+)"
)
_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_NAME = re.compile(r"\b(?:[^\W\d_a-z]\w*|\w*\d\w*)")  # begins with a capital, or has a digit


def prepare_words(text: str, *, max_characters: int = MAX_INPUT_CHARACTERS, language: str | None = None) -> list[str]:
    """Return what the SQL function `memory.search_words` takes: text search configuration, text, and names.

    >>> prepare_words("Which trees does Clara like?"), prepare_words("wo wohnt Clara Vogel?")
    (['english', 'Which trees does Clara like?', ''], ['german', 'wo wohnt Clara Vogel?', 'Clara Vogel'])
    >>> prepare_words("狗叫什么")
    ['english', '狗 叫 狗叫 ', '']
    """
    text = text[:max_characters]
    code = language or detect_language(text)
    if not text.isascii():
        text = _segment(unicodedata.normalize("NFKC", text))
    search = load_language(code).search
    names = " ".join(_NAME.findall(text)) if code not in (ENGLISH, "zh", "ja", "ru") else ""
    return [search, text, names]


def list_terms(text: str) -> list[str]:
    """Return the words of a text in lower case, those of Chinese and Japanese as single characters and pairs.

    >>> list_terms("Der Zug nach 東京")
    ['der', 'zug', 'nach', '東', '京', '東京']
    """
    return _WORD.findall(_segment(unicodedata.normalize("NFKC", text)).casefold())


_WORD = re.compile(r"[^\W_]+")


def _segment(text: str) -> str:
    """Return the text with runs of Chinese and Japanese characters in terms, which spaces separate."""
    return _UNSPACED.sub(_split_run, text) if _HAN.search(text) else text


def _split_run(run: "re.Match[str]") -> str:
    return "".join(f"{term} " for term in _iter_terms(run))


def _iter_terms(run: "re.Match[str]") -> Iterator[str]:
    """Yield the terms of a run of characters.

    Katakana are whole foreign words. Hiragana are mostly endings; a run that is only function words has no term.
    """
    text = run[0]
    if run["katakana"]:
        yield text
    elif run["hiragana"]:
        rest = _function_words("ja").sub(" ", text)
        for part in rest.split():
            yield from _pairs(part) if len(part) > 1 else ()
    else:
        for part in filter(None, _function_words("zh").split(text)):
            yield from part
            yield from _pairs(part)


def _pairs(text: str) -> Iterator[str]:
    return (text[n : n + 2] for n in range(len(text) - 1))


@cache
def _function_words(code: str) -> re.Pattern[str]:
    words = sorted(load_language(code).words, key=lambda word: (-len(word), word))
    return re.compile("|".join(map(re.escape, words)))
