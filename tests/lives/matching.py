"""Whether a stored text says what a sentence of the gold says, by the words that the gold names. Pure."""

import re
from collections.abc import Iterable, Sequence
from functools import cache

from tests.lives.life import fold

_WORD = re.compile(r"[^\W_]+(?:[.:'-][^\W_]+)*")
_NUMBER = re.compile(r"\d[\d.,:]*\d|\d")
_STEM_START = 3  # letters of the shortest word that may have an ending
_STEM_LETTERS = 5  # of two words that are the same but for their endings
_COMMON_WORDS = (
    "a an the and or but of to in on at by for from with as is are was were be been has have had do does did "
    "will would can could she he her his it its they their them i my me we our you your who what which where "
    "when why how that this these those not no now than then so every each day week month year one since until "
    "before after instead any more there here also only go goes get gets says said told name named called "
    "about into over user person "
)
_COMMON = frozenset(_COMMON_WORDS.split())
_OTHER_ENDINGS = {"tue": "sday", "wed": "nesday", "weds": "nesday", "thu": "rsday", "sat": "urday"}
_WEEKDAYS = {**dict.fromkeys(("mon", "tues", "thurs", "fri", "sun"), "day"), **_OTHER_ENDINGS}
_WHOLE_WORDS = _COMMON | {"one", "two", "six", "ten", "son", "car", "pen"}


@cache
def _pattern(alternative: str) -> re.Pattern[str]:
    """Words may have an ending and numbers a unit, because the gold gives beginnings; not so the shortest ones."""
    words = fold(alternative.strip())
    if ending := _WEEKDAYS.get(words):  # "wed" is no beginning of "wedding"
        return re.compile(rf"(?<![\w.:]){words}(?:s|{ending}s?)?(?!\w)")
    is_whole = len(words) < _STEM_START or words in _WHOLE_WORDS
    end = r"(?!\d)(?![.:,]\d)" if words[-1].isdigit() else r"(?!\w)" if is_whole else ""
    return re.compile(rf"(?<![\w.:]){re.escape(words)}{end}")


def fold_words(text: str) -> str:
    """The words of a text without punctuation and case."""
    return " ".join(_WORD.findall(fold(text)))


def has_word(text: str, entry: str) -> bool:
    """Whether one of the alternatives of an entry stands in the text, from the beginning of a word on."""
    folded = fold(text)
    return any(_pattern(one).search(folded) for one in entry.split("|") if one.strip())


def has_words(text: str, entries: Sequence[str]) -> bool:
    """Whether each entry stands in the text."""
    return bool(entries) and all(has_word(text, one) for one in entries)


def content_words(text: str, *, but: Iterable[str] = ()) -> set[str]:
    """The words that say what a text is about, each cut to its beginning; without those of the entries `but`."""
    left_out = {word for entry in but for word in _WORD.findall(fold(entry))}
    found = {word.removesuffix("'s") for word in _WORD.findall(fold(text))}
    return {word[:_STEM_LETTERS] for word in found - left_out - _COMMON if len(word) > 2}


def shares_topic(text: str, sentence: str, *, values: Sequence[str], names: frozenset[str]) -> bool:
    """Whether a text has a word of the sentence besides its values and the name of the person.

    A sentence without another word is matched by its values alone.
    """
    wanted = content_words(sentence, but=[*values, *names])
    return not wanted or bool(wanted & content_words(text))


def marks_of(text: str) -> set[str]:
    """The names and numbers of a text; a capital at the beginning of a sentence makes no name."""
    numbers = set(_NUMBER.findall(text))
    names = re.findall(r"(?<![.!?:]\s)(?<!^)\b[A-ZÀ-Ž][\w-]+", text)
    return numbers | {fold(name) for name in names}
