"""How well a line fits the words of an input, and which procedures are meant by them. Pure."""

import re
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from newton.heart.lifecycle.procedures import effectiveness
from newton.heart.stopwords import NEVER_NAMES

MAX_INPUT_CHARACTERS = 2_000  # characters of an input that are looked at
CACHE_SIZE = 8_192  # texts
MIN_WORDS_IN_FRAME, MIN_WORDS = 2, 3  # of a phrase, in any order, that mean a procedure
_WORD = re.compile(r"\w+")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e)$")


@lru_cache(maxsize=CACHE_SIZE)
def extract_stems(text: str) -> frozenset[str]:
    """The words of a text that say something, without case and ending.

    Remembered, because the triggers of every procedure are compared with every input.

    >>> sorted(extract_stems("Where does Ana work? Ana works at Acme."))
    ['acm', 'ana', 'work']
    """
    words = _WORD.findall(text[:MAX_INPUT_CHARACTERS].casefold())
    return frozenset(_ENDING.sub("", word) for word in words if word not in NEVER_NAMES)


def stem_overlap(wanted: Set[str], line: str) -> float:
    """The part of the wanted stems that stand in a line, from 0 to 1."""
    return len(wanted & extract_stems(line)) / len(wanted) if wanted else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureTriggers:
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
    def success_rate(self) -> float:
        """The share of successes among the judged uses; 0 without any, so that it sorts."""
        return effectiveness(self.successes, self.failures)


def match_triggers(
    procedures: Sequence[ProcedureTriggers], text: str, *, types: Collection[str] = (), frame: str | None = None
) -> list[ProcedureTriggers]:
    """Those that the input asks for, the most successful first.

    It says one of their triggers, or the words of one or of the name in another order, or names something of a type
    that they are for. Of a procedure for this frame fewer words do; without a frame, of each.
    """
    said, words, kinds = (
        _to_padded_words(text[:MAX_INPUT_CHARACTERS]),
        extract_stems(text),
        {kind.casefold() for kind in types},
    )
    meant = [
        pattern
        for pattern in procedures
        if any(_to_padded_words(trigger) in said for trigger in pattern.triggers)
        or _matches_phrase(
            pattern, words, min_words=MIN_WORDS_IN_FRAME if frame is None or frame in pattern.frames else MIN_WORDS
        )
        or not kinds.isdisjoint({pattern.domain.casefold(), *(tool.casefold() for tool in pattern.tools)})
    ]
    return sorted(meant, key=lambda p: (-p.success_rate, -p.applications, p.name, p.memory_id))


@lru_cache(maxsize=CACHE_SIZE)
def _to_padded_words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _matches_phrase(procedure: ProcedureTriggers, input_stems: Set[str], *, min_words: int) -> bool:
    phrases = [extract_stems(phrase) for phrase in (procedure.name.replace("-", " "), *procedure.triggers)]
    return any(len(phrase) >= min_words and phrase <= input_stems for phrase in phrases)
