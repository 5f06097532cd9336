"""Comparison of a model's text on a line with the facts that the parser has stored from the same line. Pure."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

from newton.heart.facts.conflicts import concerns_safety
from newton.heart.reconciliation.known_checks import (
    REFERENCE,
    has_details,
    is_denied,
    is_fragment,
    leave_unreal,
    say_same,
    share_anchors,
)
from newton.heart.reconciliation.text_evidence import (
    collect_evidence,
    find_unsupported_names,
    find_unsupported_numbers,
    list_own_names,
    list_stems,
    share_stems,
)
from newton.heart.statements.clauses import split_clauses
from newton.text.languages import ENGLISH, detect_language
from newton.text.stems import WORD

MIN_CONTAINED = 0.6  # of the words of a statement
MIN_COVERED, MIN_COVERED_REFERENCE = 0.75, 0.6  # of the words of a stated fact; of one with a pronoun, or a named one
MIN_SAID = 0.5  # of the words of a clause

# A first word that only answers ("Aye she's four", "Shortbread, course! He's on the 38"), capital as it may be.
_OPENING = re.compile(r"^\W*\w+(?:[,!]\s+|\s+(?=(?:no|yes|she|he|it|they|we|I|nein|ja|sie|er|es)\b))")
# Between clauses, before one that only adds to the clause before it.
_ATTACHED = re.compile(
    r"\n(?=(?:if|as|since|because|when|while|where|who|which|that|until|among|with|of|in|at|on|for|from|to|by|than)\b)",
    re.IGNORECASE,
)

Relation = Literal["contained", "completes", "differs"]


class LineStatement(NamedTuple):
    """A fact that a line states, in the person's words."""

    memory_id: UUID
    text: str
    subject: str | None = None


def restore_case(stated: str, line: str) -> str:
    """Return a stated fact with the first letter as in the line: the parser may have capitalized it.

    >>> restore_case("Sis has moved to Graz.", "evening. sis has moved to Graz")
    'sis has moved to Graz.'
    """
    words, first = set(WORD.findall(line)), WORD.match(stated)
    plain = f"{stated[:1].lower()}{stated[1:]}"
    return plain if first and first[0] not in words and plain[: first.end()] in words else stated


def find_containing(text: str, stated: Iterable[LineStatement], *, user_names: Sequence[str]) -> LineStatement | None:
    """Return the first stated fact that contains a text (see `relate`); None if none does."""
    return next((one for one in stated if relate(text, one.text, user_names=user_names) == "contained"), None)


def relate(text: str, stated: str, *, user_names: Sequence[str]) -> Relation:
    """Return `contained` if a stated fact says all of a text, `completes` if the text resolves a pronoun in the fact.

    A text that completes a fact says all of it and more. Otherwise return `differs`.

    >>> relate("Kim's landlord is Ms Weiss.", "Our landlord is not Mr Brandt but Ms Weiss.", user_names=["Kim"])
    'contained'
    >>> relate("Emil starts in Linz in May.", "He starts in Linz.", user_names=["Kim"])
    'completes'
    >>> relate("Emil no longer lives in Linz.", "Emil lives in Linz.", user_names=[])
    'differs'
    """
    user_stems = list_stems(" . ".join(list_own_names(user_names)))
    text_stems, stated_stems = list_stems(text) - user_stems, list_stems(stated) - user_stems
    if not text_stems or not stated_stems or (is_denied(text) and not is_denied(stated)):
        return "differs"
    says_all = len(share_stems(stated_stems, text_stems)) == len(stated_stems) and is_denied(text) == is_denied(stated)
    refers_back = bool(REFERENCE.search(stated)) and not REFERENCE.search(text)
    if refers_back and text_stems > stated_stems and says_all and has_details(text, stated, user_names=user_names):
        return "completes"
    is_covered = len(share_stems(text_stems, stated_stems)) >= MIN_CONTAINED * len(text_stems)
    if is_covered and has_details(stated, text, user_names=user_names):
        return "contained"
    return "contained" if say_same(text, stated, user_names=user_names) else "differs"


