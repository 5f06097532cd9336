"""Disguises of a phrase: the readings of a word in which it is plain, and ciphers in which it is written itself. Pure.

What was put into words (markup, symbols, emoji, line breaks) is left out, and signs are read as the letters that they
look like. Apart from markup and line breaks, this concerns one token, which has no white space, so that each token is
read once for all texts. Ciphers change each letter or the order of letters, so they are made of the phrase, which is
short, and not of each text.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import pairwise
from typing import NamedTuple

from newton.content.yaml_files import parse_trusted
from newton.text.letters import Words, fold_characters, remove_accents, split_folded, to_stems

_MAX_KEPT, _MAX_KEPT_CHARS = 10_000, 40  # tokens, and characters of one
_GAME_CHARS = 40  # within which three syllables of a language game begin
_MAX_SHORT_LETTERS = 3  # of one of the pieces of a phrase
_MAX_BROKEN_CHARS = 2_000  # of a text in which words go on in the next line without a hyphen

_GAME_SYLLABLE = re.compile(r"([aeiou])([nmrslz]?)([pbf])\1\2")
_MARKUP = re.compile(r"<[^<>\n]{0,60}>|\[\]\([^()\n]{0,80}\)|\[([^\[\]\n]{1,60})\]\([^()\n]{0,80}\)")
_CAMEL = re.compile(r"(?<=[^\W\d_])(?<![A-Z])(?=[A-Z])")
_AND = re.compile(r"(?<!\S)[&+](?!\S)")
_ELISION = re.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_]{3})")  # as in dell'arte
_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")
_DOUBLED = re.compile(r"([^\W\d_])\1")
_MASKED = re.compile(r"[^\W\d_](?:[*#•×█]|\*{3,})[^\W\d_]")
_VOWELS = re.compile("[aeiouyäöüáéíóúàèìòùâêîôûаеёиоуыэюя]")
_LEET = re.compile(r"[^\W\d_][\d@$!|€£¥+]+[^\W\d_]")
_LEET_SYMBOL = re.compile(r"[@$!|€£¥+](?=\S{0,20}\w)|(?<=\w)[@$€£](?!\w)")
_MORSE = re.compile(r"(?<![\w.-])(?:[.·•−–—-]{1,5}[ /|]{1,4}){3,}[.·•−–—-]{1,5}(?![\w.-])")
_MORSE_TOKEN = re.compile(r"[−–—/|-]*[.·•][.·•−–—/|-]*")
_EDGES = ".,;:!?\"'()[]{}`"  # of a token, which change no reading

_LEET_SYMBOLS = str.maketrans("@$!|€£¥+", "asiielyt")
_LEET_DIGITS = str.maketrans("0123456789", "oizeasgtbg")
_EMOJI_LETTERS = {
    first + place: chr(ord("a") + place) for first in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6) for place in range(26)
}
_MORSE_CODES = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.. "
)
_MORSE_LETTERS: dict[str, str] = dict(zip(_MORSE_CODES.split(), "abcdefghijklmnopqrstuvwxyz", strict=True))
_MORSE_SIGNS = str.maketrans("·•−–—", "..---")
_FLIPPED = str.maketrans("abcdefghijklmnopqrtuvwy", "ɐqɔpǝɟƃɥᴉɾʞlɯuodbɹʇnʌʍʎ")
_MIRRORED = str.maketrans("abcdefghijklmnopqrstuvwxyz", "zyxwvutsrqponmlkjihgfedcba")
_CONSONANTS = re.compile(r"[^aeiouyäöüáéíóúàèìòù\W\d_]")
_FIRST_CONSONANTS = re.compile(r"(?:qu|[^aeiou])*")


class _KeptCharacters(dict[int, int | None]):
    """Letters, digits and white space by their code, and None for all other characters."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        self[code] = code if character.isalnum() or character.isspace() else None
        return self[code]


