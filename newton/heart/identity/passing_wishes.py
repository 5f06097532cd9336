"""Wishes on how to answer or to address the person that are said in passing, in a clause of another message. Pure.

The patterns are in `wish_patterns.yaml`. They match at the beginning of a clause, but not if it names one case, asks or
tells what others say.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from newton.heart.identity.rule_model import MaskedSentence
from newton.heart.identity.wish_patterns import (
    PassingPatterns,
    concerns_manner,
    concerns_one_case,
    load_passing_patterns,
)

MAX_WORDS = 40  # of a wording; of a longer one, only the clause is kept
CLAUSE_WORDS = range(3, 19)  # of a clause that is classified

_BOUNDARY = re.compile(r"[,;–—]+\s+|\s-+\s+|\s(?=(?:and|so|but)\s)")
_CLOSE = re.compile(r"[\s,;:–—-]+$")
_TAG = re.compile(r",? (?:would|will|could|can) (?:you|u)(?: please)?\s*\?$|,? ok(?:ay)?\s*\?$", re.IGNORECASE)
_POLITE = re.compile(r"(?:please |just )?(?:can|could|would|will) (?:you|u) |do you mind", re.IGNORECASE)
_EDGES = re.compile(r"(?:,? (?:please|pls|thanks|ta))?[\s.!?,;:–—-]*$", re.IGNORECASE)


def find_passing_wish(sentence: MaskedSentence, message: str) -> str | None:
    """Return the wording of the wish that a clause of the sentence states; None if none does.

    `message` is the whole message, which may tell that a word is a name.
    """
    patterns = load_passing_patterns()
    masked = _TAG.sub("", sentence.masked.replace("’", "'"))
    for start, end in _list_clauses(masked):
        opener = patterns.openers.match(masked, start)
        begin = opener.end() if opener else start
        if masked.endswith("?") and end == len(masked) and not _POLITE.match(masked, begin):
            continue
        if concerns_one_case(masked[begin:end]) or patterns.others.search(masked[:start]):
            continue
        if _states_wish(masked[begin:], message, patterns):
            wording = _EDGES.sub("", sentence.text[begin : len(masked)])
            if len(wording.split()) > MAX_WORDS:
                wording = _EDGES.sub("", sentence.text[begin:end])
            return wording[:1].upper() + wording[1:]
    return None


def list_manner_clauses(sentence: MaskedSentence) -> list[MaskedSentence]:
    """Return the clauses of a sentence, alone and with the next one, that have a word of the manner of answers."""
    clauses = list(_list_clauses(sentence.masked))
    spans = [*clauses, *((one[0], following[1]) for one, following in pairwise(clauses))] if len(clauses) > 1 else []
    found = (MaskedSentence(_CLOSE.sub("", sentence.text[a:b]), sentence.masked[a:b]) for a, b in sorted(spans))
    return [one for one in found if len(one.text.split()) in CLAUSE_WORDS and concerns_manner(one.masked)]


def shorten_wording(sentence: MaskedSentence, clause: MaskedSentence) -> str:
    """Return the words of the sentence, or of the clause if those are too many."""
    return sentence.text if len(sentence.text.split()) <= MAX_WORDS else clause.text


def _states_wish(clause: str, message: str, patterns: PassingPatterns) -> bool:
    if patterns.wishes.match(clause):
        return True
    return patterns.names.match(clause) is not None and patterns.naming.search(message) is not None


def _list_clauses(sentence: str) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each clause."""
    starts = [0, *(found.end() for found in _BOUNDARY.finditer(sentence))]
    yield from zip(starts, [*starts[1:], len(sentence)], strict=True)
