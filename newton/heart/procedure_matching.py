"""Comparison of an input with procedures and with lines of text by word stems. Pure."""

import re
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from newton.heart.lifecycle.procedures import effectiveness
from newton.text.words import NEVER_NAMES

MAX_INPUT_CHARACTERS = 2_000  # of an input; the rest is not compared
CACHE_SIZE = 8_192  # texts
# The minimum number of stems of a phrase that matches in any order, for procedures of the current frame and others.
MIN_WORDS_IN_FRAME, MIN_WORDS = 2, 3
_WORD = re.compile(r"\w+")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e)$")


@lru_cache(maxsize=CACHE_SIZE)
def extract_stems(text: str) -> frozenset[str]:
    """Return the stems of the content words of a text.

    Results are cached, because every input is compared with every trigger.

    >>> sorted(extract_stems("Where does Ana work? Ana works at Acme."))
    ['acm', 'ana', 'work']
    """
    words = _WORD.findall(text[:MAX_INPUT_CHARACTERS].casefold())
    return frozenset(_ENDING.sub("", word) for word in words if word not in NEVER_NAMES)


def stem_overlap(stems: Set[str], line: str) -> float:
    """Return the share of `stems`, in [0, 1], that the words of the line have; 0 without stems."""
    return len(stems & extract_stems(line)) / len(stems) if stems else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureTriggers:
    """A procedure with the phrases that trigger it and the counts of its uses."""

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
        """The share of successes among the uses that succeeded or failed; 0 if there are none."""
        return effectiveness(self.successes, self.failures)


def match_triggers(
    procedures: Sequence[ProcedureTriggers], text: str, *, types: Collection[str] = (), frame: str | None = None
) -> list[ProcedureTriggers]:
    """Return the procedures that match the input, highest success rate first.

    A procedure matches if the input contains one of its triggers, or all word stems of a trigger or of its name, or if
    one of the entity `types` is its domain or one of its tools. Matching by stems needs a phrase of at least three
    stems, or two if the procedure belongs to the current `frame` (the chosen kind of input) or no frame is given.
    """
    words, stems = _to_padded_words(text[:MAX_INPUT_CHARACTERS]), extract_stems(text)
    entity_types = {entity_type.casefold() for entity_type in types}
    matching = [
        p
        for p in procedures
        if any(_to_padded_words(trigger) in words for trigger in p.triggers)
        or _matches_phrase(p, stems, MIN_WORDS_IN_FRAME if frame is None or frame in p.frames else MIN_WORDS)
        or not entity_types.isdisjoint({p.domain.casefold(), *(tool.casefold() for tool in p.tools)})
    ]
    return sorted(matching, key=lambda p: (-p.success_rate, -p.applications, p.name, p.memory_id))


@lru_cache(maxsize=CACHE_SIZE)
def _to_padded_words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _matches_phrase(procedure: ProcedureTriggers, input_stems: Set[str], min_words: int) -> bool:
    phrases = [extract_stems(phrase) for phrase in (procedure.name.replace("-", " "), *procedure.triggers)]
    return any(len(phrase) >= min_words and phrase <= input_stems for phrase in phrases)
