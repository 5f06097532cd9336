"""Comparison of the spellings of names, and regular expressions that find them. Pure."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Set
from functools import lru_cache

from newton.heart.stopwords import COMMON_WORDS, TITLES, split_words

MARKS = "\u0300-\u036f"  # combining marks, which follow a letter in decomposed Unicode
MIN_LOOSE_LETTERS = 5  # shorter words differ too often by one sound: Ana, Anna
PARTICLES = split_words(
    "of de da del della di du des van von der den zu zum zur la le el al bin ibn dos do ten ter af av"
)
HONORIFICS = TITLES | split_words(
    "captain uncle aunt auntie grandma grandpa granny cousin brother sister coach professor sir lady lord father mother"
    " herr frau fräulein onkel tante opa oma monsieur madame mademoiselle mme mlle señor señora don doña sig signor"
    " signora senhor senhora meneer mevrouw pan pani dear hi hello hey"
)

_LETTERS = str.maketrans({
    "ß": "ss", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "a", "œ": "o", "ı": "i", "’": "'", "ʼ": "'"
})  # fmt: skip
_CYRILLIC = str.maketrans("абвгдезийклмнопрстуфхыэі", "abvgdeziiklmnoprstufhiei") | str.maketrans(
    {
        "ж": "zh",
        "ц": "ts",
        "ч": "ch",
        "ш": "sh",
        "щ": "shch",
        "ъ": "",
        "ь": "",
        "ю": "iu",
        "я": "ia",
        "є": "e",
        "ґ": "g",
    }
)
_UMLAUT = re.compile(r"([aou])e")
_DOUBLE = re.compile(r"(\w)\1")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_START, _END = rf"(?:(?<![\w{MARKS}])|(?<=\\[nrt]))", rf"(?![\w{MARKS}])"


@lru_cache(maxsize=50_000)
def fold_name(word: str) -> str:
    """Return the letters of a name without case, accents, spaces, hyphens and the "e" of a written-out umlaut.

    >>> fold_name("Aumüller") == fold_name("Aumueller"), fold_name("de la Croix"), fold_name("O'Shaughnessy")
    (True, 'delacroix', 'oshaughnessy')
    """
    plain = unicodedata.normalize("NFKD", word.casefold().translate(_LETTERS))
    letters = "".join(c for c in plain.translate(_CYRILLIC) if not unicodedata.combining(c) and c.isalnum())
    return _UMLAUT.sub(r"\1", letters)


@lru_cache(maxsize=50_000)
def fold_sound(word: str) -> str:
    """Return the folded name without differences that are rarely heard, or "" if the name is too short for it.

    >>> fold_sound("Katharina") == fold_sound("Katarina"), fold_sound("Mohammed") == fold_sound("Mohamed")
    (True, True)
    """
    folded = fold_name(word)
    if len(folded) < MIN_LOOSE_LETTERS:
        return ""
    return _DOUBLE.sub(r"\1", folded.replace("th", "t").replace("ph", "f").replace("y", "i"))


def split_name(name: str) -> list[str]:
    """Return the words of a name that may stand for it alone, without particles and titles.

    >>> split_name("Dr. Dorothea von Brandt")
    ['Dorothea', 'Brandt']
    """
    words = [word.strip(".,") for word in name.split()]
    return [word for word in words if len(word) > 1 and word.casefold() not in PARTICLES | TITLES]


def initials_of(name: str) -> str:
    """Return the first letters of the words of a name, in lower case.

    >>> initials_of("Dorothea von Brandt")
    'dvb'
    """
    return "".join(fold_name(word)[:1] for word in name.split())


def are_close(first: str, second: str) -> bool:
    """Return whether two names of at least five letters differ by one letter, or share all but the end.

    >>> are_close("Cathrine", "Catherine"), are_close("Kathi", "Katharina"), are_close("Martin", "Marion")
    (True, True, False)
    """
    one, two = sorted((fold_name(first), fold_name(second)), key=len)
    if len(one) < MIN_LOOSE_LETTERS or one == two or one[:2] != two[:2]:
        return False
    if fold_sound(first)[:-1] == fold_sound(second)[: len(fold_sound(first)) - 1] or two.startswith(one[:-1]):
        return True
    if len(two) - len(one) > 1:
        return False
    start = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))
    return one[start:] == two[start + 1 :] or (len(one) == len(two) and one[start + 1 :] == two[start + 1 :])


def is_common_word(word: str) -> bool:
    return word.casefold() in COMMON_WORDS


def build_name_pattern(spellings: Iterable[str], others: Mapping[str, Set[tuple[str, str]]]) -> str:
    """Return a regular expression, for Python and PostgreSQL, that finds the spellings as whole words in exact case.

    `others` maps a spelling to the words before and after it in the names of other people; one of the two is "".
    Scripts without spaces have no words, so their spellings are found anywhere.
    """
    ordered = sorted(spellings, key=len, reverse=True)
    unspaced = [_escape(one) for one in ordered if _UNSPACED.search(one)]
    words = [_add_exceptions(one, others.get(one, frozenset())) for one in ordered if not _UNSPACED.search(one)]
    return "|".join([*([f"{_START}(?:{'|'.join(words)}){_END}"] if words else []), *unspaced])


def _escape(spelling: str) -> str:
    return re.escape(spelling).replace("\\ ", r"\s+")


def _add_exceptions(spelling: str, others: Set[tuple[str, str]]) -> str:
    before = "".join(rf"(?<!{re.escape(first)})" for first, _ in sorted(others) if first)
    after = "".join(rf"(?!{re.escape(last)}{_END})" for _, last in sorted(others) if last)
    return f"{before}{_escape(spelling)}{after}"
