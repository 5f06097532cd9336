"""The further names of a person that texts state in everyday forms, and those that they may tell. Pure.

A name that a text may tell is a candidate: a nickname, role or handle before or after a cue, in a text about the person
or right after one. Its points are for the strength of the cue, the mention of the person, the likeness to the person's
name, and later use.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import Any, NamedTuple

from newton.agent.services.person_search import ARTICLES, build_name_pattern, fold_name
from newton.content.yaml_files import parse_trusted
from newton.heart.identity import user_names
from newton.text.languages import LANGUAGES, load_language
from newton.text.words import AMBIGUOUS_NAMES, COMMON_WORDS, NEVER_NAMES, split_words

KNOWN = "§"  # stands for a known name in a text
SHOWN_CHARS = 160
MAX_STATED_CHARS = 20_000  # of a text that is searched

CUES = {"strong": 2, "weak": 1, "none": 0}  # points
POSSIBLE_POINTS = 3  # of a name that is shown
SURE_POINTS = 5  # of a name that is erased with the person
CLEAR_LIKENESS = 2  # points
USE_POINTS = 1  # of a name that a later text has, and less if an earlier text has it
OTHER_PERSON_POINTS = -2  # if another person is named between the person and the candidate
MAX_SENTENCE_CHARS = 600  # that are read
MIN_STEM_LETTERS = 3  # at the beginning of a name, which a short form of it has too

_CAPITAL = r"(?<![\w])[^\W\d_a-zа-яё\u00df-\u00f6\u00f8-\u00ff]"
_WORD = rf"{_CAPITAL}[\w'’-]*\w(?!\w)"
_PLACE = re.compile(r"(?i)(?<!\w)(?:in|from|at|aus|nach|à|w|z|ze|uit|från|в|из|im|am|em|i|till)\s$")  # before places
_GERMAN_ARTICLES = ("der ", "die ", "das ", "dem ", "den ")  # stand before any noun, which has a capital
_BARE_HANDLE = r"(@?[^\W\d_][^\W_]{1,}(?:[._-]?\d[\w.-]*\w|\d|[._]\w[\w.-]*\w|_)(?![\w/]|\.\w))"
_MARKED_HANDLE = re.compile(r"[^\s'’-]*[\d_.]\S*")
_CONTRACTION = re.compile(r"(?:['’](?:s|ve|re|m|d|ll)|n?['’]t)$")

_FIRST = r"(?<![A-Za-z\u00c0-\u024f\u0400-\u04ff])[^\W\d_a-zа-яё\u00df-\u00f6\u00f8-\u00ff]"
_NAME = rf"((?:{KNOWN} )?{_FIRST}[\w'’-]*(?: {_FIRST}[\w'’-]*)?)"
_SMALL_NAME = r"([^\W\d_][\w'’-]{2,})(?=[.,;!?)]|\s*$)"  # in a text without any capital
_HANDLE = r"(\w[\w.-]{0,38}\w)"
_ADDRESS = r"([\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
_PLACES = {"~": _NAME, "#": _HANDLE, "&": _ADDRESS}
_POSSESSIVE = re.compile(r"['’]s$")
_QUOTES = re.compile("[\"“”„»‹›「」『』*`]|«\\s?|\\s?»|(?<!\\w)['‘](?=\\w)|(?<=\\w)['’](?!\\w)")
_EMPHASIS = re.compile(r"(?<!\w)_|_(?!\w)")
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
    data = _load_data("stated_names.yaml")
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


def _load_data(name: str) -> dict[str, Any]:
    return parse_trusted(files("newton.agent.services").joinpath(name).read_text(encoding="utf-8"))


def _compile(form: str, words: Mapping[str, str], places: Mapping[str, str]) -> re.Pattern[str]:
    """Return a form of the data, in any case but that of names, with patterns in place of words and signs."""
    for name in [*words][::-1]:
        form = form.replace(f"{{{name}}}", words[name])
    form = form.replace(" ", r"\s+").replace(r"\s+?", r"\s*")
    return re.compile(re.sub("[~#&…]", lambda sign: f"(?-i:{places[sign[0]]})", form), re.IGNORECASE)


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
    text = _to_possessive(_EMPHASIS.sub("", spoken.text[:MAX_STATED_CHARS]), names)
    forms = _load_forms(in_small_letters=text == text.lower() and text != text.upper())
    marked, before = _mark(text, known), _mark(_EMPHASIS.sub("", spoken.before[-MAX_STATED_CHARS:]), known)
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


class AliasCandidate(NamedTuple):
    """A name that a text may tell for a person, with the points that the text gives it."""

    name: str
    text: str
    points: int


@cache
def _load_cues() -> tuple[tuple[tuple[re.Pattern[str], int], ...], dict[str, re.Pattern[str]]]:
    """Return the compiled cues with their points, and patterns of the words around names."""
    data = _load_data("alias_cues.yaml")
    articles = "|".join(sorted(ARTICLES))
    lead = rf"(?i:(?:(?:{articles}) )?(?:(?:{data['titles']}|{data['addresses']})\.? )?)"
    places = {
        "~": rf"({lead}(?:{KNOWN} )?{_WORD}(?: {_WORD})?)",
        "#": _BARE_HANDLE,
        "…": rf"(?:(?:{KNOWN}|[^\W\d_A-ZÄÖÜ][\w'’]*|(?:im|am|beim|in der|vom) \w+)[,:]? ){{0,4}}?",
    }
    forms = tuple(
        (_compile(form.replace(" …", "[,:]? …"), data["words"], places), CUES[kind])
        for kind in CUES
        for form in data[kind]
    )
    around = {
        "pronoun": rf"(?<!\w)(?:{data['pronouns']})(?!\w)",
        "article": rf"^(?:{articles}) ",
        "final article": rf"(?<!\w)(?:{articles}) $",
        "title": rf"^(?:{data['titles']}) ",
        "address": rf"^(?:{data['addresses']})\.? ",
    }
    return forms, {name: re.compile(form, re.IGNORECASE) for name, form in around.items()}


def find_alias_candidates(
    spoken: SpokenText, known: re.Pattern[str], names: Iterable[str], others: re.Pattern[str]
) -> list[AliasCandidate]:
    """Return the names that a text may tell for a person whose names the pattern `known` finds, the best points first.

    `names` are the known names, `others` finds the names of other persons. The text is about the person if it has a
    known name, or if the words before it have one.

    >>> known, others = re.compile("Ann Ray|Ann"), re.compile("Zoe Berg")
    >>> text = SpokenText("The whole office has taken to saying Dodo.", before="Ann Ray sings.")
    >>> [(one.name, one.points) for one in find_alias_candidates(text, known, ["Ann Ray"], others)]
    [('Dodo', 2)]
    """
    found, words = list[AliasCandidate](), re.split(r"[\s-]+", fold_name(" ".join(names)))
    _, mark, between = _mark(spoken.before[-MAX_STATED_CHARS:], known).rpartition(KNOWN)
    age = 0 if mark else PRONOUN_SENTENCES  # the number of sentences since the last known name
    for sentence in SENTENCE_END.split(_mark(spoken.text[:MAX_STATED_CHARS], known)):
        *_, after = sentence.rpartition(KNOWN)
        age = 0 if KNOWN in sentence else age + 1
        for form, points in _load_cues()[0] if age <= PRONOUN_SENTENCES else ():
            for match in form.finditer(sentence[:MAX_SENTENCE_CHARS]):
                before = between + sentence[: match.start()].rpartition(KNOWN)[2]
                is_other = OTHER_KIN.search(before) or any(
                    not _PLACE.search(before, 0, other.start()) for other in others.finditer(before)
                )
                if (name := _find_name(match, words)) and (value := _rate(name, points, sentence, spoken.text, words)):
                    found.append(AliasCandidate(name, spoken.text, value + bool(is_other) * OTHER_PERSON_POINTS))
        between = after if KNOWN in sentence else f"{between} {sentence}"
    return list({one.name: one for one in sorted(found, key=lambda one: one.points)}.values())[::-1]


def _rate(name: str, points: int, sentence: str, text: str, words: Sequence[str]) -> int:
    """Return the points of a name in a sentence after a cue, 0 if nothing but its place speaks for it."""
    likeness = compute_likeness(name, words)
    in_quotes = re.search(f"[\"“„«'‘]{re.escape(name)}", text)
    has_article = name.startswith(tuple(f"{one} " for one in ARTICLES)) and not name.startswith(_GERMAN_ARTICLES)
    is_marked = bool(_MARKED_HANDLE.fullmatch(name) or has_article or in_quotes)
    if not points and ((likeness < CLEAR_LIKENESS and not is_marked) or " " in name):
        return 0
    is_full = is_full_name(name) and not (has_article or likeness or _load_cues()[1]["title"].match(name))
    is_spoken_of = KNOWN in sentence or bool(_load_cues()[1]["pronoun"].search(sentence))
    return points + is_spoken_of + likeness + is_marked - is_full


def _find_name(match: re.Match[str], words: Sequence[str]) -> str:
    """Return the candidate of a match without known names and a form of address, or "" if it is no name.

    An article stays before a word that is not like a known name: le Capitaine.
    """
    _, around = _load_cues()
    if _PLACE.search(match.string, 0, match.start(1)):
        return ""
    before = around["final article"].search(match.string, 0, match.start(1))
    found = f"{before[0]}{match[1]}" if before else match[1]
    name = _CONTRACTION.sub("", found.replace(f"{KNOWN} ", "").lstrip("@").strip(" -'’"))
    spoken = around["address"].sub("", strip_article(name)).split()
    bare = " ".join(word for word in spoken if fold_name(word) not in words)
    likeness, article = bare and compute_likeness(bare, words), around["article"].match(name)
    is_word = _no_names().issuperset(bare.lower().split()) and not (bare.isupper() and likeness)
    if len(bare) < 2 or is_word or (bare == name and name.casefold() in ROLES):
        return ""
    if not article or bare != name[article.end() :] or around["title"].match(bare) or likeness:
        return bare
    return f"{article[0].lower()}{bare}"


def compute_likeness(name: str, words: Sequence[str]) -> int:
    """Return 2 points for a name with the initials, the beginning or the end of a person's names, 1 for less of it.

    >>> [compute_likeness(one, ["margaret", "okonjo", "hale"]) for one in ("MOH", "Margie", "Garet", "Ma", "Bo")]
    [2, 2, 2, 1, 0]
    """
    if " " in name:
        return max(compute_likeness(one, words) for one in name.split())
    plain, initials = fold_name(name), "".join(word[0] for word in words)
    if name.isupper() and len(name) > 1 and plain[0] == initials[:1] and plain[-1] in initials:
        return CLEAR_LIKENESS
    start, longer = plain[:MIN_STEM_LETTERS], plain[: MIN_STEM_LETTERS + 1]
    if len(start) == MIN_STEM_LETTERS and any(word.startswith(start) or word.endswith(plain) for word in words):
        return CLEAR_LIKENESS
    if len(longer) > MIN_STEM_LETTERS and any(longer in word for word in words):
        return CLEAR_LIKENESS
    return int(any(plain[:2] == word[:2] or plain[:3] in word for word in words))


@cache
def _no_names() -> frozenset[str]:
    """Return words that are no names: function words, days and months of all languages."""
    data = [load_language(code) for code in LANGUAGES]
    dates = (form for one in data for group in ("months", "weekdays") for form in one.dates.get(group, ()))
    listed = {word for form in dates for word in re.findall(r"\w{3,}", form)}
    return frozenset(("half", *NEVER_NAMES, *listed, *(word for one in data for word in one.words)))


def is_full_name(name: str) -> bool:
    """Return whether a name has different words, and does not begin with a short or an ordinary word."""
    first, *rest = name.lower().split()
    return {*rest} not in (set(), {first}) and len(first) > 1 and first not in _no_names()


def weigh_uses(candidate: AliasCandidate, uses: Sequence[str]) -> AliasCandidate:
    """Return a candidate with more points if a later text has the name, and less if an earlier text has it.

    `uses` are the texts with the name, in the order in which they were stored. A name that is also used without its
    article loses it.
    """
    own = uses.index(candidate.text) if candidate.text in uses else 0
    later, bare = [text for text in uses[own:] if text != candidate.text], strip_article(candidate.name)
    found = ((text, match.start()) for text in later for match in re.finditer(rf"(?<!\w){re.escape(bare)}(?!\w)", text))
    if any(not _load_cues()[1]["final article"].search(text, 0, start) for text, start in found):
        candidate = candidate._replace(name=bare)
    form = re.compile(build_name_pattern([candidate.name]))
    points = any(map(form.search, later)) - any(map(form.search, uses[:own]))
    return candidate._replace(points=candidate.points + USE_POINTS * points)


def strip_article(name: str) -> str:
    """Return a name without an article before it."""
    return _load_cues()[1]["article"].sub("", name)
