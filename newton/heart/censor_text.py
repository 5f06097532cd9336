"""Preparation of texts and triggers, so that a censor also finds a disguised or encoded phrase. Pure.

A forbidden phrase can be written in full width, with invisible characters or letters of another alphabet, inflected,
encoded as base64, digits or escapes, or in one of the `disguises`. Text and trigger are normalized alike, and encoded
parts of a text are decoded.
"""

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from newton.heart.disguises import (
    TokenReading,
    list_ciphers,
    list_games,
    list_morse,
    list_undone,
    merge_similar,
    read_tokens,
    remove_symbols,
    remove_vowels,
    shorten_doubles,
)
from newton.text.encoded_parts import list_decoded
from newton.text.letters import Words, fold_characters, remove_accents, split_folded, to_stems

_MAX_DEPTH = 2  # of encodings within encodings
_MIN_DISGUISED_LETTERS = 4
_MIN_JOINED_LETTERS = 4  # of each of two words, which may be written as one: "the rapist" is not
_MIN_LONG_LETTERS = 8  # of a phrase whose shorter forms are no other words
_MIN_CIPHER_LETTERS = 7
_MIN_PIECES = 3  # of a phrase that is written in pieces; the spaces around it count too
_MIN_CODES, _MIN_SYLLABLES = 2, 3  # of Morse code, and of a language game
_WHOLE_WORD = re.compile(r"(?<= )\S+(?= )")
_CONJUNCTIONS = frozenset(("and", "und", "et", "y", "e", "och", "og", "en", "i", "и"))

# A passage that is compared by meaning: a sentence, so that nothing beside it dilutes what it means; at most as many
# characters as the embedding model takes word pieces, in every script.
_PASSAGE = re.compile(r"\S(?:.{18,238}?[.!?…。！？\n](?=\s|$)|.{0,238}(?=\s|$)|.{0,238})", re.DOTALL)

_GAP_MARKS = re.compile(r"[\s!-/:-@\[-`{-~\u00a0-\u00bf\u2000-\u206f\u3000-\u303f\uff00-\uff0f·]+")
# Scripts that write no spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, Japanese and Chinese.
_UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


class WordView(NamedTuple):
    """The words of a text, or of readings of it: as a set, and in their order, each within spaces."""

    words: frozenset[str] = frozenset()
    text: str = ""

    @classmethod
    def of(cls, readings: Iterable[Words]) -> "WordView":
        """Return the words of several readings of a text."""
        lists = list(filter(None, dict.fromkeys(readings)))
        return cls(frozenset(chain.from_iterable(lists)), "\n".join(f" {' '.join(words)} " for words in lists))

    def has(self, words: tuple[str, ...]) -> bool:
        """Return whether the words are there, one after the other."""
        return bool(words) and self.words.issuperset(words) and f" {' '.join(words)} " in self.text


# A text in the forms in which phrases are searched: its `words`, their `stems`, and what may be disguised, by the way
# in which it is read (see `_read`); `variants` are the text and its decoded parts, with folded characters.
SearchedText = Mapping[str, WordView]


class SearchedPhrase(NamedTuple):
    """A phrase in the forms in which a text is searched for it.

    One in a script without spaces between words (`unspaced`) is found anywhere, others only as whole words. `forms` are
    the words that a view of a disguised text has, and `ciphers` are parts of a plain one. `pieces` matches the phrase
    in runs of short words.
    """

    stems: Words
    letters: str
    unspaced: bool
    forms: Sequence[tuple[str, Words]]
    spelled: str
    ciphers: Sequence[str]
    cipher_words: frozenset[str]
    pieces: "re.Pattern[str]"

    def is_in(self, text: SearchedText) -> bool:
        """Return whether the text contains the phrase."""
        if self.unspaced:
            return any(self.letters in _squeeze(one) for one in text["variants"].words if not one.isascii())
        is_long = len(self.letters) >= _MIN_DISGUISED_LETTERS
        return text["stems"].has(self.stems) or (is_long and self._is_disguised_in(text))

    def _is_disguised_in(self, text: SearchedText) -> bool:
        plain = text["words"]
        return (
            self.spelled in text["spelled"].text
            or any(text[name].has(form) for name, form in self.forms)
            or any(found[0].count(" ") > _MIN_PIECES for found in self.pieces.finditer(text["runs"].text))
            or (not plain.words.isdisjoint(self.cipher_words) and any(one in plain.text for one in self.ciphers))
        )


