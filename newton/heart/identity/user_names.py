"""The names of the user, as they introduced themselves, or as others address them. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from importlib.resources import files

from newton.content.yaml_files import parse_trusted
from newton.heart.identity.standing_wishes import mask_foreign_text
from newton.text.languages import LANGUAGES, load_language
from newton.text.time_expressions import find_time_ranges
from newton.text.words import AMBIGUOUS_NAMES, COMMON_WORDS

MAX_NAMES = 3
MIN_LETTERS = 2
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
        rf"(?<!\w)(?i:{_GREETING}[^.?!\n]{{0,20}}?{_GREETED}) {_NAME}(?=[.,!;]|$| and\b| und\b| y\b| et\b| e\b| en\b)"
    ),
)
_CLOSING = re.compile(
    rf"(?:(?:^|[.!?,\n])\s*(?i:{_WORDS['closings']})[,.!]*\s+|(?:^|[.!?,\n])\s*(?i:{_WORDS['thanks']})[,.!]*\n\s*"
    rf"|\n\s*[-–—]+\s?)(?!Newton\b){_NAME}(?:\s+[xX]+)?\s*$"
)
# Words that may be no name: who is there, and is there again.
_THERE = (
    re.compile(
        rf"(?:^|(?i:{_GREETING})[,!.: ]+(?:(?:all|there|again)[,!.: ]+)?){_NAME} (?i:{_WORDS['here']})"
        rf"(?i: {_WORDS['again']})?{_END}"
    ),
    re.compile(
        rf"(?<!\w)(?i:{_GREETING}[^.?!\n]{{0,20}}?(?<!\w)(?:{_PRESENT})) {_NAME}"
        rf"(?:(?i: (?:{_WORDS['again']}))?{_END}|(?i: (?:{_WORDS['again']}|{_WORDS['origins']}))\s)"
    ),
    re.compile(rf"^\s*(?i:{_PRESENT}) {_NAME} (?i:{_WORDS['again']}){_END}"),
)
# A sentence of its own: a name, or what the person is. Not in German, where all nouns have a capital.
_PLAIN = re.compile(
    rf"(?:^|[.!?)]\s+|(?<!\w)(?i:{_WORDS['openers']})[,!]? )(?i:{_STATED}|moi c'est) {_NAME}"
    rf"\s*(?=[.!]|$|,| (?:{_WORDS['also']}|{_WORDS['origins']})\b)"
)
# A name that is said to be one, or that answers the question for it.
_NAMED = (
    re.compile(rf"(?:^|[.!?,]\s+){_NAME}(?: |(?='))(?i:{_WORDS['named']})(?![\w'])"),
    re.compile(rf"^[^\S\n]*(?i:{_WORDS['labels']}) ?: ?{_NAME}[^\S\n]*$", re.MULTILINE),
    re.compile(rf"(?<!\w)(?i:{_WORDS['questions']}) ?\?\s+(?:(?i:{_WORDS['self']}) )?{_NAME}(?=[.,!;]|$| \w)"),
    re.compile(rf"(?<!\w)(?i:{_WORDS['self']}) {_NAME},? (?i:{_WORDS['aside']}){_END}"),
    re.compile(rf"^\s*{_NAME} (?i:{_WORDS['origins']}) [^.?!,\n]{{2,30}} (?i:{_WORDS['again']}){_END}"),
)
# Where others address the user by a name, or where a text is to be signed with one: these may be of somebody else.
_ONE = r"[^\W\d_a-zа-я][\w'’-]+"
_SAID = re.compile(
    rf"(?<!\w)(?i:(?P<who>(?:{_WORDS['others']}) (?:[\w'-]+ ){{1,3}}?)(?P<how>(?:[\w'-]+ ){{0,2}}?)"
    rf"(?P<me>(?:{_WORDS['to_me']}) ?)?(?:{_WORDS['says']})(?P<me2> (?:{_WORDS['to_me']}))?"
    rf"(?P<how2>(?: [\w'-]+){{0,2}}?)) ?[:,]? ?(?:\"|'|“|„|«\s?|‘|(?<=: ))(?P<name>{_ONE}),"
    r"(?P<said>(?:[^\"”»“’'\n]|(?<=\w)['’](?=\w))*)(?:\"|'|”|“|\s?»|’|$)(?P<rest>[^.!?\n]*)"
)
_SHOUTED = re.compile(
    rf"(?<!\w)(?i:{_WORDS['callers']})(?: [\w'-]+){{0,4}}? (?i:{_WORDS['shout']}):? [\"'“„«]?(?P<name>{_ONE})"
    r"[,!]? (?P=name)(?P<rest>[^.?!\n]*)"
)
_SIGNED = re.compile(rf"(?<!\w)(?i:{_WORDS['sign']})[:,]? (?:(?i:{_WORDS['titles']})\.? )?{_NAME}(?=[.!]|\s*$)")
_PRESENTED = re.compile(rf"^\s*(?i:{_PRESENT}) {_NAME}[.,](?! (?i:{_WORDS['others']}|a|an|the)\b)")
_CHILDREN, _HABITUAL, _YOU = (
    re.compile(rf"(?<!\w)(?:{_WORDS[name]})(?!\w)", re.IGNORECASE) for name in ("children", "habitual", "you")
)
_TO_OTHER = re.compile(rf"\W*(?:\w+ )?(?:{_WORDS['to_other']})", re.IGNORECASE)
_ADDRESS = frozenset(_WORDS["endearments"].split())
_UNSPACED_SAID = re.compile(_WORDS["unspaced_said"])
# In a text without capitals.
_SMALL = re.compile(
    rf"(?<!\w)(?:{_CALLED}) (?P<called>[^\W\d_][\w'-]+)(?=[.,;!?)]|$| (?:{_WORDS['behind']})(?!\w))"
    rf"|(?:^|[.!?] )(?:{_WORDS['self']}) (?P<said>[^\W\d_][\w'-]+), (?:i'm|im|i am|\d\d)(?!\w)"
    rf"|^\s*{_GREETING}[,!. ]+(?P<there>[^\W\d_][\w'-]+) (?:{_WORDS['here']}){_END}",
    re.IGNORECASE,
)
_QUALITY = re.compile(r"(?:ed|ing|ful|less|ous|ive|ble|ic|al|ly)$")  # of a word that says how somebody is
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


def find_address(texts: Iterable[str]) -> list[str]:
    """Return the name by which others address the user in texts, in quotations, or with which the user signs.

    Of several it is the most frequent; none if two are as frequent: one of them is of somebody else.

    >>> find_address(["My husband always says 'Mireille, you talk too much'.", "He says 'Anna, come' to our daughter."])
    ['Mireille']
    """
    counts = Counter(name for text in set(texts) for name in dict.fromkeys(_find_address(text)))
    best = [name for name, count in counts.items() if count == max(counts.values())]
    return best if len(best) == 1 else []


def introduces(text: str, name: str) -> bool:
    """Return whether a text tells that the user has a name."""
    return name in _find_names(text) or _introduces(text, name) or name in _find_address(text)


@lru_cache(maxsize=8_192)
def _find_names(text: str) -> tuple[str, ...]:
    plain = text.replace("’", "'")
    line = mask_foreign_text(plain)
    found = {match[1]: None for match in _CLOSING.finditer(plain)}
    found |= {match[1]: None for pattern in _INTRODUCTIONS for match in pattern.finditer(line)}
    found |= {match[1]: None for pattern in _NAMED for match in pattern.finditer(line) if _is_name(match[1])}
    found |= {match[1]: None for match in _PLAIN.finditer(line) if _is_name(match[1]) and not match[1].isupper()}
    found |= {match[1]: None for pattern in _THERE for match in pattern.finditer(line) if _may_be_name(match)}
    found |= {match[1]: None for pattern in _UNSPACED for match in pattern.finditer(line)}
    if line[1:].islower():
        small = [match.groupdict() for match in _SMALL.finditer(line)]
        found |= {name: None for one in small if (name := one["called"] or one["there"]) and _is_name(name)}
        found |= {
            name: None for one in small if (name := one["said"]) and _is_no_word(name) and not _QUALITY.search(name)
        }
    return tuple(name for name in found if not _is_day(name))


@lru_cache(maxsize=8_192)
def _find_address(text: str) -> tuple[str, ...]:
    line = text.replace("’", "'")
    found = [match["name"] for match in _SAID.finditer(line) if _addresses_user(match)]
    found += [match["name"] for match in _SHOUTED.finditer(line) if not _TO_OTHER.match(match["rest"])]
    found += [match[1] for pattern in (_SIGNED, _PRESENTED, _UNSPACED_SAID) for match in pattern.finditer(line)]
    return tuple(name.title() if name.isupper() else name for name in found if _is_no_word(name))


def _addresses_user(match: re.Match[str]) -> bool:
    """Return whether a name at the beginning of a quotation is the user's: somebody speaks to them, or always does."""
    who, how, rest = match["who"], f"{match['how']}{match['how2']} {match['rest']}", match["rest"]
    if match["me"] or match["me2"]:
        return True
    if _CHILDREN.search(who) or _TO_OTHER.match(rest):
        return False
    return bool(_HABITUAL.search(f"{who} {how}") or _YOU.search(match["said"]))


def _is_name(name: str) -> bool:
    """Return whether words that stand where a name may stand are no word of address, kind or time."""
    return not (len(name) < MIN_LETTERS or _is_kind(name) or _is_day(name) or _ADDRESS & {*name.casefold().split()})


def _is_no_word(name: str) -> bool:
    """Return whether words are names by themselves: no frequent words of a language either."""
    return _is_name(name) and _list_words().isdisjoint(name.casefold().split())


@lru_cache(maxsize=1)
def _list_words() -> frozenset[str]:
    return frozenset().union(*(load_language(code).words for code in LANGUAGES))


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
