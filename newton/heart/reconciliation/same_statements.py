"""Whether two known items may be merged because a model says that they say the same. Pure."""

from collections.abc import Sequence

from newton.heart.reconciliation.text_evidence import (
    collect_evidence,
    find_unsupported_names,
    find_unsupported_numbers,
    list_own_names,
    list_stems,
    share_stems,
)
from newton.heart.statements.change_cues import load_cues
from newton.languages.detection import detect_language
from newton.languages.language_data import ENGLISH
from newton.languages.patterns import is_negated

MIN_SHARED = 0.5  # of the words of the shorter statement


def say_same(first: str, second: str, *, user_names: Sequence[str]) -> bool:
    """Return whether two statements have the same names, numbers and negations, and share half of their words.

    The user's own names may be missing in one of them.

    >>> say_same("Kim's dog is called Bo.", "Kim has a dog, Bo.", user_names=["Kim"])
    True
    >>> say_same("Kim runs 5 km.", "Kim runs 8 km.", user_names=["Kim"])
    False
    """
    if is_denied(first) != is_denied(second):
        return False
    for one, other in ((first, second), (second, first)):
        sources = collect_evidence([other, *user_names])
        if find_unsupported_names(one, sources) or find_unsupported_numbers(one, sources, code=detect_language(one)):
            return False
    user = list_stems(" . ".join(list_own_names(user_names)))
    one, other = list_stems(first) - user, list_stems(second) - user
    shorter, longer = sorted((one, other), key=len)
    return len(share_stems(shorter, longer)) >= MIN_SHARED * len(shorter) > 0


def is_denied(text: str) -> bool:
    """Return whether a statement says that something is not so."""
    code = detect_language(text)
    return bool(load_cues().cues["negation"].search(text)) if code == ENGLISH else is_negated(text, code)
