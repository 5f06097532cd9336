"""Disguises of a phrase: views of a text in which it is plain, and ciphers in which the phrase itself is written. Pure.

A view is the text without what was put into its words (markup, symbols, emoji, line breaks), with letters for the signs
that look like them, or with the words that it spells. Ciphers change each letter or the order of letters, so they are
made of the phrase, which is short, and not of each text.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterator, Sequence
from importlib import resources

from newton.content.yaml_files import parse_trusted

MIN_SPELLED_LETTERS = 4
_GAME_CHARS = 40  # within which three syllables of a language game begin
_MAX_BROKEN_CHARS = 2_000  # of a text in which words go on in the next line without a hyphen
_GAME_SYLLABLE = re.compile(r"([aeiou])([nmrslz]?)([pbf])\1\2")

_MARKUP = re.compile(r"<[^<>\n]{0,60}>|\[\]\([^()\n]{0,80}\)|\[([^\[\]\n]{1,60})\]\([^()\n]{0,80}\)")
_CAMEL = re.compile(r"(?<=[^\W\d_])(?<![A-Z])(?=[A-Z])")
_LINE_BREAK = re.compile(r"(?<=[^\W\d_])[-‐]?[ \t]*\n\s*(?=[^\W\d_])")
_HYPHENATION = re.compile(r"(?<=[^\W\d_])[-‐]\n\s*(?=[^\W\d_])")
_AND = re.compile(r"(?<!\S)[&+](?!\S)")
_ELISION = re.compile(r"(?<=[^\W\d_])['’](?=[^\W\d_]{3})")  # as in dell'arte
_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")
_DOUBLED = re.compile(r"([^\W\d_])\1")
_MASKED = re.compile(r"[^\W\d_](?:[*#•×█]|\*{3,})[^\W\d_]")
_VOWELS = re.compile("[aeiouyäöüáéíóúàèìòùâêîôûаеёиоуыэюя]")
_LEET = re.compile(r"[^\W\d_][\d@$!|€£¥+]+[^\W\d_]")
_LEET_SYMBOL = re.compile(r"[@$!|€£¥+](?=\S{0,20}\w)|(?<=\w)[@$€£](?!\w)")
_MORSE = re.compile(r"(?<![\w.-])(?:[.·•−–—-]{1,5}[ /|]{1,4}){3,}[.·•−–—-]{1,5}(?![\w.-])")
_SHORT_RUN = re.compile(r"(?<!\S)(?:[^\W\d_]{1,3}\s){2,}[^\W\d_]{1,3}(?!\w)")

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


def list_views(text: str) -> Iterator[str]:
    """Yield a text without what can be put between the letters of its words, and with letters for signs like them."""
    bare = _MARKUP.sub(lambda match: match[1] or "", text) if "<" in text or "[" in text else text
    bare = bare if bare.isascii() else bare.translate(_EMOJI_LETTERS)
    views = [bare]
    breaks = _LINE_BREAK if len(bare) <= _MAX_BROKEN_CHARS else _HYPHENATION
    if breaks.search(bare):
        views.append(breaks.sub("", bare))
    for view in views:
        yield _STRETCHED.sub(r"\1", remove_symbols(view.lower()))
    plain = remove_accents(remove_symbols(bare.lower()))
    places: dict[str, list[int]] = {}
    for match in _GAME_SYLLABLE.finditer(plain):
        places.setdefault(match[3], []).append(match.start())
    for consonant, starts in places.items():
        if any(later - start <= _GAME_CHARS for start, later in zip(starts, starts[2:], strict=False)):
            yield re.sub(rf"([aeiou])([nmrslz]?){consonant}\1\2", r"\1\2", plain)


def split_names(text: str) -> str:
    """Return a text with a space before each capital within a word, as in "dropTable"; "" if it has none."""
    return remove_symbols(_CAMEL.sub(" ", _select_lines(_CAMEL, text)))


def _select_lines(pattern: re.Pattern[str], text: str) -> str:
    """Return the lines of a text in which the pattern is, so that the others cost nothing."""
    if not pattern.search(text):
        return ""
    return "\n".join(line for line in text.splitlines() if pattern.search(line))


def remove_symbols(text: str) -> str:
    """Return a text with only letters, digits and white space: "d.r-o🔥p & go" is "drop and go"."""
    if "&" in text or "+" in text:
        text = _AND.sub("and", text)
    return _ELISION.sub(" ", text).translate(_KEPT)


def read_leet(text: str) -> str:
    """Return a text with the letters that digits and symbols stand for, and "i" for each "l"; "" if it has none.

    One and the exclamation mark stand for both letters. The phrase is compared with the same change.

    >>> read_leet("p0s1t1v3 t3$t")
    'positive test'
    """
    lines = _select_lines(_LEET, text)
    letters = _LEET_SYMBOL.sub(lambda match: match[0].translate(_LEET_SYMBOLS), lines)
    return merge_similar(remove_symbols(letters).translate(_LEET_DIGITS))


def merge_similar(text: str) -> str:
    return text.replace("l", "i")


def read_masked(text: str) -> str:
    """Return the consonants of the words of a text in which letters are masked, as in "dr*p t*ble"; "" for another."""
    return remove_vowels(remove_symbols(_select_lines(_MASKED, text)))


def shorten_doubles(text: str) -> str:
    """Return a text with each doubled letter once, as it is when a stretched letter is made one."""
    return _DOUBLED.sub(r"\1", text)


def remove_vowels(text: str) -> str:
    return _VOWELS.sub("", text)


def remove_accents(text: str) -> str:
    """Return a text without the marks on its letters."""
    if text.isascii():
        return text
    return "".join(letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter))


def list_spelled(text: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the words that are spelled letter by letter, by the words of an alphabet, or in Morse code.

    >>> list(list_spelled("", ["d", "r", "o", "p", "it", "echo", "kilo", "golf", "oscar"]))
    ['drop', 'ekgo']
    """
    run = list[str]()
    for word in (*words, ""):
        if len(word) == 1 or word in _SPELLING_WORDS:
            run.append(word[0])
        elif run:
            if len(run) >= MIN_SPELLED_LETTERS:
                yield "".join(run)
            run = []
    for code in _MORSE.finditer(text):
        yield "".join(_MORSE_LETTERS.get(sign, "?") for sign in re.split(r"[ /|]+", code[0].translate(_MORSE_SIGNS)))


def list_short_runs(text: str) -> str:
    """Return the runs of words of one to three letters, such as "dr op ta ble", each within spaces."""
    return "\n".join(f" {' '.join(run[0].split())} " for run in _SHORT_RUN.finditer(text))


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
