"""Normalization of texts and triggers, so that a censor also finds a disguised or encoded phrase. Pure.

A forbidden phrase can be written in full width, with invisible characters or letters of another alphabet, inflected, or
encoded as base64, hexadecimal digits, percent escapes or character references. Text and trigger are normalized alike,
and encoded parts of a text are decoded.
"""

import functools
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from newton.text.encoded_parts import find_encoded_parts, unescape
from newton.text.stems import TERM, stem_word

_MAX_DEPTH = 2  # of encodings within encodings
_MIN_SPELLED_LETTERS = 4

# A passage that is compared by meaning: a sentence, so that nothing beside it dilutes what it means; at most as many
# characters as the embedding model takes word pieces, in every script.
_PASSAGE = re.compile(r"\S(?:.{18,238}?[.!?…。！？\n](?=\s|$)|.{0,238}(?=\s|$)|.{0,238})", re.DOTALL)

# Characters that no font shows, and marks that are drawn over a letter and were not composed with it.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\U000e0000-\U000e01ef\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]"
)
# Removed before composition, because they can be between a letter and its mark.
_INVISIBLE_FORMATS = re.compile(
    "[\u00ad\u034f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]"
)
_GAP_MARKS = re.compile(r"[\s!-/:-@\[-`{-~\u00a0-\u00bf\u2000-\u206f\u3000-\u303f\uff00-\uff0f·]+")
_FOREIGN_LETTER = re.compile("[\u0370-\u03ff\u0400-\u052f\u0530-\u058f]")
_LATIN_LETTER = re.compile("[a-z]")
# Scripts that write no spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, Japanese and Chinese.
_UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)

_LOOK_ALIKES = str.maketrans(
    {
        **dict(zip("аеорсхуіѕјһԁӏѵԝԛ", "aeopcxyisjhdlvwq", strict=True)),
        **dict(zip("вкмнтгґ", "bkmhtrr", strict=True)),
        **dict(zip("αβεικνορτυχωγη", "abeiknoptuxwyn", strict=True)),
        **dict(zip("օոսհցզ", "onuhgq", strict=True)),
        **dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz", strict=True)),
        **dict(zip("ıɡɑɩł", "igail", strict=True)),
    }
)
_TO_CYRILLIC = str.maketrans("aeopcxyisjhkmtb", "аеорсхуіѕјһкмтв")
_DIGITS = str.maketrans("0134578", "oleastb")
_DIGIT_IN_WORD = re.compile(r"(?<=[^\W\d_])\d|\d(?=[^\W\d_])")


class SearchedText(NamedTuple):
    """A text in the forms in which phrases are searched: its word stems, its letters without gaps, and spelled words.

    Each stem has a space on both sides, so that `in` finds whole words only. `letters` is "" for a plain ASCII text, in
    which no unspaced phrase can be. `spelled` has the words written letter by letter, such as "d r o p", as "drop".
    """

    stems: str
    letters: str
    spelled: str


class SearchedPhrase(NamedTuple):
    """A phrase in the forms in which a text is searched for it.

    One in a script without spaces between words (`unspaced`) is found anywhere, others only as whole words.
    """

    stems: str
    letters: str
    unspaced: bool

    def is_in(self, text: SearchedText) -> bool:
        """Return whether the text contains the phrase."""
        if self.unspaced:
            return self.letters in text.letters
        return self.stems in text.stems or (len(self.letters) >= _MIN_SPELLED_LETTERS and self.letters in text.spelled)


@functools.lru_cache(maxsize=16)
def prepare_text(text: str) -> SearchedText:
    """Return a text, and the decoded parts of it, in the forms in which phrases are searched."""
    variants = list_variants(text)
    words = [list(_iter_words(variant)) for variant in variants]
    stems = "\n".join(f" {' '.join(map(_to_skeleton, one))} " for one in words)
    letters = "" if text.isascii() and len(variants) == 1 else "\n".join(map(_squeeze, variants))
    return SearchedText(stems, letters, " ".join(spelled for one in words for spelled in _join_spelled(one)))


