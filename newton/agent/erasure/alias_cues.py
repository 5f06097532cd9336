"""Sentences that say that two names belong to one person: "everybody calls her Ola", "Kathi (Katharina)". Pure."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from newton.agent.erasure.name_spellings import HONORIFICS, MARKS, PARTICLES, fold_name, is_common_word
from newton.heart.stopwords import split_words

KNOWN = "§"  # stands for a known name in a sentence
MAX_SENTENCE_CHARS = 400
MIN_INNER_LETTERS = 3  # of a short form that is a part of a name, as Liz is of Elizabeth

_TOKEN = rf"@?[\w{MARKS}](?:[\w{MARKS}]|['’.-](?=[\w{MARKS}]))*\.?"
_NAME = rf"(?P<name>{_TOKEN}(?:\s{_TOKEN}){{0,2}})"
_K = rf"{KNOWN}(?:['’]s)?"
_CALL = (
    r"(?:calls?|named?|nicknames?|nennt|nennen|rufen|ruft|appelle|appellent|llaman|chiamano|chamam|noemt|noemen|kallar"
    r"|zovu|zovut)"
)
_PRONOUN = r"(?:her|him|them|it|sie|ihn|haar|hem|henne|honom)"
_NOUN = (
    r"(?:nick ?names?|short names?|pet names?|handles?|logins?|accounts?|user ?names?|screen names?|alias"
    r"|initials|stamp|spitzname|kurzname|konto|benutzername|surnom|pseudo|apodo|usuario|soprannome|apelido|bijnaam|smeknamn)"
)
_IS = r"(?:is|are|was|ist|est|es|è|é|:|=)"
_ALSO = (
    r"(?:goes by|go by|went by|(?:is|was) (?:also |better |usually )?known (?:to \w+ )?as|also known as"
    r"|better known as|aka|a\.k\.a\.?|alias|(?:is|was|be|are) (?:usually |mostly |always )?called|nicknamed|genannt"
    r"|dite?|surnommée?|apodad[oa]|conocid[oa] como|conhecid[oa] como|detto|detta|soprannominat[oa]|bijgenaamd|or)"
)
_THAT_IS = (
    r"(?:that is|that['’]s|which is|i\.\s?e\.|so|meaning|in full|I mean|whose (?:full |real |actual )?name is"
    r"|d\.\s?h\.|das ist|also|c['’]est|o sea|cioè|ou seja|aka|a\.\s?k\.\s?a\.?|alias)"
)

# A name that each of these patterns captures belongs to the known name of the sentence.
_CUES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<!{KNOWN} )\b{_CALL} {_PRONOUN} {_NAME}",
        rf"\b(?:l['’]|l[aeo] |[ao] )(?:appell\w+|dicen|llaman|chiama\w*|chamam)(?: de)? {_NAME}",
        rf"(?<!{KNOWN} )\b{_CALL} (?:\w+ )?{_K} (?:nur |immer |einfach |just |only |simply |always )?{_NAME}",
        rf"\bsays? {_NAME} to {_K}",
        rf"\bcall me {_NAME}\b.{{0,40}}{KNOWN}",
        rf"{_NAME},? (?:is|was) (?:what|how|the (?:short |nick|pet )?(?:name|form)|short|the same (?:person|man|woman))"
        rf" .{{0,80}}{KNOWN}",
        rf"{_K}[^.;]{{0,30}}? {_ALSO} {_NAME}",
        rf"\bknows? {_K} (?:\w+ )?as {_NAME}",
        rf"{_NAME}\s\({_K}\)",
        rf"{_NAME}\s?=\s?{_K}",
        rf"{_K}\s?=\s?{_NAME}",
        rf"{_NAME},? {_THAT_IS},? {_K}",
        rf"{_K},? (?:that is|that['’]s|i\.\s?e\.|I mean),? {_NAME}",
        rf"{_NAME}, (?:my|our|his|her|their) (?:\w+ ){{1,2}}{_K}",
        rf"{_NAME} is {_K}(?=[.,;!?)]|$)",
        rf"{_NAME}, as .{{1,40}}?(?:calls?|call|nennt) {_K}",
        rf"(?:mis)?(?:spells?|writes?|wrote|spelt|spelled|written) (?:it|her|him|(?:his|her) name|{_K})(?: name)? "
        rf"(?:as )?{_NAME}",
    )
)
# Beside a known name, these also introduce words in lower case.
_HANDLE_CUES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b{_NOUN}(?: \w+){{0,4}}? {_IS} {_NAME}",
        rf"{_K} is (?P<name>@{_TOKEN}|\w+_\w+)",
        rf"{_NAME},? {_THAT_IS},? {_K}['’]s (?:handle|login|account)",
    )
)
_PARENTHESIS = re.compile(rf"{_K}\s\({_NAME}\)")
_SCRIPT_CUES = re.compile(
    r"\b(?:written|writes?|spelled|spelt|names?|says|signs?|card|called|calls?|heißt)\b|['’]s\b", re.IGNORECASE
)
_FOREIGN = re.compile(r"[\u0370-\u1cff\u1f00-\u1fff\u3040-\u9fff\uac00-\ud7af]+(?:\s[\u0370-\u1cff\u1f00-\u1fff]+)?")
_WEAK_CUES = re.compile(
    rf"\b(?:{_CALL[3:-1]}|{_NOUN[3:-1]}|aka|alias|known as|short for|genannt|spelled|misspelt|signs?)\b", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=\S)|(?<=\b\w)\.)+[.!?]*")
_ENDS = split_words("in on at of for to and or the a an is was when who that with by from mostly among by as since")


class FoundAlias(NamedTuple):
    """A name that a text connects with a known name. `is_stated` says whether a sentence states that both are one."""

    name: str
    is_stated: bool


def find_aliases(
    text: str, known: re.Pattern[str], *, initials: frozenset[str], folded: frozenset[str]
) -> Iterator[FoundAlias]:
    """Yield the names that a text connects with the names that `known` finds.

    `initials` are those of the known names, in lower case; letters that equal them count beside a known name. `folded`
    are the known names as `fold_name` returns them.
    """
    for sentence in _SENTENCE.findall(text.replace(KNOWN, " ")):
        marked = known.sub(KNOWN, sentence[:MAX_SENTENCE_CHARS]).strip()
        if KNOWN in marked:
            stated = set(_find_stated(marked, initials, folded))
            yield from (FoundAlias(name, is_stated=True) for name in stated)
            if not stated and _WEAK_CUES.search(marked):
                yield from (FoundAlias(name, is_stated=False) for name in _find_capitalized(marked))


def _find_stated(marked: str, initials: frozenset[str], folded: frozenset[str]) -> Iterator[str]:
    for cue in _CUES:
        for match in cue.finditer(marked):
            yield from _trim(match["name"])
    for cue in _HANDLE_CUES:
        for match in cue.finditer(marked):
            yield from _trim(match["name"], may_be_lower=True)
    for match in _PARENTHESIS.finditer(marked):
        if _FOREIGN.search(match["name"]) or _resembles(fold_name(match["name"]), folded):
            yield from _trim(match["name"])
    yield from (token for token in re.findall(_TOKEN, marked) if _are_initials(token, initials))
    if not marked.isascii() and _is_latin(marked) and ("(" in marked or _SCRIPT_CUES.search(marked)):
        yield from _FOREIGN.findall(marked.replace(KNOWN, " "))


def _are_initials(token: str, initials: frozenset[str]) -> bool:
    """Return whether a token consists of the initials: TP, D.v.B., KL-2."""
    letters = re.sub(r"[\d.-]", "", token)
    is_dotted = token.count(".") > 1 and token.replace(".", "") == letters
    return letters.casefold() in initials and (token.upper() == token or is_dotted)


def _resembles(name: str, folded: frozenset[str]) -> bool:
    """Return whether a name in parentheses is a form of a known name rather than a place or a company."""
    return any(one[:1] == name[:1] or (len(name) >= MIN_INNER_LETTERS and name in one) for one in folded)


def _is_latin(marked: str) -> bool:
    """Return whether the sentence around the known name is written in Latin letters."""
    return sum("a" <= c <= "z" for c in marked.casefold()) > len(marked) / 3


def _trim(name: str, *, may_be_lower: bool = False) -> Iterator[str]:
    """Yield the leading words of a captured run that form a name, if there are any."""
    words = name.split()
    while words and (words[0].casefold() in HONORIFICS or words[0].casefold().startswith(KNOWN)):
        del words[0]
    kept = list[str]()
    for word in words:
        plain = word.rstrip(".,'’-") if not re.fullmatch(r"(?:\w\.)+\w?\.?", word) else word
        is_particle = kept and word.casefold() in PARTICLES
        if not is_particle and not (_looks_like_name(plain) or (may_be_lower and not kept and plain not in _ENDS)):
            break
        kept.append(plain)
        if plain != word or may_be_lower:
            break
    while kept and kept[-1].casefold() in PARTICLES:
        kept.pop()
    if kept and len(fold_name("".join(kept))) > 1:
        yield " ".join(kept)


def _looks_like_name(word: str) -> bool:
    first = word.lstrip("@")[:1]
    if not first or KNOWN in word or is_common_word(word):
        return False
    return word.startswith("@") or first.isupper() or "_" in word or not (first.isascii() or first.islower())


def _find_capitalized(marked: str) -> Iterator[str]:
    for match in re.finditer(_TOKEN, marked):
        if match.start() and _looks_like_name(match[0].rstrip(".")):
            yield match[0].rstrip(".")
