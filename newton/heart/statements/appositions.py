"""Appositions: phrases that say in passing who or what a name is, such as "our plumber Theo". Pure."""

import re
from typing import NamedTuple

from newton.text.english import AUXILIARIES, MARKERS, VERB_LEMMAS, lemmatize
from newton.text.numerals import DAYS, MONTHS

# Adjectives that may stand between an owner and a name that is itself the noun: "our old Toyota".
_ADJECTIVE_LIST = """
    beloved big black blue brand current dear dirty entire external famous favourite favorite few first former green
    grey gray internal large last late latest little local main many modern new next nice old only other own poor
    previous primary red same second secondary shiny single small third two usual used white whole yellow young
"""
_ADJECTIVES = frozenset(_ADJECTIVE_LIST.split())
# Words besides verbs that may follow a name. Before a noun the name only describes it: "the internal Kafka cluster".
_FOLLOWER_LIST = """
    also always already and but can cannot could just may might must never no not now often only or really shall should
    still that usually who whose will would
"""
_FOLLOWERS = frozenset(_FOLLOWER_LIST.split())

_TITLE = r"(?:(?:Mr|Mrs|Ms|Dr|St|Prof)\.? )?"
_PARTICLES = r"(?:(?:al|bin|da|de|del|den|der|di|du|el|la|le|ter|van|von) )*"
_NAME = rf"(?!I\b){_TITLE}{_PARTICLES}[A-Z][\w-]*(?: {_PARTICLES}[A-Z][\w-]*){{0,2}}"
_OWNER = r"(?:[Mm]y|[Oo]ur|[Tt]he|[A-Z][\w-]*['’]s)"
_ROLE = rf"(?P<role>{_OWNER} (?:[a-z][\w-]*\.? ){{0,3}}[a-z][\w-]*)"
_FORMS = (
    re.compile(rf"(?<![\w'’-]){_ROLE} (?P<name>{_NAME}(?: and {_NAME})?)(?![\w-])"),
    re.compile(rf"(?<![\w'’-]){_ROLE}, (?P<name>{_NAME}),"),
    re.compile(rf"(?<![\w'’-])(?P<name>{_NAME}), {_ROLE},"),
)
_NEXT_WORD = re.compile(r" ([a-z][\w-]*)")


class NameApposition(NamedTuple):
    """A name, and as `role` the phrase that describes it, such as "our plumber"."""

    name: str
    role: str

    @property
    def noun(self) -> str:
        """The last word of the role, such as "plumber"."""
        return self.role.split()[-1]

    @property
    def statement(self) -> str:
        """The apposition as a sentence, such as "Theo is our plumber."."""
        owner, rest = self.role.split(maxsplit=1)
        owner = owner if owner.endswith(("'s", "’s")) else owner.lower()
        return f"{self.name} {'are' if ' and ' in self.name else 'is'} {owner} {rest}."


def find_appositions(text: str) -> list[NameApposition]:
    """Return the names in a text that a phrase beside them describes, each with this phrase.

    >>> [one.statement for one in find_appositions("Our plumber Theo charges 70 euros an hour.")]
    ['Theo is our plumber.']
    >>> find_appositions("She saw the stair I fell on.")
    []
    """
    matches = [match for form in _FORMS for match in form.finditer(text) if _may_end(text[match.end() :])]
    found = [_to_apposition(match) for match in matches]
    return list(dict.fromkeys(one for one in found if one and _is_noun_phrase(one.role)))


def _may_end(rest: str) -> bool:
    """Return whether a name may end before `rest`, the text after it. In "the internal Kafka cluster" it may not."""
    found = _NEXT_WORD.match(rest)
    if not found:
        return True
    word = found[1]
    is_verb = lemmatize(word) in VERB_LEMMAS or word.endswith(("s", "ed"))
    return is_verb or word in AUXILIARIES or word in MARKERS or word in _FOLLOWERS


def _to_apposition(match: re.Match[str]) -> NameApposition | None:
    """Return the apposition of a match; None if it is a date, or if a plural describes a single name.

    A singular describes only the first of two names: of "my brother Tom and Eva" only Tom is the brother.
    """
    name, role = match["name"], match["role"]
    if _is_date(name):
        return None
    is_plural = role.endswith("s") and not role.endswith("ss")
    names = name.split(" and ")
    if is_plural != (len(names) > 1):
        if is_plural:
            return None
        name = names[0]
    return NameApposition(name, role)


def _is_date(name: str) -> bool:
    return name.split(maxsplit=1)[0].lower() in DAYS.keys() | MONTHS.keys()


def _is_noun_phrase(role: str) -> bool:
    """Return whether the words after the owner are one noun phrase. The first may look like a verb ("my coach")."""
    words = [word.lower() for word in role.split()[1:]]
    if words[-1] in _ADJECTIVES or any(word in MARKERS or word in AUXILIARIES for word in words):
        return False
    return not any(lemmatize(word) in VERB_LEMMAS or word.endswith("ed") for word in words[1:])
