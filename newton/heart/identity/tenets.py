"""Tenets: the lines of an identity as values, in the order in which they count. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from newton.memory.memory import digest
from newton.memory.representations import to_bullet

# By what it costs when one is missed: what bars or commands an action before what colours it.
IdentityPart = Literal["boundary", "instruction", "protocol", "value", "preference", "character"]
IDENTITY_PARTS: tuple[IdentityPart, ...] = get_args(IdentityPart)

# What a person says to the agent; the rest the agent says of itself. Without that "call me Max" is anybody's name.
_USER_PARTS: frozenset[IdentityPart] = frozenset({"instruction", "preference"})

_NON_WORD = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenet:
    """One line of the identity. `tokens` are those of its line as a context shows it; no words are left when they were
    erased."""

    tenet_id: UUID
    part: IdentityPart
    text: str
    tokens: int


class Identity(NamedTuple):
    """The identity of one version, in the order in which it was written. Version 0 is before anybody wrote. `gone` are
    the words of lines that stood in an earlier one and stand no more."""

    version: int
    tenets: tuple[Tenet, ...]
    removed_texts: frozenset[str] = frozenset()

    @property
    def by_priority(self) -> list[Tenet]:
        """What counts most first, as a context shows it."""
        return sorted(self.tenets, key=lambda tenet: IDENTITY_PARTS.index(tenet.part))


EMPTY_IDENTITY = Identity(0, ())


class TenetDiff(NamedTuple):
    """What one version has and another has not."""

    added: tuple[UUID, ...]
    removed: tuple[UUID, ...]


def format_tenet(part: IdentityPart, text: str) -> str:
    """
    >>> format_tenet("preference", "Call me Max"), format_tenet("value", "Honest before kind")
    ('The user says: Call me Max', 'Honest before kind')
    """
    return f"The user says: {text}" if part in _USER_PARTS else text


def render_tenet(part: IdentityPart, text: str) -> str:
    """As it stands in a context; what its tokens are counted on."""
    return to_bullet(format_tenet(part, text))


def fingerprint(text: str) -> bytes:
    """The same for the same words, whatever their case and punctuation."""
    return digest(normalize_line(text))


def normalize_line(text: str) -> str:
    """
    >>> normalize_line("Answer in French, please!")
    'answer in french please'
    """
    # what has no words at all is itself
    return _NON_WORD.sub(" ", text.casefold()).strip() or text


def diff_tenets(before: Sequence[UUID], after: Sequence[UUID]) -> TenetDiff:
    return TenetDiff(
        added=tuple(one for one in after if one not in before), removed=tuple(one for one in before if one not in after)
    )