_KEPT = _KeptCharacters()
_ALPHABETS: dict[str, str] = parse_trusted(
    resources.files("newton.heart").joinpath("spelling_alphabets.yaml").read_text(encoding="utf-8")
)
_SPELLING_WORDS = frozenset(word for alphabet in _ALPHABETS.values() for word in alphabet.split())


class TokenReading(NamedTuple):
    """The readings of a token: its words, their stems, and stems in which it is not disguised.

    These are without symbols (`bare`), with capitals apart (`names`), of `leet`, and without accents (`plain` and
    `plain_bare`). `masked` has the consonants, `spelled` the letters for which words stand, and a space for each other
    word; `short` is a word of a few letters, or "\\n". `marks` has "c", "l" and "m" for capitals, digits and masks
    within a word, "s" for each sign of Morse code, and "g" for each syllable of a language game.
    """

    words: tuple[str, ...]
    stems: Words
    bare: Words
    names: Words
    leet: Words
    masked: Words
    plain: Words
    plain_bare: Words
    spelled: str
    short: str
    marks: str


class _Readings(dict[str, TokenReading]):
    """The readings of the tokens of the last texts. Long tokens, of which a text has few, are not kept."""

    def __missing__(self, token: str) -> TokenReading:
        core = token.strip(_EDGES)
        is_core = core == token or not any(map(str.isalnum, core))  # of Morse code, no sign is at an edge
        reading = _read_token(token) if is_core else self[core]
        if len(token) <= _MAX_KEPT_CHARS:
            if len(self) >= _MAX_KEPT:
                self.clear()
            self[token] = reading
        return reading


_readings = _Readings()


def read_tokens(text: str) -> list[TokenReading]:
    """Return the readings of the tokens of a text, which white space separates."""
    return list(map(_readings.__getitem__, text.split()))


def _read_token(token: str) -> TokenReading:
    folded, words = fold_characters(token), split_folded(token)
    bare_words = split_folded(_STRETCHED.sub(r"\1", remove_symbols(token.translate(_EMOJI_LETTERS).lower())))
    stems, bare = to_stems(words), to_stems(bare_words)
    spelled = "".join(word[0] if len(word) == 1 or word in _SPELLING_WORDS else " " for word in words)
    short = f" {folded}" if len(folded) <= _MAX_SHORT_LETTERS and folded.isalpha() else "\n"
    marks = "g" * len(_GAME_SYLLABLE.findall(remove_accents("".join(bare_words))))
    leet = bare if folded.isalpha() and "l" not in folded else to_stems(read_leet(folded).split())
    masked = tuple(map(remove_vowels, bare_words))
    reading = TokenReading(tuple(words), stems, bare, bare, leet, masked, stems, bare, spelled, short, marks)
    if token.isascii() and token.isalpha() and token[1:].islower():
        return reading
    found = (("c", _CAMEL.search(token)), ("l", _LEET.search(folded)), ("m", _MASKED.search(folded)))
    codes = "s" * len(re.split(r"[/|]+", token)) if _MORSE_TOKEN.fullmatch(token) else ""
    return reading._replace(
        names=to_stems(split_folded(remove_symbols(_CAMEL.sub(" ", token)))),
        plain=to_stems(remove_accents(" ".join(words)).split()),
        plain_bare=to_stems(remove_accents(" ".join(bare_words)).split()),
        marks="".join([*(mark for mark, match in found if match), codes, marks]),
    )


def list_undone(text: str) -> Iterator[str]:
    """Yield a text without its markup, and without line breaks within words, if it has any."""
    bare = _MARKUP.sub(lambda match: match[1] or "", text) if "<" in text or "[" in text else text
    if bare != text:
        yield bare
    if "\n" in bare and (joined := _join_lines(bare)) != bare:
        yield joined


