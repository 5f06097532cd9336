"""Folding of characters: case, width, accents, invisible characters, and signs that look like Latin letters. Pure."""

import functools
import re
import unicodedata
from collections.abc import Iterable

from newton.text.stems import TERM, stem_word

# Characters that no font shows: zero-width and bidirectional ones, and tag characters.
INVISIBLE_CHARACTERS = "\u00ad\u034f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef"
# Removed before composition, because they can be between a letter and its mark.
_INVISIBLE_FORMATS = re.compile(f"[{INVISIBLE_CHARACTERS}]")
# Others, and marks that are drawn over a letter and were not composed with it.
_INVISIBLE = re.compile(
    f"[{INVISIBLE_CHARACTERS}\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0"
    "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]"
)
_FOREIGN_LETTER = re.compile("[\u0370-\u03ff\u0400-\u052f\u0530-\u058f]")
_LATIN_LETTER = re.compile("[a-z]")
_LOOK_ALIKES = str.maketrans(
    "аеорсхуіѕјһԁӏѵԝԛвкмнтгґαβεικνορτυχωγηօոսհցզᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢıɡɑɩł",
    "aeopcxyisjhdlvwqbkmhtrrabeiknoptuxwynonuhgqabcdefghijklmnoprstuvwyzigail",
)
_TO_CYRILLIC = str.maketrans("aeopcxyisjhkmtb", "аеорсхуіѕјһкмтв")
_DIGITS = str.maketrans("0134578", "oleastb")
Words = tuple[str, ...]
_DIGIT_IN_WORD = re.compile(r"(?<=[^\W\d_])\d|\d(?=[^\W\d_])")


def fold_characters(text: str) -> str:
    """Return the text in compatible composed characters (NFKC), without invisible ones, and without case.

    >>> fold_characters("\uff24rop\u200b Ta\u0308ble")
    'drop täble'
    """
    if text.isascii():
        return text.lower()
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", _INVISIBLE_FORMATS.sub("", text))).casefold()


def remove_accents(text: str) -> str:
    """Return a text without the marks on its letters."""
    if text.isascii():
        return text
    return "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))


def fold(text: str) -> str:
    """Return a text as `fold_characters` does, and without accents.

    >>> fold("Kovač ﬁne")
    'kovac fine'
    """
    return remove_accents(fold_characters(text))


def fold_look_alikes(text: str) -> str:
    """Return the text as `fold_characters` does, with signs that look like Latin letters replaced by these.

    >>> fold_look_alikes("\u0406dentity c0de 2026")
    'identity code 2026'
    """
    return _DIGIT_IN_WORD.sub(lambda digit: digit[0].translate(_DIGITS), fold_characters(text).translate(_LOOK_ALIKES))


def split_folded(text: str) -> list[str]:
    """Return the words of a text with folded characters, each in one alphabet: letters of two are a disguise."""
    words = TERM.findall(fold_characters(text))
    return words if text.isascii() else list(map(_repair_word, words))


def _repair_word(word: str) -> str:
    """Return a word with letters of two alphabets in the alphabet of most of its letters."""
    foreign = len(_FOREIGN_LETTER.findall(word))
    latin = len(_LATIN_LETTER.findall(word)) if foreign else 0
    if not (foreign and latin):
        return word
    return word.translate(_LOOK_ALIKES if latin >= foreign else _TO_CYRILLIC)


@functools.lru_cache(maxsize=20_000)
def to_skeleton(word: str) -> str:
    """Return the stem of a word, with look-alike letters of other alphabets and digits in words made Latin letters.

    >>> to_skeleton("passw0rds"), to_skeleton("2026")
    ('password', '2026')
    """
    if not word.isalpha() and any(map(str.isalpha, word)):
        word = word.translate(_DIGITS)
    return stem_word(word).translate(_LOOK_ALIKES)


def to_stems(words: Iterable[str]) -> Words:
    """Return the stems of words, with letters for signs that look like them."""
    return tuple(map(to_skeleton, words))
