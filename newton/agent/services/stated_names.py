"""The further names that texts state for a person: short forms, nicknames and handles, in everyday forms. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import NamedTuple

from newton.content.yaml_files import parse_trusted
from newton.heart.identity import user_names
from newton.text.words import AMBIGUOUS_NAMES, COMMON_WORDS, split_words

KNOWN = "§"  # stands for a known name in a text
SHOWN_CHARS = 160
MAX_STATED_CHARS = 20_000  # of a text that is searched

_FIRST = r"(?<![A-Za-z\u00c0-\u024f\u0400-\u04ff])[^\W\d_a-zа-яё\u00df-\u00f6\u00f8-\u00ff]"
_NAME = rf"((?:{KNOWN} )?{_FIRST}[\w'’-]*(?: {_FIRST}[\w'’-]*)?)"
_SMALL_NAME = r"([^\W\d_][\w'’-]{2,})(?=[.,;!?)]|\s*$)"  # in a text without any capital
_HANDLE = r"(\w[\w.-]{0,38}\w)"
_ADDRESS = r"([\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
_PLACES = {"~": _NAME, "#": _HANDLE, "&": _ADDRESS, KNOWN: KNOWN}
_POSSESSIVE = re.compile(r"['’]s$")
_QUOTES = re.compile("[\"“”„«»‹›「」『』*`]|(?<!\\w)_|_(?!\\w)|(?<!\\w)['‘](?=\\w)|(?<=\\w)['’](?!\\w)")
_QUOTED = r"[\"“„«'‘(]\s?([^\W\d_][\w'’ -]{0,30}?)\s?[\"”“»'’)]"
_TAIL = re.compile(r"(?:です|だよ|だ|と呼.*|という.*|って.*|이에요|예요|입니다|이야|라고.*|吧|啊|呢)$")
SENTENCE_END = re.compile(r"(?<=[.!?\n])(?!\w)\s*|(?<=[。！？])")
_KIN = "son|daughter|wife|husband|partner|brother|sister|mother|father|boy|girl|baby|dog|cat"
_GERMAN_KIN = "Sohn|Tochter|Frau|Mann|Bruder|Schwester|Mutter|Vater|Kind|Hund|Katze"
# A person who is named between a known name and a pronoun: two names, kin with a name, or kin that does not call.
OTHER_KIN = re.compile(
    rf"\b(?:his|her|their|my|our) [a-z]+,? {_FIRST}|(?:\b(?:his|her|their)|['’]s) (?:\w+ )?(?:{_KIN})\b(?! calls?\b)"
    rf"|\b(?:seine?[mnr]?|ihre?[mnr]?) (?:{_GERMAN_KIN})\b"
)
_OTHER_PERSON = re.compile(rf"{_FIRST}[\w'’-]+ {_FIRST}[\w'’-]+|{OTHER_KIN.pattern}")
_INTRODUCTIONS = (
    "i['’]m|i am|my name(?:['’]s| is)|ich bin|ich heiße|je suis|je m['’]appelle|soy|me llamo|sono|mi chiamo|sou"
    "|me chamo|ik ben|ik heet|меня зовут"
)
# Of a text in which a person with a known name speaks.
_SPEAKS = re.compile(rf"(?i:(?<!\w)(?:{_INTRODUCTIONS})) {KNOWN}|{KNOWN} (?i:here|speaking|hier|ici|aquí|qui|aqui)\b")
# Capitalized words in the place of a name that mean a person by a role.
ROLES = split_words("""
mom mum mommy mummy dad daddy mama papa grandma grandpa granny captain director president doctor professor boss chef ceo
cto mr mrs ms miss sir madam herr frau señor señora monsieur madame signor signora onkel tante opa oma
""")
MIN_PART_LETTERS = 3  # of a name that a handle may contain
PRONOUN_SENTENCES = 2  # after the one that names the person


class StatedName(NamedTuple):
    """A further name of a person, and the text that states it."""

    name: str
    text: str

    def shorten(self) -> str:
        """Return the part of the text around the name, on one line."""
        text = " ".join(self.text.split())
        start = max(text.find(self.name) - SHOWN_CHARS // 2, 0)
        shown = text[start : start + SHOWN_CHARS]
        return f"{'…' if start else ''}{shown}{'…' if start + SHOWN_CHARS < len(text) else ''}"


class SpokenText(NamedTuple):
    """A text with its speaker, and the words said right before it, which may name the person."""

    text: str
    speaker: str = ""
    before: str = ""


class _Forms(NamedTuple):
    """Compiled forms: with a known name, with a pronoun, and said by the person. `sites` name a place of a handle."""

    named: tuple[re.Pattern[str], ...]
    spoken_of: tuple[re.Pattern[str], ...]
    own: tuple[re.Pattern[str], ...]
    sites: frozenset[re.Pattern[str]]

    def find_named(self, marked: str) -> list[re.Match[str]]:
        """Return the matches of forms with a known name."""
        return [match for form in self.named for match in form.finditer(marked)] if KNOWN in marked else []


@cache
def _load_forms(*, in_small_letters: bool) -> _Forms:
    data = parse_trusted(files("newton.agent.services").joinpath("stated_names.yaml").read_text(encoding="utf-8"))
    names = {**_PLACES, "~": _SMALL_NAME} if in_small_letters else _PLACES

    def compile_all(*groups: str) -> tuple[re.Pattern[str], ...]:
        return tuple(_compile(form, data["words"], names) for group in groups for form in data[group])

    sites, sites_spoken_of = compile_all("sites"), compile_all("sites_spoken_of")
    return _Forms(
        named=(*compile_all("named", "handles"), *sites),
        spoken_of=(*compile_all("spoken_of", "handles_spoken_of"), *sites_spoken_of),
        own=compile_all("own", "handles_own"),
        sites=frozenset((*sites, *sites_spoken_of)),
    )


def _compile(form: str, words: Mapping[str, str], names: Mapping[str, str]) -> re.Pattern[str]:
    for name in [*words][::-1]:
        form = form.replace(f"{{{name}}}", words[name])
    parts = re.split(r"([§~#&])", form.replace(" ", r"\s+").replace(r"\s+?", r"\s*"))
    return re.compile("".join(names.get(part, f"(?i:{part})" if part else "") for part in parts))


def list_name_parts(names: Iterable[str]) -> set[str]:
    """Return the first and last names among full names of a person, without ordinary words."""
    found = {words[end] for name in names if len(words := name.split()) > 1 for end in (0, -1)}
    return {name for name in found if name[:1].isupper() and len(name) > 1 and name.casefold() not in AMBIGUOUS_NAMES}


def find_stated_names(spoken: SpokenText, known: re.Pattern[str], names: Iterable[str] = ()) -> Iterator[str]:
    """Yield the further names that a text states for a person whose name the pattern `known` finds.

    `names` are the known names. The words before the text count where it speaks of a person by a pronoun.

    >>> known = re.compile("Ann Ray")
    >>> list(find_stated_names(SpokenText("Bob, that is Ann Ray, is here."), known))
    ['Bob']
    >>> list(find_stated_names(SpokenText("Friends call her Annie.", before="Ann Ray sings."), known))
    ['Annie']
    """
    names = tuple(names)
    text = _to_possessive(spoken.text[:MAX_STATED_CHARS], names)
    forms = _load_forms(in_small_letters=text == text.lower() and text != text.upper())
    marked, before = _mark(text, known), _mark(spoken.before[-MAX_STATED_CHARS:], known)
    found = [*_find_quoted(spoken.text, names)]
    matches = forms.find_named(marked)
    if KNOWN in f"{before}{marked}":
        matches += _find_spoken_of(forms.spoken_of, before, marked)
    found += [match[1] for match in matches if match.re not in forms.sites or _is_handle(match[1], names)]
    introduced = [name for one in (spoken.before, text) for name in user_names.find_names([one])]
    speaks = known.fullmatch(spoken.speaker) or any(map(known.fullmatch, introduced))
    if speaks or _SPEAKS.search(f"{before}\n{marked}"):
        found += [match[1] for form in forms.own for match in form.finditer(_QUOTES.sub("", text))]
    first = next((name.split()[0] for name in names), "")
    yield from dict.fromkeys(filter(None, (_clean(name.replace(f"{KNOWN} ", f"{first} ")) for name in found)))


def _mark(text: str, known: re.Pattern[str]) -> str:
    return known.sub(KNOWN, _QUOTES.sub("", text.replace(KNOWN, " ")))


def _to_possessive(text: str, names: Sequence[str]) -> str:
    """Return the text with an apostrophe in the genitive of names, which German writes without: Ann Rays."""
    listed = "|".join(re.escape(name) for name in names if not name.endswith("s"))
    return re.sub(rf"(?i)(?<!\w)({listed})s(?!\w)", r"\1's", text) if listed else text


def _is_handle(word: str, names: Sequence[str]) -> bool:
    """Return whether a word looks like a handle of a person: with a sign or digit, or with a part of a name."""
    parts = {part.casefold() for name in names for part in name.split() if len(part) > MIN_PART_LETTERS}
    return not word.isalpha() or any(part in word.casefold() for part in parts)


def _find_quoted(text: str, names: Iterable[str]) -> list[str]:
    """Return the names in quotation marks or parentheses between the words of a known name: Ann "Annie" Ray."""
    found = list[str]()
    for first, *_, last in (words for name in names if len(words := name.split()) > 1):
        found += re.findall(rf"(?i:\b{re.escape(first)})\s+{_QUOTED}\s+(?i:{re.escape(last)}\b)", text)
    return found


def _find_spoken_of(forms: Sequence[re.Pattern[str]], before: str, marked: str) -> Iterator[re.Match[str]]:
    """Yield the matches of forms in which a pronoun of a text means the person with a known name named last."""
    own = [(sentence, True) for sentence in SENTENCE_END.split(marked)]
    between, age = "", PRONOUN_SENTENCES + 1
    for sentence, is_own in [*((one, False) for one in SENTENCE_END.split(before)), *own]:
        _, mark, rest = sentence.rpartition(KNOWN)
        between, age = ("", 0) if mark else (between, age + bool(sentence.strip()))
        said = rest if mark else sentence
        if is_own and age <= PRONOUN_SENTENCES and not said.startswith(("'s ", "’s ")):
            for match in (match for form in forms for match in form.finditer(said)):
                if not _OTHER_PERSON.search(between + said[: match.start()]):
                    yield match
        between += f"{said} "


def _clean(name: str) -> str:
    """Return a stated name up to the first common word, without a possessive; "" if nothing is left."""
    words = [*takewhile(lambda word: word.casefold() not in COMMON_WORDS, name.split())]
    stated = _TAIL.sub("", _POSSESSIVE.sub("", " ".join(words)).strip(" -.'’"))
    return stated if len(stated) > 1 and KNOWN not in stated and stated.casefold() not in ROLES else ""
