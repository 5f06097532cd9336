"""Lemmatization of words: endings are removed, and synonyms become one common word."""

import re

from newton.heart.statements.vocabulary import EXCLUSIVE_GROUPS, LEMMAS, SYNONYM_GROUPS, VERBS

_ENDINGS_BEFORE_E = "at bl iz is as os us ns rs v c u dg rg ag ng ur ir ut"
_BEFORE_E = tuple(_ENDINGS_BEFORE_E.split())
_VOWEL = re.compile("[aeiouy]")
_SYLLABLE = re.compile("[aeiouy]+[^aeiouy]+")
_CLOSED = re.compile("[^aeiou][aeiouy][^aeiouwxy]$")


def lemmatize(word: str) -> str:
    """Return the lemma of a word. Synonyms have the same lemma.

    >>> [lemmatize(word) for word in ("lives", "resided", "moving", "studies", "wrote", "deployment")]
    ['live', 'live', 'move', 'study', 'write', 'deploy']
    """
    plain = _stem(LEMMAS.get(word, word))
    return _MEANINGS.get(plain, plain)


def _stem(word: str) -> str:
    if len(word) <= 3 or not word.isascii() or word in VERBS:
        return word
    single = _without_s(word)
    verb = single.removesuffix("ment")
    return verb if verb in VERBS else _without_verb_ending(single)


def _without_s(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word[:-1]
    if word.endswith(("sses", "shes", "ches", "xes", "zzes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _without_verb_ending(word: str) -> str:
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("eed"):
        return word[:-1] if _SYLLABLE.search(word[:-3]) else word
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 2 and _VOWEL.search(rest):
            return _restore_base(rest)
    return word


def _restore_base(rest: str) -> str:
    """Return the base form of a verb stem: stopp -> stop, mov -> move, cach -> cache, rent -> rent."""
    if rest in VERBS or f"{rest}e" in VERBS:
        return rest if rest in VERBS else f"{rest}e"
    if rest[-1] == rest[-2] and rest[-1] not in "aeioulsz":
        return rest[:-1]
    short = len(_SYLLABLE.findall(rest)) == 1 and _CLOSED.search(rest)
    return f"{rest}e" if short or rest.endswith(_BEFORE_E) else rest


_MEANINGS = {_stem(other): _stem(row[0]) for row in SYNONYM_GROUPS for other in row[1:]}
VERB_LEMMAS = frozenset(lemmatize(verb) for verb in VERBS)
# The words that exclude each word.
OPPOSITES: dict[str, set[str]] = {}
for _row in EXCLUSIVE_GROUPS:
    for _word in _row:
        OPPOSITES.setdefault(lemmatize(_word), set()).update(lemmatize(other) for other in _row if other != _word)