def find_resolved(
    stated: Sequence[LineStatement],
    texts: Sequence[str],
    *,
    named: Collection[UUID],
    user_names: Sequence[str],
    is_same_line: bool = True,
) -> dict[UUID, int]:
    """Return the facts of a line that a model's texts together replace, each with the index of the text that fits best.

    The texts must have all names and numbers of the fact and most of its words. Less is needed for a fragment without a
    verb and for a fact that the model `named` as better stated by a text. A fact that can be understood alone and says
    as much as the one similar text is kept in the person's words, if `is_same_line`.

    >>> felix = LineStatement(UUID(int=1), "My brother Felix bakes.")
    >>> find_resolved([felix], ["Kim's brother Felix bakes."], named=(), user_names=["Kim"])
    {}
    >>> split = LineStatement(UUID(int=2), "He is six and Kate, a nurse, takes him to school.")
    >>> texts = ["Ole is six.", "Kate is a nurse.", "Kate takes Ole to school."]
    >>> list(find_resolved([split], texts, named=(), user_names=["Kim"]).values())
    [2]
    """
    stems = [_list_words(text, user_names) for text in texts]
    resolved: dict[UUID, int] = {}
    for one in stated:
        stated_stems, is_short = _list_words(one.text, user_names), is_fragment(one.text)
        shares = [len(share_stems(stated_stems, text_stems)) for text_stems in stems]
        alike = [n for n, share in enumerate(shares) if share]
        is_named, is_risky = one.memory_id in named, concerns_safety(one.text)
        is_free = (is_named and not is_risky) or (is_short and not stated_stems)
        real = leave_unreal(one.text)
        real = _OPENING.sub("", real) if is_free else real
        if is_free and not alike:
            alike = [n for n, text in enumerate(texts) if is_fragment(real) or share_anchors(text, real)]
        pairs = [(texts[n], stems[n]) for n in alike]
        if not alike or (is_same_line and _stands(one.text, pairs, stated_stems, user_names)):
            continue
        together = share_stems(stated_stems, frozenset[str]().union(*(stems[n] for n in alike)))
        said = [texts[n] for n in alike]
        is_same_way = (
            is_free or not is_denied(one.text) or any(is_denied(text) or concerns_safety(text) for text in said)
        )
        share = MIN_COVERED_REFERENCE if is_named or REFERENCE.search(one.text) else MIN_COVERED
        is_covered = is_free or len(together) >= (1 if is_short else share * len(stated_stems))
        if (
            is_covered
            and is_same_way
            and _has_all_details(texts, real, is_named=is_named and not is_risky, user_names=user_names)
        ):
            resolved[one.memory_id] = max(alike, key=lambda n: shares[n])
    return resolved


def _has_all_details(texts: Sequence[str], stated: str, *, is_named: bool, user_names: Sequence[str]) -> bool:
    """Return whether texts have the names and numbers of a stated fact; if named, without asides in stated clauses.

    >>> texts, fell = ["Kim's Nokia fell down the stairs."], "My Nokia fell down the stairs, three floors, to bits."
    >>> _has_all_details(texts, fell, is_named=True, user_names=["Kim"])
    True
    >>> _has_all_details(texts, f"{fell} The new one comes at five.", is_named=True, user_names=["Kim"])
    False
    """
    whole, code = " ".join(texts), detect_language(stated)
    if not is_named or code != ENGLISH or has_details(whole, stated, user_names=user_names):
        return has_details(whole, stated, user_names=user_names)
    sources, said = collect_evidence([whole, *user_names]), _list_words(whole, user_names)
    lacking = find_unsupported_numbers(stated, sources, code=code)
    if find_unsupported_names(stated, sources) or not all(number.is_word for number in lacking):
        return False
    for clause in _ATTACHED.sub(" ", "\n".join(split_clauses(stated))).splitlines():
        words = _list_words(clause, user_names)
        is_said = len(share_stems(words, said)) >= MIN_SAID * len(words) > 0
        if not is_said and find_unsupported_numbers(clause, sources, code=code):
            return False
    return True


def _list_words(text: str, user_names: Sequence[str]) -> frozenset[str]:
    """Return the stems of a text without the user's names and without numbers, which are compared as such."""
    stems = list_stems(text) - list_stems(" . ".join(list_own_names(user_names)))
    return frozenset(stem for stem in stems if not stem[0].isdigit())


def _stands(
    stated: str, alike: Sequence[tuple[str, frozenset[str]]], theirs: frozenset[str], user_names: Sequence[str]
) -> bool:
    """Return whether a stated fact can be understood alone, and contains the only similar text."""
    if is_fragment(stated) or REFERENCE.search(stated):
        return False
    within = [
        (text, mine)
        for text, mine in alike
        if share_stems(mine, theirs) == mine and is_denied(text) == is_denied(stated)
    ]
    is_whole = any(share_stems(theirs, mine) == theirs for _, mine in within)
    is_contained = any(relate(text, stated, user_names=user_names) == "contained" for text, _ in within)
    return is_contained and (is_whole or len(alike) == len(within) == 1)