def _join_lines(text: str) -> str:
    """Return a text without the breaks, and the hyphens before them, after which a word may go on in the next line.

    In a long text a word goes on only after a hyphen.
    """
    lines = list(filter(str.strip, text.splitlines(keepends=True)))
    for place, (line, following) in enumerate(pairwise(lines)):
        start = line.rstrip()
        end = len(start) - start.endswith(("-", "‐"))
        is_broken = end < len(start) or len(text) <= _MAX_BROKEN_CHARS
        if is_broken and start[:end][-1:].isalpha() and following.lstrip()[:1].isalpha():
            lines[place] = start[:end]
            lines[place + 1] = following.lstrip()
    return "".join(lines)


def list_games(text: str) -> Iterator[str]:
    """Yield a text without the syllables of a language game, which repeat each vowel after the same consonant."""
    plain = remove_accents(remove_symbols(text.lower()))
    places: dict[str, list[int]] = {}
    for match in _GAME_SYLLABLE.finditer(plain):
        places.setdefault(match[3], []).append(match.start())
    for consonant, starts in places.items():
        if any(later - start <= _GAME_CHARS for start, later in zip(starts, starts[2:], strict=False)):
            yield re.sub(rf"([aeiou])([nmrslz]?){consonant}\1\2", r"\1\2", plain)


def list_morse(text: str) -> Iterator[str]:
    """Yield what the Morse code in a text spells."""
    for code in _MORSE.finditer(text):
        yield "".join(_MORSE_LETTERS.get(sign, "?") for sign in re.split(r"[ /|]+", code[0].translate(_MORSE_SIGNS)))


def remove_symbols(text: str) -> str:
    """Return a text with only letters, digits and white space: "d.r-o🔥p & go" is "drop and go"."""
    if "&" in text or "+" in text:
        text = _AND.sub("and", text)
    return _ELISION.sub(" ", text).translate(_KEPT)


def read_leet(text: str) -> str:
    """Return a text with the letters that digits and symbols stand for, and "i" for each "l".

    One and the exclamation mark stand for both letters. The phrase is compared with the same change.

    >>> read_leet("p0s1t1v3 t3$t")
    'positive test'
    """
    letters = _LEET_SYMBOL.sub(lambda match: match[0].translate(_LEET_SYMBOLS), text)
    return merge_similar(remove_symbols(letters).translate(_LEET_DIGITS))


def merge_similar(text: str) -> str:
    return text.replace("l", "i")


def shorten_doubles(text: str) -> str:
    """Return a text with each doubled letter once, as it is when a stretched letter is made one."""
    return _DOUBLED.sub(r"\1", text)


def remove_vowels(text: str) -> str:
    return _VOWELS.sub("", text)


def list_ciphers(words: Sequence[str], stem: str) -> tuple[str, ...]:
    """Return how the words of a phrase look in ciphers, as parts of a text of words within spaces.

    The ciphers are: backwards, by word or as a whole, ROT13, Atbash, upside down, Pig Latin, and consonants doubled
    around "o". `stem` is that of the last word, so that of several words an inflected last one is found too.
    """
    phrase = " ".join(words)
    start = " ".join([*words[:-1], stem]) if len(words) > 1 else f"{phrase} "
    pig = [f"{word[first:]}{word[:first]}" for word in words for first in [len(_first_consonants(word))]]
    return (
        f"{start[::-1]} ",
        f" {' '.join(word[::-1] for word in words)} ",
        f" {codecs.encode(start, 'rot13')}",
        f" {start.translate(_MIRRORED)}",
        f"{start.translate(_FLIPPED)[::-1]} ",
        *(f" {' '.join(one + (ending if one in words else 'ay') for one in pig)} " for ending in ("way", "yay", "ay")),
        f" {_CONSONANTS.sub(lambda match: f'{match[0]}o{match[0]}', phrase)} ",
    )


def _first_consonants(word: str) -> str:
    match = _FIRST_CONSONANTS.match(word)
    return match[0] if match and match[0] != word else ""
