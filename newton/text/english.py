"""English words: verb forms, synonyms, opposites, prepositions and fillers, and the lemma of a word. Pure."""

import re
from collections.abc import Iterator, Mapping

from newton.text.languages import read_data

_TABLES: Mapping[str, str] = read_data("english_tables.yaml")
_PLURALS = "child children, man men, woman women, person people, foot feet, tooth teeth, mouse mice, life lives"

# Products with two names. Names of persons have no synonyms: Ana is not Anna.
_ALIASES = "postgresql postgres, kubernetes k8s, javascript js, typescript ts, golang go-lang, github gh"

# Markers, which set the role of the next words. A strong marker is a content word too.
_CLAUSE = "because=because if=if unless=unless when=when while=while although=although though=although whether=whether"

DETERMINERS = frozenset({"a", "an", "the", "this", "these", "those", "'s"})
INDEFINITE_ARTICLES = frozenset({"a", "an"})
# Redundant before a name, year or amount: the city of Oslo, the year 2019, version 16.
TYPE_NOUNS = frozenset({"city", "town", "company", "firm", "year", "version", "language"})
PERSONS = {
    **dict.fromkeys(("i", "me", "my", "mine", "myself"), "I"),
    **dict.fromkeys(("you", "your", "yours", "yourself"), "you"),
    **dict.fromkeys(("he", "him", "his", "himself"), "he"),
    **dict.fromkeys(("she", "her", "hers", "herself"), "she"),
    **dict.fromkeys(("we", "us", "our", "ours", "ourselves"), "we"),
    **dict.fromkeys(("they", "them", "their", "theirs", "themselves"), "they"),
    **dict.fromkeys(("it", "its", "itself"), "it"),
}
_OWNERS = "my mine your yours his our ours their theirs its hers myself yourself himself herself themselves ourselves"
POSSESSIVES = frozenset(_OWNERS.split())

BE_PAST, BE_BARE = frozenset({"was", "were"}), frozenset({"be", "been", "being"})
BE = {"am", "is", "are"} | BE_PAST | BE_BARE
HAVE, DO = frozenset({"have", "has", "had", "having"}), frozenset({"do", "does", "did"})
AUXILIARIES = BE | HAVE | DO
OWNERSHIP_VERBS = frozenset({"own", "owns", "owned", "possess", "possesses", "possessed"})
PAST_AUXILIARIES = BE_PAST | {"had", "did", "owned", "possessed"}


def _split_rows(text: str) -> Iterator[list[str]]:
    for row in text.replace("\n", ";").split(";"):
        if row.strip():
            yield row.split()


def _split_pairs(text: str) -> dict[str, str]:
    return {word: meaning for word, _, meaning in (pair.partition("=") for pair in text.split())}


_PREFIXES = ("", "re", "over", "under", "mis")
_VERB_FORMS = [
    [f"{prefix}{form}" for form in row] for row in _split_rows(_TABLES["irregular_verbs"]) for prefix in _PREFIXES
]
LEMMAS = {form: row[0] for row in _VERB_FORMS for form in row[1:]}
LEMMAS.update({"using": "use", "lying": "lie", "dying": "die", "aged": "age", "caches": "cache", "tying": "tie"})
LEMMAS.update({many: one for one, many in (pair.split() for pair in _PLURALS.split(","))})
LEMMAS["lives"] = "live"
PAST_FORMS = frozenset(row[1] for row in _VERB_FORMS if row[1] != row[0])
PARTICIPLES = frozenset(row[2] for row in _VERB_FORMS)
VERBS = frozenset(row[0] for row in _VERB_FORMS) | frozenset(_TABLES["regular_verbs"].split())
ALIASES = {other: row[0] for row in (pair.split() for pair in _ALIASES.split(",")) for other in row[1:]}
STRONG_ROLES = frozenset(_split_pairs(_TABLES["strong"]).values()) | frozenset(_split_pairs(_CLAUSE).values())
CLAUSE_MARKERS = frozenset(_split_pairs(_CLAUSE))
MARKERS = {**_split_pairs(_TABLES["weak"]), **_split_pairs(_TABLES["strong"]), **_split_pairs(_CLAUSE)}
SYNONYM_GROUPS = list(_split_rows(_TABLES["synonyms"]))
EXCLUSIVE_GROUPS = list(_split_rows(_TABLES["exclusive"]))


def _iter_phrases() -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    for row in _TABLES["phrases"].replace("\n", ";").split(";"):
        if row.strip():
            phrase, meaning = row.split("=")
            yield tuple(phrase.split()), tuple(meaning.split())
    for row in _split_rows(_TABLES["fillers"]):
        yield tuple(row), ()


PHRASES = dict(_iter_phrases())


_ENDINGS_BEFORE_E = "at bl iz is as os us ns rs v c u dg rg ag ng ur ir ut"
_BEFORE_E = tuple(_ENDINGS_BEFORE_E.split())
_VOWEL = re.compile("[aeiouy]")
_SYLLABLE = re.compile("[aeiouy]+[^aeiouy]+")
_CLOSED = re.compile("[^aeiou][aeiouy][^aeiouwxy]$")


def lemmatize(word: str) -> str:
    """Return the lemma (base form) of an English word. Synonyms have the same lemma.

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
