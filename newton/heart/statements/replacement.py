"""The words of a sentence that a fragment likely replaces, by word vectors, form and place. Pure.

"pistachios" replaces "cashews" in "Nikhil's allergic to cashews": no rule knows that both are nuts, but the vectors
of words of the embedding model do, which are read from its file without running it.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

from newton.content.yaml_files import parse_trusted
from newton.heart.statements.slots import count_edits
from newton.providers.embedding import Vector
from newton.providers.minilm import build_tokenizer, load_word_table
from newton.text.languages import ENGLISH, detect_language, load_language
from newton.text.numerals import DAYS, MONTHS, find_numbers

MAX_WORDS = 3  # of the words that replace others
COMPLEMENT, NAMES, MISSPELT, SHARED = 0.25, 0.2, 0.5, 0.5  # what place, form and words add to the similarity
RARE = 0.1  # what words add that both have several word pieces, as names have
_NEVER = frozenset(["called", "named", "heißt", "s"])  # words that nobody replaces
SUBJECT = 0.2  # what a possessive or first word loses
MIN_SPELLING = 0.55  # share of letters in the same order, from which a word is a spelling of another


@cache
def read_words() -> Mapping[str, str]:
    """Return the patterns of the file `fragments.yaml` by name."""
    return parse_trusted(files("newton.heart.statements").joinpath("fragments.yaml").read_text(encoding="utf-8"))


_WORD = re.compile(r"[^\W_](?:(?:[\w.:#@/&-]|['’](?!s\b))*\w)?")
_BEFORE_COMPLEMENT = re.compile(
    rf"(?:(?<!\w)(?:{read_words()['complement'].strip()})|['’]s|[:=])\W+(?:\w+ )?$", re.IGNORECASE
)


class WordReplacement(NamedTuple):
    """The words of a sentence that others replace, and how likely."""

    old: str
    score: float


def find_replaced(fragment: str, sentence: str) -> WordReplacement | None:
    """Return the words of a sentence that a fragment of up to three words most likely replaces.

    >>> find_replaced("pistachios", "nikhil's allergic to cashews, epipen and all").old
    'cashews'
    >>> find_replaced("Avenue X", "petrakis moved his office to Avenue U").old
    'Avenue U'
    """
    mine, theirs = [one[0] for one in _WORD.finditer(fragment)], list(_WORD.finditer(sentence))
    if not 0 < len(mine) <= MAX_WORDS:
        return None
    found = list[WordReplacement]()
    for first in range(len(theirs)):
        for size in dict.fromkeys((len(mine), 1, 2)):
            words = [one[0] for one in theirs[first : first + size]]
            is_bounded = not any(is_function(words[n], sentence) or words[n] in _NEVER for n in (0, -1))
            if len(words) < size or not is_bounded:
                continue
            old = sentence[theirs[first].start() : theirs[first + size - 1].end()]
            if not re.search(r"[,;:()]\s", old):
                score = _score(mine, words, sentence, theirs[first].start(), is_first=not first)
                found.append(WordReplacement(old, score))
    found = [one for one in found if one.old.casefold() != fragment.casefold()]
    return max(found, key=lambda one: one.score, default=None)


def is_function(word: str, sentence: str) -> bool:
    """Return whether a word is a function word of English or the sentence's language, and no number, day or month."""
    folded = word.casefold()
    common = load_language(detect_language(sentence)).words | load_language(ENGLISH).words
    return folded in common and folded not in DAYS and folded not in MONTHS and not find_numbers(folded, ENGLISH)


def _score(mine: list[str], words: list[str], sentence: str, start: int, *, is_first: bool) -> float:
    """Return how likely words of a sentence, which begin at `start`, are what others replace."""
    own, old = " ".join(mine).casefold(), " ".join(words).casefold()
    score = float(_embed(own) @ _embed(old)) - 0.1 * abs(len(mine) - len(words))
    shared = {one.casefold() for one in mine} & {one.casefold() for one in words}
    if len(mine) == len(words) > 1 and shared:
        score += SHARED
    spelling = 1 - count_edits(own, old) / max(len(own), len(old))
    if spelling >= MIN_SPELLING and not shared:
        score += MISSPELT * spelling
    if _BEFORE_COMPLEMENT.search(sentence[:start]):
        score += COMPLEMENT
    if words[0][:1].isupper() and start and mine[0][:1].isupper():
        score += NAMES
    is_owner = sentence[start + len(" ".join(words)) :].startswith(("'s ", "’s "))
    if _count_pieces(own) > 1 < _count_pieces(old) and not (own + old).isdigit():
        score += RARE
    return score - SUBJECT * (is_owner or is_first) - (any(map(str.isdigit, own)) != any(map(str.isdigit, old)))


@cache
def _load_words() -> tuple[Tokenizer, Vector]:
    """Return the tokenizer of word pieces, and the mean of many of their vectors, which all words have in common."""
    return build_tokenizer(), load_word_table().take_vectors(np.arange(1_000, 30_000, 7)[None])[0].mean(0)


def _count_pieces(text: str) -> int:
    return len(_load_words()[0].encode(text, add_special_tokens=False).ids)


@lru_cache(maxsize=1024)
def _embed(text: str) -> Vector:
    tokenizer, mean = _load_words()
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    vector = load_word_table().take_vectors(np.array([ids]))[0].mean(0) - mean if ids else mean
    return vector / max(float(np.linalg.norm(vector)), 1e-9)