@functools.lru_cache(maxsize=16)
def prepare_text(text: str) -> SearchedText:
    """Return a text, and the decoded parts of it, in the forms in which phrases are searched."""
    readings = defaultdict[str, list[Words]](list)
    for name, words in chain.from_iterable(map(_read, _list_sources(text))):
        readings[name].append(words)
    views = {name: WordView.of(found) for name, found in readings.items()}
    return defaultdict(WordView, views, variants=WordView(frozenset(list_variants(text))))


def _read(text: str) -> Iterator[tuple[str, Words]]:
    """Yield the readings of a text, each with the name of its view."""
    lines = list(map(read_tokens, text.splitlines()))
    columns = dict(zip(TokenReading._fields, zip(*chain.from_iterable(lines), strict=True), strict=False))
    marks, short, spelled = ("".join(columns.get(name, ())) for name in ("marks", "short", "spelled"))
    for name, field in _FIELDS if text.isascii() else (*_FIELDS, *_ACCENTED):
        yield name, tuple(chain.from_iterable(columns.get(field, ())))
    yield "spelled", tuple(spelled.split())
    yield from (("runs", tuple(run.split())) for run in short.split("\n") if run.count(" ") >= _MIN_PIECES)
    for name, mark in _OF_LINES:
        if mark in marks:
            marked = (line for line in lines if any(mark in one.marks for one in line))
            yield name, _join(chain.from_iterable(marked), name)
    if marks.count("s") >= _MIN_CODES:
        yield "spelled", tuple(list_morse(text))
    if marks.count("g") >= _MIN_SYLLABLES:
        yield from (("disguised", to_stems(split_folded(one))) for one in list_games(text))
    yield from (("disguised", _join(read_tokens(undone), "bare")) for undone in list_undone(text))


def _join(tokens: Iterable[TokenReading], field: str) -> Words:
    return tuple(chain.from_iterable(map(attrgetter(field), tokens)))


# The views of a text by the field of the readings of its tokens, and those of lines in which a token has a mark.
_FIELDS = (("words", "words"), ("stems", "stems"), ("disguised", "stems"), ("disguised", "bare"))
_ACCENTED = (("plain", "plain"), ("plain", "plain_bare"))
_OF_LINES = (("names", "c"), ("leet", "l"), ("masked", "m"))


@functools.lru_cache(maxsize=2_000)
def prepare_trigger(trigger: str) -> SearchedPhrase:
    """Return the trigger phrase of a censor in its forms for the search; `stems` is () for a phrase without words."""
    plain, words = fold_characters(trigger), split_folded(trigger)
    is_unspaced, letters, stems = bool(_UNSPACED.search(plain)), "".join(words), to_stems(words)
    unaccented = to_stems(remove_accents(remove_symbols(plain)).split())
    written = [remove_symbols(plain).split(), ["and" if word in _CONJUNCTIONS else word for word in words]]
    if len(letters) >= _MIN_LONG_LETTERS:
        written.append(shorten_doubles(plain).split())
    if len(words) > 2 or min(map(len, words), default=0) >= _MIN_JOINED_LETTERS:
        written.append([letters])
    forms = [*(("disguised", one) for one in (*map(to_stems, written), unaccented))]
    forms += [("leet", to_stems(merge_similar(plain).split()))]
    forms += [("names", stems), ("plain", unaccented)] if len(stems) > 1 else []
    is_long = len(letters) >= _MIN_CIPHER_LETTERS
    forms += [("masked", tuple(map(remove_vowels, words)))] if is_long else []
    ciphers = list_ciphers(words, stems[-1]) if is_long else ()
    return SearchedPhrase(
        stems=stems,
        letters=_squeeze(plain) if is_unspaced else letters,
        unspaced=is_unspaced,
        forms=tuple(dict.fromkeys(forms)),
        spelled=remove_accents(letters),
        ciphers=ciphers,
        cipher_words=frozenset(word for cipher in ciphers for word in _WHOLE_WORD.findall(cipher)[:1]),
        pieces=re.compile(f" {' ?'.join(map(re.escape, letters))} "),
    )


@functools.lru_cache(maxsize=16)
def _list_sources(text: str) -> Sequence[str]:
    """Return the text, and each decoded part of it."""
    return list_decoded(text, depth=_MAX_DEPTH)


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


@functools.lru_cache(maxsize=16)
def _squeeze(folded: str) -> str:
    return _GAP_MARKS.sub("", folded)
