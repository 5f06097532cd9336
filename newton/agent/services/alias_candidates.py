"""The search for names that texts may tell for a person, by cues and by how a name is used. Pure.

A candidate is a name, nickname, role or handle after or before a cue, in a text about the person or right after one.
Points are for the strength of the cue, the mention of the person, the likeness to the person's name, and later use.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from newton.agent.services.person_search import ARTICLES, build_name_pattern, fold_name
from newton.agent.services.stated_names import (
    KNOWN,
    MAX_STATED_CHARS,
    OTHER_KIN,
    PRONOUN_SENTENCES,
    ROLES,
    SENTENCE_END,
    SpokenText,
)
from newton.content.yaml_files import parse_trusted
from newton.text.languages import LANGUAGES, load_language
from newton.text.words import NEVER_NAMES

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
_HANDLE = r"(@?[^\W\d_][^\W_]{1,}(?:[._-]?\d[\w.-]*\w|\d|[._]\w[\w.-]*\w|_)(?![\w/]|\.\w))"
_MARKED_HANDLE = re.compile(r"[^\s'’-]*[\d_.]\S*")
_CONTRACTION = re.compile(r"(?:['’](?:s|ve|re|m|d|ll)|n?['’]t)$")
_QUOTES = re.compile("[\"“”„»‹›「」『』*`]|«\\s?|\\s?»|(?<!\\w)['‘](?=\\w)|(?<=\\w)['’](?!\\w)")


class AliasCandidate(NamedTuple):
    """A name that a text may tell for a person, with the points that the text gives it."""

    name: str
    text: str
    points: int


@cache
def _load_cues() -> tuple[tuple[tuple[re.Pattern[str], int], ...], dict[str, re.Pattern[str]]]:
    """Return the compiled cues with their points, and patterns of the words around names."""
    path = files("newton.agent.services").joinpath("alias_cues.yaml")
    data: dict[str, Any] = parse_trusted(path.read_text(encoding="utf-8"))
    articles = "|".join(sorted(ARTICLES))
    lead = rf"(?i:(?:(?:{articles}) )?(?:(?:{data['titles']}|{data['addresses']})\.? )?)"
    places = {
        "~": rf"({lead}(?:{KNOWN} )?{_WORD}(?: {_WORD})?)",
        "#": _HANDLE,
        "…": rf"(?:(?:{KNOWN}|[^\W\d_A-ZÄÖÜ][\w'’]*|(?:im|am|beim|in der|vom) \w+)[,:]? ){{0,4}}?",
    }
    forms = tuple((_compile(form, data["words"], places), CUES[kind]) for kind in CUES for form in data[kind])
    around = {
        "pronoun": rf"(?<!\w)(?:{data['pronouns']})(?!\w)",
        "article": rf"^(?:{articles}) ",
        "final article": rf"(?<!\w)(?:{articles}) $",
        "title": rf"^(?:{data['titles']}) ",
        "address": rf"^(?:{data['addresses']})\.? ",
    }
    return forms, {name: re.compile(form, re.IGNORECASE) for name, form in around.items()}


def _compile(form: str, words: Mapping[str, str], places: Mapping[str, str]) -> re.Pattern[str]:
    for name, listed in words.items():
        form = form.replace(f"{{{name}}}", listed)
    form = form.replace(" …", "[,:]? …")
    return re.compile(re.sub("[~#…]", lambda sign: f"(?-i:{places[sign[0]]})", form), re.IGNORECASE)


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


def _mark(text: str, known: re.Pattern[str]) -> str:
    return known.sub(KNOWN, _QUOTES.sub("", text.replace(KNOWN, " ")))


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
