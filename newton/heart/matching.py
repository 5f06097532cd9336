"""How well a line fits the words of an input, and which procedures are meant by them. Pure."""

import re
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from newton.heart.lifecycle.procedures import effectiveness
from newton.heart.plainwords import NEVER

LONGEST = 2_000  # characters of an input that are looked at
REMEMBERED = 8_192  # texts
FEW_WORDS, MANY_WORDS = 2, 3  # of a phrase, in any order, that mean a procedure
_WORD = re.compile(r"\w+")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e)$")


@lru_cache(maxsize=REMEMBERED)
def stems(text: str) -> frozenset[str]:
    """The words of a text that say something, without case and ending.

    Remembered, because the triggers of every procedure are compared with every input.

    >>> sorted(stems("Where does Ana work? Ana works at Acme."))
    ['acm', 'ana', 'work']
    """
    words = _WORD.findall(text[:LONGEST].casefold())
    return frozenset(_ENDING.sub("", word) for word in words if word not in NEVER)


def share(wanted: Set[str], line: str) -> float:
    """The part of the wanted stems that stand in a line, from 0 to 1."""
    return len(wanted & stems(line)) / len(wanted) if wanted else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """What a procedure is asked for by, and its record."""

    memory_id: UUID
    name: str
    domain: str
    triggers: Sequence[str]
    tools: Sequence[str]
    frames: Sequence[str]
    applications: int
    successes: int
    failures: int

    @property
    def rate(self) -> float:
        """The share of successes among the judged uses; 0 without any, so that it sorts."""
        return effectiveness(self.successes, self.failures)


def called_for(
    patterns: Sequence[Pattern], text: str, *, types: Collection[str] = (), frame: str | None = None
) -> list[Pattern]:
    """Those that the input asks for, the most successful first.

    It says one of their triggers, or the words of one or of the name in another order, or names something of a type
    that they are for. Of a procedure for this frame fewer words do; without a frame, of each.
    """
    said, words, kinds = _phrase(text[:LONGEST]), stems(text), {kind.casefold() for kind in types}
    meant = [
        pattern
        for pattern in patterns
        if any(_phrase(trigger) in said for trigger in pattern.triggers)
        or _worded(pattern, words, fewest=FEW_WORDS if frame is None or frame in pattern.frames else MANY_WORDS)
        or not kinds.isdisjoint({pattern.domain.casefold(), *(tool.casefold() for tool in pattern.tools)})
    ]
    return sorted(meant, key=lambda p: (-p.rate, -p.applications, p.name, p.memory_id))


@lru_cache(maxsize=REMEMBERED)
def _phrase(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _worded(pattern: Pattern, words: Set[str], *, fewest: int) -> bool:
    phrases = [stems(phrase) for phrase in (pattern.name.replace("-", " "), *pattern.triggers)]
    return any(len(phrase) >= fewest and phrase <= words for phrase in phrases)
