"""Questions about a person, and inputs that concern the user: which of the known facts they ask for. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from newton.heart.persons.person_words import load_words
from newton.text.languages import ENGLISH, detect_languages, load_language
from newton.text.time_expressions import TimeRange

MAX_READ_CHARACTERS = 500  # of an input; a longer one mostly tells or quotes something
# The sections of facts that an input of a topic concerns.
SECTIONS_BY_TOPIC: Mapping[str, Sequence[str]] = {
    "food": ("health", "tastes"),
    "doctor": ("health",),
    "sport": ("health",),
    "gift": ("tastes", "people"),
    "travel": ("health", "plans"),
    "plan": ("plans", "health"),
}


@dataclass(frozen=True, slots=True)
class PersonQuestion:
    """The facts on a person that an input asks for or concerns: on the user, or on the one with a `name` or role.

    With `is_complete` it asks for all that is known, with `asks_name` for the name of the user. `sections` are those of
    the facts on the user that its topic concerns. With `changes` it asks what changed in that time.
    """

    name: str | None = None
    is_complete: bool = False
    asks_name: bool = False
    sections: tuple[str, ...] = ()
    changes: TimeRange | None = None

    @property
    def is_asked(self) -> bool:
        return self.is_complete or self.asks_name


NO_QUESTION = PersonQuestion()


@lru_cache(maxsize=1_024)
def read_person_question(text: str) -> PersonQuestion:
    """Return what an input asks or needs to know of a person.

    >>> [read_person_question(one).is_complete for one in ("What do you know about me?", "Was weißt du über mich?")]
    [True, True]
    >>> read_person_question("Tell me everything about my girlfriend Lien.").name
    'my girlfriend Lien'
    >>> read_person_question("What's my name again?").asks_name, read_person_question("What could I cook?").sections
    (True, ('health', 'tastes'))
    """
    folded = " ".join(text[: MAX_READ_CHARACTERS + 1].replace("’", "'").split())
    if len(folded) > MAX_READ_CHARACTERS:
        return NO_QUESTION
    for code in detect_languages(folded) or (ENGLISH,):
        words = load_words(code)
        if words.name.search(folded):
            return PersonQuestion(asks_name=True)
        matches = (pattern.search(folded) for pattern in words.everything)
        for match in filter(None, matches):
            who = match["who"] or ""
            if not who or words.own.fullmatch(who) or who in ("profile",):
                return PersonQuestion(is_complete=True)
            if _may_be_name(who, folded, code):
                return PersonQuestion(name=who, is_complete=True)
    return PersonQuestion(sections=find_sections(folded))


def find_sections(text: str) -> tuple[str, ...]:
    """Return the sections of the facts on the user that the topics of an input concern, the most important first."""
    found = dict[str, None]()
    for code in detect_languages(text) or (ENGLISH,):
        for topic, pattern in load_words(code).topics.items():
            found |= dict.fromkeys(SECTIONS_BY_TOPIC[topic]) if pattern.search(text) else {}
    return tuple(found)


def _may_be_name(word: str, text: str, code: str) -> bool:
    """Return whether a word is not in small letters, unless all of the text is; a role ("my boss") counts as a name."""
    first, *others = word.split()
    return bool(others) or not first.islower() or (text.islower() and first not in load_language(code).words)


def build_name_pattern(names: Sequence[str]) -> str:
    """Return a pattern, for Python and PostgreSQL, of texts that name somebody by one of the names as a whole word."""
    words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    is_spaced = words.isascii() or not re.search("[\u3040-\u9fff]", words)
    return rf"(?<!\w)(?:{words})s?(?!\w)" if is_spaced else f"(?:{words})"
