"""Names, numbers and word stems of texts in any served language, and whether other texts contain them. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import takewhile

from newton.text.english import lemmatize
from newton.text.languages import ENGLISH, detect_language, load_known_words, load_language
from newton.text.letters import fold
from newton.text.names import find_names
from newton.text.numerals import NumberMention, find_numbers
from newton.text.stems import stem_word
from newton.text.words import COMMON_WORDS, split_words

MIN_STEM = 3  # characters of a word that is evidence
SHARED_PREFIX = 5  # characters in which two longer stems agree
MIN_PART = 5  # characters of a word that is part of a compound
MAX_INFLECTION = 3  # characters of the ending of a name in Cyrillic script

_WORD = re.compile(r"[^\W_]+(?:['’.&+-][^\W_]+)*")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々]")
_KATAKANA = re.compile(r"[\u30a1-\u30ff]{2,}")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_ADDRESS = re.compile(
    r"\b\w+://\S+|\bwww\.\S+|[\w.+-]+@[\w-]+\.[\w.-]+|\b(?!(?:[\d.:/]+(?:am|pm|h)?|[^\W\d](?:\.[^\W\d])+)\b)[\w-]+(?:[./_][\w-]+)+\b"
)
_POSSESSIVE = re.compile(r"['’](?:s|m|re|ve|ll|d)$|(?<=s)['’]$", re.IGNORECASE)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;…\n]\s*)[\s\"“”„«'‘’(¿¡-]*$")
# A word with a capital behind one of these, or behind one and an adjective, is a noun in German.
_GERMAN_ARTICLE = re.compile(
    r"\b(?:d(?:er|ie|as|en|em|es)|(?:k?ein|mein|dein|sein|ihr|unser|euer|eur|dies|jed|all|viel|manch|welch)(?:e[mnrs]?)?"
    r"|i[mns]|am|ans|zum|zur|beim|vom|aufs?|fürs|kein\w*|\d+|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn)"
    r"(?: [a-zäöüß]+)?$"
)
_GERMAN_NOUN_ENDING = re.compile(r"(?:ung|heit|keit|schaft|tion|zeit|tag|abend|woche|monat|jahr|tum)(?:e[ns]?|s)?$")
# Capitalized as names are, and no name that a source must have.
_NO_NAMES = split_words("""
afterward afterwards apparently basically currently meanwhile moreover originally previously sadly dont ive thats theres
benutzer benutzerin nutzer nutzerin
auntie aunty dad daddy gran grandad granddad grandma grandpa granny mom mommy mum mummy nan sis uncle
""")
_TIME_STEMS = split_words("day week month year hour minute today tomorrow yesterday now time")


@dataclass(frozen=True, slots=True)
class TextEvidence:
    """The words of texts (without accents, in lower case), all forms of their numbers, and their stems."""

    words: frozenset[str]
    numbers: frozenset[str]
    stems: frozenset[str]
    characters: frozenset[str]  # Han characters
    text: str

    def has_name(self, name: str) -> bool:
        """Return whether the texts contain all words of a name."""
        plain = fold(" ".join(name.split()))
        if re.search(rf"(?<![a-zа-я0-9]){re.escape(plain)}(?![a-zа-я0-9])", self.text):
            return True
        parts = [part for part in re.split(r"[\s.&+/_@:-]+", plain) if part]
        return bool(parts) and all(self._has_word(part) for part in parts)

    def has_number(self, number: NumberMention) -> bool:
        return bool(number.forms & self.numbers)

    def _has_word(self, word: str) -> bool:
        bare = _strip(word)
        if {word, bare, bare.removesuffix("s"), f"{bare}s"} & self.words:
            return True
        return bool(_CYRILLIC.search(bare)) and any(_is_inflection(bare, other) for other in self.words)


def collect_evidence(texts: Iterable[str], *, code: str = ENGLISH) -> TextEvidence:
    """Return the words, numbers and stems of all texts together; numbers are also read in the language `code`."""
    found = [_read_text(text, code) for text in texts]
    return TextEvidence(
        words=frozenset[str]().union(*(one.words for one in found)),
        numbers=frozenset[str]().union(*(one.numbers for one in found)),
        stems=frozenset[str]().union(*(one.stems for one in found)),
        characters=frozenset[str]().union(*(one.characters for one in found)),
        text="\n".join(one.text for one in found),
    )


@lru_cache(maxsize=2_048)
def _read_text(text: str, code: str) -> TextEvidence:
    folded = fold(" ".join(text.split()))
    words = {
        part for word in _WORD.findall(folded) for part in (word, _POSSESSIVE.sub("", word), *re.split(r"\W", word))
    }
    codes = dict.fromkeys((detect_language(text), code))
    numbers = {form for one in codes for number in find_numbers(text, one) for form in number.forms}
    return TextEvidence(frozenset(words), frozenset(numbers), list_stems(text), frozenset(_HAN.findall(text)), folded)


def _strip(word: str) -> str:
    """Return a word without the ending of a possessive or a short verb."""
    return _POSSESSIVE.sub("", word)


@lru_cache(maxsize=2_048)
def list_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that carry meaning; of Chinese and Japanese, the characters in pairs.

    >>> sorted(list_stems("She is allergic to hazelnuts."))
    ['allergic', 'hazelnut']
    """
    code = detect_language(text)
    if not load_language(code).is_spaced:
        return frozenset(_list_pairs(text)) | frozenset(word for word in _WORD.findall(fold(text)) if word.isascii())
    words = (_strip(word) for word in _WORD.findall(text.lower().replace("ё", "е")))
    parts = (part for word in words for part in re.split(r"[.&+’'-]", word))
    kept = (word for word in parts if len(word) >= MIN_STEM and not word.isdigit() and word not in _stopwords(code))
    return frozenset(stem for word in kept for stem in _stem_forms(word, code)) - _TIME_STEMS


