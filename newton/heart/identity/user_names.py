"""The names of the user, as they introduced themselves. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

from newton.content.yaml_files import parse_trusted
from newton.text.words import COMMON_WORDS

MAX_NAMES = 3
_NAME = r"([^\W\d_a-zа-я][\w'’-]*(?: [^\W\d_a-zа-я][\w'’-]*)?)"
_WORDS: Mapping[str, str] = parse_trusted(
    files("newton.heart.identity").joinpath("user_names.yaml").read_text(encoding="utf-8")
)
_SAYINGS, _WISHES, _STATED = _WORDS["sayings"], _WORDS["wishes"], _WORDS["stated"]
_GENANNT, _GREETED, _CALLED = _WORDS["genannt"], _WORDS["greeted"], _WORDS["called"]
_GREETINGS = rf"(?:{_WORDS['greetings']})\b[^.?!\n]{{0,20}}?"
_UNSPACED = tuple(re.compile(one) for one in _WORDS["unspaced"].split("; "))
_OPENINGS = rf"{_SAYINGS}|{_STATED}|ich bin|im"
_INTRODUCTIONS = (
    re.compile(rf"(?<!\w)(?i:{_SAYINGS}|{_WISHES}) {_NAME}"),
    re.compile(rf"(?<!\w)(?i:{_GENANNT})(?: nur| einfach| lieber| ruhig)? {_NAME} (?i:genannt werden|zu mir)"),
    re.compile(rf"(?:(?:^|[.!?,\n])\s*(?i:{_WORDS['closings']})[,.!]*\s+|\n\s*[-–—]+\s?){_NAME}\s*$"),
    re.compile(rf"(?<!\w)(?i:{_GREETINGS}{_GREETED}) {_NAME}(?=[.,!;]|$| and\b| und\b| y\b| et\b| e\b| en\b)"),
)
_HERE = re.compile(rf"(?:^|(?i:{_WORDS['greetings']})[,!. ]+){_NAME} (?i:{_WORDS['here']})(?=[.,!;]|$)")
# A sentence of its own: a name, or what the person is. Not in German, where all nouns have a capital.
_PLAIN = re.compile(rf"(?:^|[.!?)]\s+)(?i:{_STATED}) {_NAME}\s*(?=[.!]|$|,)")
# In a text without capitals.
_SMALL = re.compile(
    rf"(?<!\w)(?:{_CALLED}) ([^\W\d_][\w'-]{{2,}})(?=[.,;!?)]|$| (?:{_WORDS['behind']})(?!\w))", re.IGNORECASE
)
# Behind a word in small letters that is no name: "i'm resident at".
_PLACE = re.compile(r"\s(?:at|in|on|of|for|with|bei|im|en|à|a|da|em|bij|op)\s")
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
    found |= {match[1]: None for match in _HERE.finditer(line) if match[1].casefold() not in COMMON_WORDS}
    found |= {match[1]: None for pattern in _UNSPACED for match in pattern.finditer(line)}
    if line[1:].islower():
        found |= {match[1]: None for match in _SMALL.finditer(line) if match[1] not in COMMON_WORDS}
    return tuple(found)


@lru_cache(maxsize=32_768)
def _introduces(text: str, name: str) -> bool:
    pattern = rf"(?<!\w)(?:{_OPENINGS}) {re.escape(name)}(?!\w)|(?:^|[.!]\s+){re.escape(name)} here(?!\w)"
    line = text.replace("’", "'")
    found = re.search(pattern, line, re.IGNORECASE)
    return found is not None and not (found[0].islower() and _PLACE.match(line, found.end()))


def _is_kind(name: str) -> bool:
    """Return whether capitalized words are not a name but say what a person is, such as "German" or "Catholic"."""
    return any(word in COMMON_WORDS or _KIND.search(word) for word in name.casefold().split())
