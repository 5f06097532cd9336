"""Normalization of texts and triggers, so that a censor also finds a disguised or encoded phrase. Pure.

A forbidden phrase can be written in full width, with invisible characters or letters of another alphabet, inflected,
encoded as base64, digits or escapes, or in one of the `disguises`. Text and trigger are normalized alike, and encoded
parts of a text are decoded.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from newton.heart.disguises import (
    MIN_SPELLED_LETTERS,
    list_ciphers,
    list_short_runs,
    list_spelled,
    list_views,
    merge_similar,
    read_leet,
    read_masked,
    remove_accents,
    remove_symbols,
    remove_vowels,
    shorten_doubles,
    split_names,
)
from newton.text.encoded_parts import find_encoded_parts, unescape
from newton.text.stems import TERM, stem_word

_MAX_DEPTH = 2  # of encodings within encodings
_MIN_JOINED_LETTERS = 4  # of each of two words, which may be written as one: "the rapist" is not
_MIN_LONG_LETTERS = 8  # of a phrase whose shorter forms are no other words
_MIN_CIPHER_LETTERS = 7
_MIN_PIECES = 3  # of a phrase that is written in pieces; the spaces around it count too
_WHOLE_WORD = re.compile(r"(?<= )\S+(?= )")
_CONJUNCTIONS = frozenset(("and", "und", "et", "y", "e", "och", "og", "en", "i", "и"))

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


class WordView(NamedTuple):
    """The words of a text, or of views of it: as a set, and in their order, each within spaces."""

    words: frozenset[str]
    text: str

    @classmethod
    def of(cls, views: Iterable[Sequence[str]]) -> "WordView":
        """Return the words of several views of a text."""
        lists = list(filter(None, views))
        return cls(frozenset(chain.from_iterable(lists)), "\n".join(f" {' '.join(words)} " for words in lists))

    def has(self, words: Sequence[str]) -> bool:
        """Return whether the words are there, one after the other."""
        return bool(words) and self.words.issuperset(words) and f" {' '.join(words)} " in self.text


class SearchedText(NamedTuple):
    """A text in the forms in which phrases are searched.

    `stems` are those of its words, and `disguised` also those of views of it (see `disguises`): others are
    `unaccented`, have the words of `names`, or letters for `leet` digits and `masked` letters. `letters` has its
    letters without gaps; it is "" for a plain ASCII text, in which no unspaced phrase can be. `spelled` has words that
    are written letter by letter, `plain` the words as they are, and `runs` the runs of short words.
    """

    stems: WordView
    letters: str
    disguised: WordView
    unaccented: WordView
    names: WordView
    leet: WordView
    masked: WordView
    plain: WordView
    spelled: str
    runs: str


class SearchedPhrase(NamedTuple):
    """A phrase in the forms in which a text is searched for it.

    One in a script without spaces between words (`unspaced`) is found anywhere, others only as whole words. `forms` are
    those for a disguised text, and `ciphers` those for a plain one. `pieces` matches the phrase in runs of short words.
    """

    stems: tuple[str, ...]
    letters: str
    unspaced: bool
    forms: tuple[tuple[str, ...], ...]
    spelled: str
    unaccented: tuple[str, ...]
    leet: tuple[str, ...]
    masked: tuple[str, ...]
    ciphers: tuple[str, ...]
    cipher_words: frozenset[str]
    pieces: "re.Pattern[str]"

    def is_in(self, text: SearchedText) -> bool:
        """Return whether the text contains the phrase."""
        if self.unspaced:
            return self.letters in text.letters
        return text.stems.has(self.stems) or (len(self.letters) >= MIN_SPELLED_LETTERS and self._is_disguised_in(text))

    def _is_disguised_in(self, text: SearchedText) -> bool:
        return (
            self.spelled in text.spelled
            or any(text.disguised.has(form) for form in self.forms)
            or text.leet.has(self.leet)
            or (len(self.stems) > 1 and (text.names.has(self.stems) or text.unaccented.has(self.unaccented)))
            or any(found[0].count(" ") > _MIN_PIECES for found in self.pieces.finditer(text.runs))
            or (len(self.letters) >= _MIN_CIPHER_LETTERS and self._is_ciphered_in(text))
        )

    def _is_ciphered_in(self, text: SearchedText) -> bool:
        if not text.plain.words.isdisjoint(self.cipher_words) and any(one in text.plain.text for one in self.ciphers):
            return True
        return text.masked.has(self.masked)


@functools.lru_cache(maxsize=16)
def prepare_text(text: str) -> SearchedText:
    """Return a text, and the decoded parts of it, in the forms in which phrases are searched."""
    sources, variants = _list_sources(text), list_variants(text)
    words = [list(_iter_words(variant)) for variant in variants]
    views = [seen for source in sources for view in list_views(source) if (seen := _fold_words(view)) not in words]
    unaccented = [] if text.isascii() else [remove_accents(" ".join(seen)).split() for seen in (*words, *views)]
    spelled = (one for variant, listed in zip(variants, words, strict=True) for one in list_spelled(variant, listed))
    return SearchedText(
        stems=WordView.of(map(_to_stems, words)),
        letters="" if text.isascii() and len(variants) == 1 else "\n".join(map(_squeeze, variants)),
        disguised=WordView.of(map(_to_stems, (*words, *views))),
        unaccented=WordView.of(map(_to_stems, unaccented)),
        names=WordView.of(_to_stems(_fold_words(split_names(source))) for source in sources),
        leet=WordView.of(_to_stems(read_leet(variant).split()) for variant in variants),
        masked=WordView.of(read_masked(variant).split() for variant in variants),
        plain=WordView.of(words),
        spelled=remove_accents(" ".join(spelled)),
        runs="\n".join(map(list_short_runs, variants)),
    )


@functools.lru_cache(maxsize=2_000)
def prepare_trigger(trigger: str) -> SearchedPhrase:
    """Return the trigger phrase of a censor in its forms for the search; `stems` is () for a phrase without words."""
    plain = fold_characters(trigger)
    words = list(_iter_words(plain))
    is_unspaced, letters = bool(_UNSPACED.search(plain)), "".join(words)
    unaccented = _to_stems(remove_accents(remove_symbols(plain)).split())
    ciphers = list_ciphers(words, _to_skeleton(words[-1])) if words else ()
    written = [remove_symbols(plain).split(), ["and" if word in _CONJUNCTIONS else word for word in words]]
    if len(letters) >= _MIN_LONG_LETTERS:
        written.append(shorten_doubles(plain).split())
    if len(words) > 2 or min(map(len, words), default=0) >= _MIN_JOINED_LETTERS:
        written.append([letters])
    return SearchedPhrase(
        stems=_to_stems(words),
        letters=_squeeze(plain) if is_unspaced else letters,
        unspaced=is_unspaced,
        forms=tuple(dict.fromkeys((*map(_to_stems, written), unaccented))),
        spelled=remove_accents(letters),
        unaccented=unaccented,
        leet=_to_stems(merge_similar(plain).split()),
        masked=tuple(map(remove_vowels, words)),
        ciphers=ciphers,
        cipher_words=frozenset(word for cipher in ciphers for word in _WHOLE_WORD.findall(cipher)[:1]),
        pieces=re.compile(f" {' ?'.join(map(re.escape, letters))} "),
    )


def _to_stems(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(_to_skeleton, words))


def _fold_words(text: str) -> list[str]:
    return list(_iter_words(fold_characters(text)))


@functools.lru_cache(maxsize=16)
def _list_sources(text: str) -> tuple[str, ...]:
    """Return the text, and each decoded part of it."""
    found, pending = {text: None}, [text]
    for _ in range(_MAX_DEPTH):
        pending = [decoded for one in pending for decoded in _decode_parts(one)]
        found.update(dict.fromkeys(pending))
    return tuple(found)


@functools.lru_cache(maxsize=16)
def list_variants(text: str) -> tuple[str, ...]:
    """Return the text with folded characters, and each decoded part of it, also with folded characters.

    >>> list_variants("run ZHJvcCB0YWJsZQ== now")
    ('run zhjvccb0ywjszq== now', 'drop table')
    """
    return tuple(dict.fromkeys(map(fold_characters, _list_sources(text))))


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

    >>> fold_look_alikes("\u0406dentity c0de 2026")
    'identity code 2026'
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


def _squeeze(folded: str) -> str:
    return _GAP_MARKS.sub("", folded)
