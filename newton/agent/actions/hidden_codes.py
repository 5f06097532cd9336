"""Codes of a household in other forms in the arguments of calls: as letters, in base 36, by words of a list. Pure.

Nobody can list all forms. So beside a text of others, a value that looks like a code and stands in no text counts too.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from newton.agent.actions.link_text import find_links
from newton.agent.actions.outbound_rules import EMAIL, split_tokens
from newton.text.languages import load_known_words
from newton.text.letters import fold

MIN_BASE36, MIN_STRANGE, MIN_CONSONANTS, MIN_PART = 3, 5, 6, 3  # characters of a value, and of a part of a joined word
MAX_SHIFTED = 8  # digits of a number that may stand for a code of as many digits
_FIRST_LETTERS = "abcdefghij"

_NO_CODE = re.compile(r"\d{4}-\d\d-\d\d\S*|\b\d{1,2}[:.h]\d\d\b|\b\d{1,2}\.\d{1,2}\.(?:\d{4})?|\b(?:19|20)\d\d\b")
_SINGLE_LETTERS = re.compile(r"(?<!\w)(?:[^\W\d_][\s,;./|-]{1,3}){3,}[^\W\d_](?!\w)")
_WORD = re.compile(r"[^\W_]+")
_MEANS = r"\W{0,3}(?:(?:is|ist|est|es|è|=|means|for)\W+)?"  # between a word and the digit that it stands for
_DIGIT_WITH_WORD = re.compile(rf"(?<!\w)(?P<digit>\d)(?!\w){_MEANS}(?P<word>[^\W\d_]{{3,}})")
_WORD_WITH_DIGIT = re.compile(rf"(?P<word>[^\W\d_]{{3,}}){_MEANS}(?P<digit>\d)(?!\w)")
_LATIN = re.compile(r"[A-Za-z]+")
_VOWEL = re.compile(r"[aeiouy]", re.IGNORECASE)


def has_hidden_code(values: Sequence[str], codes: Collection[str], *, texts: Sequence[str], foreign: str) -> bool:
    """Return whether arguments have one of the codes in another form, or, beside text of others, a value like a code.

    `texts` are those of the prompt; what stands in them is no hidden code.

    >>> said = ("E E H B", "It is 3G7.", "Ref 5582", "tree tree boat lamp", "See xK7qPz", "A tree in May 2031")
    >>> lists = "4 is tree, 7 is boat, 1 is lamp"
    >>> [has_hidden_code([one], ["4471"], texts=[], foreign=lists) for one in said]
    [True, True, True, True, True, False]
    """
    text = _remove_addresses("\n".join(values))
    known = frozenset(_WORD.findall(fold("\n".join(texts))))
    words = [one for one in map(fold, _WORD.findall(text)) if one not in known]
    digits = [code for code in codes if code.isdigit()]
    if any(one in form for code in digits for form in _list_forms(words, text) for one in _to_letters(code)):
        return True
    if any(_to_base36(code) in words for code in digits):
        return True
    if not foreign:
        return False
    table = dict(_read_table(foreign))
    spelled = "".join(table.get(one, "") for one in map(fold, _WORD.findall(text)))
    if any(code in spelled for code in digits):
        return True
    return _has_strange_value(text, digits, frozenset(split_tokens("\n".join(texts))) | known)


def _remove_addresses(text: str) -> str:
    for link in reversed(find_links(text)):
        text = f"{text[: link.start]} {text[link.end :]}"
    return _NO_CODE.sub(" ", EMAIL.sub(" ", text))


def _list_forms(words: Sequence[str], text: str) -> Iterator[str]:
    """Yield the words that may be a code in letters: whole words, and single letters together."""
    yield from (f" {one} " for one in words)
    yield from (f" {''.join(_WORD.findall(fold(found[0])))} " for found in _SINGLE_LETTERS.finditer(text))


def _to_letters(code: str) -> Iterator[str]:
    """Yield a code of digits with letters in their place, from A for 0 and from A for 1."""
    for first in (0, 1):
        yield f" {''.join(_FIRST_LETTERS[(int(one) - first) % 10] for one in code)} "


def _to_base36(code: str) -> str:
    """Return a code of digits in base 36, or an empty text if that is short, or a word of a language."""
    number, found = int(code), ""
    while number:
        number, rest = divmod(number, 36)
        found = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + found
    is_word = found.isalpha() and any(found in words for words in load_known_words().values())
    return "" if len(found) < MIN_BASE36 or is_word else found


def _read_table(foreign: str) -> Iterator[tuple[str, str]]:
    """Yield the words to which a text of others gives a digit."""
    for pattern in (_WORD_WITH_DIGIT, _DIGIT_WITH_WORD):
        yield from ((fold(found["word"]), found["digit"]) for found in pattern.finditer(foreign))


def _has_strange_value(text: str, codes: Collection[str], known: Collection[str]) -> bool:
    """Return whether a text has a value that looks like a code, and stands nowhere else."""
    lengths = {len(code) for code in codes if len(code) <= MAX_SHIFTED}
    numbers = (one for one in split_tokens(text) if one.isdigit() and one not in known)
    if any(len(one) in lengths for one in numbers):
        return True
    if any(not set(_WORD.findall(fold(found[0]))) <= set(known) for found in _SINGLE_LETTERS.finditer(text)):
        return True
    return any(_is_strange(one) for one in _WORD.findall(text) if fold(one) not in known)


def _is_strange(word: str) -> bool:
    """Return whether a word is none of a language: of mixed letters and digits, or cases, or without vowels.

    >>> [_is_strange(one) for one in ("xK7qPz", "a1b2c3", "qzrxkvv", "OutboundRules", "COVID19", "Rhythms", "2nd")]
    [True, True, True, False, False, False, False]
    """
    if len(word) < MIN_STRANGE or not word.isascii():
        return False
    if len(re.findall(r"[A-Za-z]+|\d+", word)) > 2:
        return True
    if _LATIN.fullmatch(word) and re.search(r"[a-z][A-Z]", word):
        return any(len(one) < MIN_PART for one in re.findall(r"[A-Z]*[a-z]*", word) if one)
    return _LATIN.fullmatch(word) is not None and len(word) >= MIN_CONSONANTS and not _VOWEL.search(word)