@functools.lru_cache(maxsize=2_000)
def prepare_trigger(trigger: str) -> SearchedPhrase:
    """Return the trigger phrase of a censor in its forms for the search; `stems` is "" for a phrase without words."""
    plain = fold_characters(trigger)
    words = list(_iter_words(plain))
    stems = f" {' '.join(map(_to_skeleton, words))} " if words else ""
    is_unspaced = bool(_UNSPACED.search(plain))
    return SearchedPhrase(stems, _squeeze(plain) if is_unspaced else "".join(words), is_unspaced)


@functools.lru_cache(maxsize=16)
def list_variants(text: str) -> tuple[str, ...]:
    """Return the text with folded characters, and each decoded part of it, also with folded characters.

    >>> list_variants("run ZHJvcCB0YWJsZQ== now")
    ('run zhjvccb0ywjszq== now', 'drop table')
    """
    found: dict[str, None] = {fold_characters(text): None}
    pending = [text]
    for _ in range(_MAX_DEPTH):
        pending = [decoded for one in pending for decoded in _decode_parts(one)]
        found.update((fold_characters(one), None) for one in pending)
    return tuple(found)


def iter_passages(text: str) -> Iterator[str]:
    """Yield all of the text in passages of at most 240 characters: a sentence each if possible, or else whole words.

    >>> list(iter_passages("Short. Text."))
    ['Short. Text.']
    """
    for match in _PASSAGE.finditer(text):
        yield match[0]


def fold_characters(text: str) -> str:
    """Return the text in compatible composed characters (NFKC), without invisible ones, and without case.

    >>> fold_characters("\uff24rop\u200b Ta\u0308ble")
    'drop täble'
    """
    if text.isascii():
        return text.lower()
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", _INVISIBLE_FORMATS.sub("", text))).casefold()


def fold_look_alikes(text: str) -> str:
    """Return the text as `fold_characters` does, with signs that look like Latin letters replaced by these.

    >>> fold_look_alikes("\u0406dent1ty 2026")
    'identity 2026'
    """
    return _DIGIT_IN_WORD.sub(lambda digit: digit[0].translate(_DIGITS), fold_characters(text).translate(_LOOK_ALIKES))


def _decode_parts(text: str) -> Iterator[str]:
    yield from (decoded for _, _, decoded in find_encoded_parts(text))
    yield from unescape(text)


def _iter_words(folded: str) -> Iterator[str]:
    words = TERM.findall(folded)
    return map(_repair_word, words) if not folded.isascii() else iter(words)


def _repair_word(word: str) -> str:
    """Return a word with letters of two alphabets, which is a disguise, in the alphabet of most of its letters."""
    foreign = len(_FOREIGN_LETTER.findall(word))
    latin = len(_LATIN_LETTER.findall(word)) if foreign else 0
    if not (foreign and latin):
        return word
    return word.translate(_LOOK_ALIKES if latin >= foreign else _TO_CYRILLIC)


@functools.lru_cache(maxsize=20_000)
def _to_skeleton(word: str) -> str:
    """Return the stem of a word, with look-alike letters of other alphabets and digits in words made Latin letters.

    >>> _to_skeleton("passw0rds"), _to_skeleton("2026")
    ('password', '2026')
    """
    if not word.isalpha() and any(map(str.isalpha, word)):
        word = word.translate(_DIGITS)
    return stem_word(word).translate(_LOOK_ALIKES)


def _join_spelled(words: list[str]) -> Iterator[str]:
    """Yield words that are spelled letter by letter, such as "d r o p"."""
    run: list[str] = []
    for word in [*words, ""]:
        if len(word) == 1:
            run.append(word)
        elif run:
            if len(run) >= _MIN_SPELLED_LETTERS:
                yield "".join(run)
            run = []


def _squeeze(folded: str) -> str:
    return _GAP_MARKS.sub("", folded)
