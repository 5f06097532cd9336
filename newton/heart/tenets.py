"""Tenets: the lines of an identity as values, in the order in which they count. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from newton.memory.memory import digest
from newton.memory.representations import bullet

# By what it costs when one is missed: what bars or commands an action before what colours it.
Part = Literal["boundary", "instruction", "protocol", "value", "preference", "character"]
PARTS: tuple[Part, ...] = get_args(Part)

# What a person says to the agent; the rest the agent says of itself. Without that "call me Max" is anybody's name.
_SAID_TO_IT: frozenset[Part] = frozenset({"instruction", "preference"})

_NO_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenet:
    """One line of the identity. `tokens` are those of its line as a context shows it; no words are left when they were
    erased."""

    tenet_id: UUID
    part: Part
    words: str
    tokens: int


class Identity(NamedTuple):
    """The identity of one version, in the order in which it was written. Version 0 is before anybody wrote. `gone` are
    the words of lines that stood in an earlier one and stand no more."""

    version: int
    tenets: tuple[Tenet, ...]
    gone: frozenset[str] = frozenset()

    @property
    def ranked(self) -> list[Tenet]:
        """What counts most first, as a context shows it."""
        return sorted(self.tenets, key=lambda tenet: PARTS.index(tenet.part))


NOBODY = Identity(0, ())


class Difference(NamedTuple):
    """What one version has and another has not."""

    came: tuple[UUID, ...]
    went: tuple[UUID, ...]


def line(part: Part, words: str) -> str:
    """
    >>> line("preference", "Call me Max"), line("value", "Honest before kind")
    ('The user says: Call me Max', 'Honest before kind')
    """
    return f"The user says: {words}" if part in _SAID_TO_IT else words


def rendered(part: Part, words: str) -> str:
    """As it stands in a context; what its tokens are counted on."""
    return bullet(line(part, words))


def gist(words: str) -> bytes:
    """The same for the same words, whatever their case and punctuation."""
    return digest(plain(words))


def plain(words: str) -> str:
    """
    >>> plain("Answer in French, please!")
    'answer in french please'
    """
    # what has no words at all is itself
    return _NO_WORDS.sub(" ", words.casefold()).strip() or words


def difference(before: Sequence[UUID], after: Sequence[UUID]) -> Difference:
    return Difference(
        came=tuple(one for one in after if one not in before), went=tuple(one for one in before if one not in after)
    )