def _stem_forms(word: str, code: str) -> Iterator[str]:
    yield fold(stem_word(word))
    if code == ENGLISH:
        yield fold(stem_word(lemmatize(word)))


@cache
def _stopwords(code: str) -> frozenset[str]:
    return load_language(code).words | load_language(ENGLISH).words


def _list_pairs(text: str) -> Iterator[str]:
    for run in re.findall(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々]{2,}", text):
        yield from (
            run[n : n + 2] for n in range(len(run) - 1) if _HAN.search(run[n : n + 2]) or _KATAKANA.match(run, n)
        )


def share_stems(first: Iterable[str], second: Iterable[str]) -> Set[str]:
    """Return the stems of the first text that have a similar stem in the second, also as part of a compound."""
    others = frozenset(second)
    return {stem for stem in first if stem in others or any(_are_similar(stem, other) for other in others)}


def _are_similar(stem: str, other: str) -> bool:
    shorter, longer = sorted((stem, other), key=len)
    if len(shorter) >= SHARED_PREFIX and shorter[:SHARED_PREFIX] == longer[:SHARED_PREFIX]:
        return True
    return len(shorter) >= MIN_PART and (longer.endswith(shorter) or longer.startswith(shorter))


def list_own_names(user_names: Iterable[str]) -> list[str]:
    """Return the names of the user, without those of others ("Dad = Kim's father").

    >>> list_own_names(["Kim", "Dad = Kim's father"])
    ['Kim']
    """
    return [name for name in user_names if "=" not in name]


def find_unsupported_names(text: str, sources: TextEvidence) -> list[str]:
    """Return the names in a text that its sources do not contain.

    A capitalized word is no name if it is a common word of the language, or similar to a word in the sources.
    """
    code = detect_language(text)
    addresses = [match[0] for match in _ADDRESS.finditer(text)]
    plain = _ADDRESS.sub(lambda match: "," * len(match[0]), text)
    names = [
        *addresses,
        *(_iter_unspaced(plain, sources) if code in ("zh", "ja") else _iter_names(plain, code, sources)),
    ]
    return [name for name in dict.fromkeys(names) if not sources.has_name(name)]


def _iter_names(text: str, code: str, sources: TextEvidence) -> Iterator[str]:
    certain = {name.text for name in find_names(text) if name.is_certain} if code == ENGLISH else set[str]()
    parts = {part for name in certain for part in name.split()}
    for match in _WORD.finditer(text):
        word = _strip(match[0])
        if not any(map(str.isupper, word)) or word.isdigit():
            continue
        if word not in parts and _is_common(word, text[: match.start()], code, sources):
            continue
        yield word


def _is_common(word: str, before: str, code: str, sources: TextEvidence) -> bool:
    """Return whether a capitalized word is not a name, by the language, its place and the words of the sources."""
    plain = word.lower()
    if plain in _stopwords(code) or plain in COMMON_WORDS or plain in _NO_NAMES | _date_names(code):
        return True
    starts = _SENTENCE_START.search(before) is not None
    if starts or code == "de":
        if plain in _known_words(code) or share_stems(_stem_forms(plain, code), sources.stems):
            return True
        return not starts and bool(_GERMAN_ARTICLE.search(before) or _GERMAN_NOUN_ENDING.search(plain))
    return False


@cache
def _known_words(code: str) -> frozenset[str]:
    return frozenset(load_known_words().get(code, ()))


@cache
def _date_names(code: str) -> frozenset[str]:
    """Return the names of months and days, which the check of dates reads."""
    dates = load_language(code).dates
    names = (entry for group in ("months", "weekdays") for entry in dates.get(group, ()))
    return frozenset(name for entry in names for name in re.split(r"[|?()\[\]:]+", entry) if len(name) > 2)


def _iter_unspaced(text: str, sources: TextEvidence) -> Iterator[str]:
    """Yield words in Latin letters or Katakana, and runs of Han characters none of which the sources contain."""
    yield from (word for word in re.findall(r"[A-Za-z][A-Za-z0-9'-]+", text))
    yield from _KATAKANA.findall(text)
    new = "".join(one if _HAN.match(one) and one not in sources.characters else " " for one in text)
    yield from (run for run in new.split() if len(run) > 1)


def _is_inflection(word: str, other: str) -> bool:
    """Return whether two forms of a Cyrillic name differ only in their endings."""
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False)))
    return shared >= MIN_STEM and max(len(word), len(other)) - shared <= min(MAX_INFLECTION, shared)


def find_unsupported_numbers(text: str, sources: TextEvidence, *, code: str) -> list[NumberMention]:
    """Return the numbers of a text that its sources do not contain. "One" in words is mostly an article."""
    numbers: Sequence[NumberMention] = find_numbers(text, code)
    return [one for one in numbers if not sources.has_number(one) and not (one.is_word and one.forms & {"0", "1"})]
