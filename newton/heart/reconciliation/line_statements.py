"""How a model's statement on a line relates to the facts that the statement parser took from the same line. Pure."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from newton.heart.facts.conflicts import concerns_safety
from newton.heart.reconciliation.same_statements import is_denied, say_same
from newton.heart.reconciliation.text_evidence import (
    collect_evidence,
    find_unsupported_names,
    find_unsupported_numbers,
    list_own_names,
    list_stems,
    share_stems,
)
from newton.heart.statements.statement_candidates import has_verb
from newton.languages.detection import detect_language
from newton.languages.language_data import ENGLISH

MIN_CONTAINED = 0.6  # of the words of a statement
MIN_COVERED = 0.75  # of the words of a stated fact that a clearer statement has

# A sentence with one of these as a person or thing cannot be understood alone. Not those that may also be articles.
_REFERENCE = re.compile(
    r"\b(?:he|she|they|it|him|her|them|there|er|sie|ihm|ihn|dort|él|ella|ellos|ellas|allí|elle|ils|elles|lei|lui|loro"
    r"|ele|ela|eles|elas|hij|zij|он|она|они|там)\b",
    re.IGNORECASE,
)

Relation = Literal["contained", "completes", "differs"]


class LineStatement(NamedTuple):
    """A fact that a line states, in the person's words."""

    memory_id: UUID
    text: str
    subject: str | None = None


def find_containing(text: str, stated: Iterable[LineStatement], *, user_names: Sequence[str]) -> LineStatement | None:
    """Return the first fact of the line that says what the text says; None if none does."""
    return next((one for one in stated if relate(text, one.text, user_names=user_names) == "contained"), None)


def relate(text: str, stated: str, *, user_names: Sequence[str]) -> Relation:
    """Return whether a stated fact contains a text, or the text completes it: says all of it, and whom it is about.

    Only a fact that refers to somebody or something by a pronoun is completed.

    >>> relate("Kim's landlord is Ms Weiss.", "Our landlord is not Mr Brandt but Ms Weiss.", user_names=["Kim"])
    'contained'
    >>> relate("Emil starts in Linz in May.", "He starts in Linz.", user_names=["Kim"])
    'completes'
    >>> relate("Emil no longer lives in Linz.", "Emil lives in Linz.", user_names=[])
    'differs'
    """
    own = list_stems(" . ".join(list_own_names(user_names)))
    mine, theirs = list_stems(text) - own, list_stems(stated) - own
    if not mine or not theirs or (is_denied(text) and not is_denied(stated)):
        return "differs"
    says_all = len(share_stems(theirs, mine)) == len(theirs) and is_denied(text) == is_denied(stated)
    refers_back = bool(_REFERENCE.search(stated)) and not _REFERENCE.search(text)
    if refers_back and mine > theirs and says_all and _is_supported(stated, [text, *user_names]):
        return "completes"
    is_covered = len(share_stems(mine, theirs)) >= MIN_CONTAINED * len(mine)
    if is_covered and _is_supported(text, [stated, *user_names]):
        return "contained"
    return "contained" if say_same(text, stated, user_names=user_names) else "differs"


def rewords(text: str, stated: str, *, user_names: Sequence[str]) -> bool:
    """Return whether a text says what a stated fact says and more clearly: with its names, numbers and most words.

    Of a fragment without a verb, one word is enough.

    >>> rewords("Kim must never take penicillin.", "Penicillin no", user_names=["Kim"])
    True
    >>> rewords("Kim takes ramipril at night.", "Penicillin no", user_names=["Kim"])
    False
    """
    own = list_stems(" . ".join(list_own_names(user_names)))
    mine, theirs = list_stems(text) - own, list_stems(stated) - own
    shared = len(share_stems(theirs, mine))
    is_short = is_fragment(stated)
    is_same_way = is_denied(text) == is_denied(stated) or (is_short and concerns_safety(text))
    is_covered = shared >= (1 if is_short else MIN_COVERED * len(theirs)) and shared > 0
    return is_covered and is_same_way and _is_supported(stated, [text, *user_names])


def is_fragment(text: str) -> bool:
    """Return whether an English text has no verb."""
    return detect_language(text) == ENGLISH and not has_verb(text)


def _is_supported(text: str, sources: Sequence[str]) -> bool:
    """Return whether all names and numbers of a text are in the sources."""
    evidence = collect_evidence(sources)
    code = detect_language(text)
    return not find_unsupported_names(text, evidence) and not find_unsupported_numbers(text, evidence, code=code)
