"""The names of the user, as they introduced themselves. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files

from newton.content.yaml_files import parse_trusted
from newton.text.time_expressions import find_time_ranges
from newton.text.words import AMBIGUOUS_NAMES, COMMON_WORDS

MAX_NAMES = 3
_NAME = r"([^\W\d_a-zа-я][\w'’-]*(?: [^\W\d_a-zа-я][\w'’-]*)?)"
_WORDS: Mapping[str, str] = parse_trusted(
    files("newton.heart.identity").joinpath("user_names.yaml").read_text(encoding="utf-8")
)
_SAYINGS, _WISHES, _STATED = _WORDS["sayings"], _WORDS["wishes"], _WORDS["stated"]
_GENANNT, _GREETED, _CALLED = _WORDS["genannt"], _WORDS["greeted"], _WORDS["called"]
_GREETING, _PRESENT, _END = rf"(?:{_WORDS['greetings']})\b", _WORDS["present"], "(?=[.,!;:)–—]|$| -)"
_UNSPACED = tuple(re.compile(one) for one in _WORDS["unspaced"].split("; "))
_OPENINGS = rf"{_SAYINGS}|{_STATED}|ich bin|im"
_INTRODUCTIONS = (
    re.compile(rf"(?<!\w)(?i:{_SAYINGS}|{_WISHES}) {_NAME}"),
    re.compile(rf"(?<!\w)(?i:{_GENANNT})(?: nur| einfach| lieber| ruhig)? {_NAME} (?i:genannt werden|zu mir)"),
    re.compile(
        rf"(?:(?:^|[.!?,\n])\s*(?i:{_WORDS['closings']})[,.!]*\s+|(?:^|[.!?,\n])\s*(?i:{_WORDS['thanks']})[,.!]*\n\s*"
        rf"|\n\s*[-–—]+\s?)(?!Newton\b){_NAME}(?:\s+[xX]+)?\s*$"
    ),
    re.compile(
        rf"(?<!\w)(?i:{_GREETING}[^.?!\n]{{0,20}}?{_GREETED}) {_NAME}(?=[.,!;]|$| and\b| und\b| y\b| et\b| e\b| en\b)"
    ),
)
# Words that may be no name: who is there, and is there again.
_THERE = (
    re.compile(
        rf"(?:^|(?i:{_GREETING})[,!. ]+(?:all[,!. ]+)?){_NAME} (?i:{_WORDS['here']})(?i: {_WORDS['again']})?{_END}"
    ),
    re.compile(
        rf"(?<!\w)(?i:{_GREETING}[^.?!\n]{{0,20}}?(?<!\w)(?:{_PRESENT})) {_NAME}"
        rf"(?:(?i: (?:{_WORDS['again']}))?{_END}|(?i: (?:{_WORDS['again']}|{_WORDS['origins']}))\s)"
    ),
    re.compile(rf"^\s*(?i:{_PRESENT}) {_NAME} (?i:{_WORDS['again']}){_END}"),
)
# A sentence of its own: a name, or what the person is. Not in German, where all nouns have a capital.
_PLAIN = re.compile(rf"(?:^|[.!?)]\s+)(?i:{_STATED}) {_NAME}\s*(?=[.!]|$|,)")
# In a text without capitals.
_SMALL = re.compile(
    rf"(?<!\w)(?:{_CALLED}) (?P<called>[^\W\d_][\w'-]+)(?=[.,;!?)]|$| (?:{_WORDS['behind']})(?!\w))"
    rf"|^\s*{_GREETING}[,!. ]+(?P<there>[^\W\d_][\w'-]+) (?:{_WORDS['here']}){_END}",
    re.IGNORECASE,
)
# Behind a word in small letters that is no name: "i'm resident at".
_PLACE = re.compile(r"\s(?:at|in|on|of|for|with|bei|im|en|à|a|da|em|bij|op)\s")
_DAYS = re.compile(_WORDS["days"])
_KIND = re.compile(
    r"(?:ish|ese|ian|ean|ican|ist)$|^(?:german|french|dutch|greek|thai|czech|swiss|welsh|cuban|iraqi|israeli|pakistani"
    r"|catholic|protestant|orthodox|muslim|hindu|sikh|vegan|tired|fine|ok|okay|sorry|back|here|ready|done)$",
    re.IGNORECASE,
)


def find_known_names(texts: Iterable[str], subjects: Sequence[str]) -> list[str]:
    """Return the subjects of facts by whose names users introduce themselves in texts, in any case.

    >>> find_known_names(["good morning so im bogdan i drive", "Ioana here, for once."], ["Radu", "Bogdan"])
    ['Bogdan']
    """
    said = list(texts)
    return [one for one in subjects if any(_introduces(text, one) for text in said)]


def find_names(texts: Iterable[str]) -> list[str]:
    """Return the names in texts in which users introduce themselves, each once, the first found first.

    >>> find_names(["Call me Zoe.", "Hi, I'm Maren. I live in Leipzig.", "I'm German.", "I am Halina. It rains."])
    ['Zoe', 'Maren', 'Halina']
    >>> find_names(["everybody calls me tizzy tho", "See you there. LG, Kati", "大家都叫我小雪。"])
    ['tizzy', 'Kati', '小雪']
    >>> find_names(["Call the user Nacho, not Ignacio.", "The user wants to be called Zoe."])
    ['Nacho', 'Zoe']
    >>> find_names(["Der Nutzer möchte Max genannt werden.", "The user wants to call Ann."])
    ['Max']
    """
    return list(dict.fromkeys(name for text in texts for name in _find_names(text)))[:MAX_NAMES]


def introduces(text: str, name: str) -> bool:
    """Return whether a user introduces themselves by a name in a text."""
    return name in _find_names(text) or _introduces(text, name)


@lru_cache(maxsize=8_192)
def _find_names(text: str) -> tuple[str, ...]:
    line = text.replace("’", "'")
    found = {match[1]: None for pattern in _INTRODUCTIONS for match in pattern.finditer(line)}
    found |= {match[1]: None for match in _PLAIN.finditer(line) if not (_is_kind(match[1]) or match[1].isupper())}
    found |= {match[1]: None for pattern in _THERE for match in pattern.finditer(line) if _may_be_name(match)}
    found |= {match[1]: None for pattern in _UNSPACED for match in pattern.finditer(line)}
    if line[1:].islower():
        small = (match["called"] or match["there"] for match in _SMALL.finditer(line))
        found |= {name: None for name in small if name not in COMMON_WORDS}
    return tuple(name for name in found if not _is_day(name))


@lru_cache(maxsize=32_768)
def _introduces(text: str, name: str) -> bool:
    pattern = (
        rf"(?<!\w)(?:{_OPENINGS}) {re.escape(name)}(?![\w'])|(?:^|[.!]\s+|{_GREETING}[,!. ]+){re.escape(name)}"
        rf" (?:{_WORDS['here']}){_END}|^(?:{_PRESENT}) {re.escape(name)} (?:{_WORDS['again']}){_END}"
    )
    line = text.replace("’", "'")
    found = re.search(pattern, line, re.IGNORECASE)
    return found is not None and not (found[0].islower() and _PLACE.match(line, found.end()))


def _may_be_name(match: re.Match[str]) -> bool:
    """Return whether the word that a match found may be a name: one that is also a word only behind a greeting."""
    is_greeted = re.match(_GREETING, match[0], re.IGNORECASE)
    return match[1].casefold() not in (COMMON_WORDS if is_greeted else AMBIGUOUS_NAMES)


def _is_day(name: str) -> bool:
    return bool(_DAYS.match(name.casefold()) or find_time_ranges(name, now=datetime(2000, 1, 1, tzinfo=UTC)))


def _is_kind(name: str) -> bool:
    """Return whether capitalized words are not a name but say what a person is, such as "German" or "Catholic"."""
    return any(word in COMMON_WORDS or _KIND.search(word) for word in name.casefold().split())
