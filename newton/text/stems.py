"""Words of a text, and their stems in English, German, Spanish, French and Russian, by their suffixes. Pure.

Text of any language is stemmed alike, because the language of a phrase is unknown. So only suffixes are removed whose
removal seldom makes two different words equal.
"""

import re

WORD = re.compile(r"\w+")  # with digits and underscores, as identifiers have them
TERM = re.compile(r"[^\W_]+")  # with digits
LETTERS = re.compile(r"[^\W\d_]+")

_MIN_STEM = 3
_VOWEL = re.compile("[aeiouyäöüáéíóúàèìòùâêîôûаеёиоуыэюя]")
_CYRILLIC = re.compile("[а-яё]")


class _Suffixes:
    """Suffixes by the minimum length of the stem that they leave; `strip` removes the longest."""

    def __init__(self, *groups: tuple[int, str]) -> None:
        self.minimum = {suffix: minimum for minimum, suffixes in groups for suffix in suffixes.split()}

    def strip(self, word: str) -> str:
        """Return the word without its longest suffix that leaves a stem of its minimum length."""
        for length in range(min(5, len(word) - _MIN_STEM), 0, -1):
            minimum = self.minimum.get(word[-length:])
            if minimum and len(word) - length >= minimum and _VOWEL.search(word[:-length]):
                return word[:-length]
        return word


_LATIN_SUFFIXES = _Suffixes(
    (3, "ing ed s es ies ar"),
    (4, "er ers e en em n y ando iendo ado ido aron ieron ió ó ir a as o os é ée és ées ez ent re u"),
    (7, "ant ants"),
)
_CYRILLIC_SUFFIXES = _Suffixes(
    (3, "ить ать ять еть уть ил ила или ило ал ала али ало ите айте ит ют ят ет ем им ешь ишь ю я а у ы и е о"),
    (3, "ой ый ий ая ое ые их ых ого ему ому ыми ами ями ах ях ов ев ом ей ию ия ие ение ения ением"),
)


def stem_word(word: str) -> str:
    """Return the stem of a word in lower case.

    >>> [stem_word(word) for word in ("dropping", "tables", "deleted", "löschen", "удалил")]
    ['drop', 'tabl', 'delet', 'lösch', 'удал']
    """
    if len(word) <= _MIN_STEM or not word.isalpha():
        return word
    if _CYRILLIC.search(word):
        return _CYRILLIC_SUFFIXES.strip(word)
    if word.endswith(("ss", "ment")):
        return _undouble(word)
    return _undouble(_strip_participle(_LATIN_SUFFIXES.strip(word)))


def _strip_participle(stem: str) -> str:
    """Return the stem without the "t" of German verbs, as in "löscht" and "verkauft"."""
    return stem[:-1] if len(stem) >= 6 and stem.endswith(("scht", "auft")) else stem


def _undouble(stem: str) -> str:
    """Return the stem with a doubled last consonant once, as in "dropping"."""
    is_doubled = len(stem) > _MIN_STEM and stem[-1] == stem[-2] and not _VOWEL.match(stem[-1])
    return stem[:-1] if is_doubled else stem


def strip_ending(word: str) -> str:
    """Return an English word in lower case without the ending of a verb or a plural. Other words stay nearly whole.

    Unlike `stem_word`, it leaves the "y" of "deploy", so that "deploys" has the same stem.

    >>> [strip_ending(word) for word in ("restarts", "restarted", "planning", "place", "deploy", "deploys")]
    ['restart', 'restart', 'plan', 'plac', 'deploy', 'deploy']
    """
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM and not word.endswith("ss"):
            word = word.removesuffix(ending)
            break
    bare = word.removesuffix("e") if len(word) > _MIN_STEM else word
    return bare[:-1] if len(bare) > _MIN_STEM and bare[-1] == bare[-2] else bare
