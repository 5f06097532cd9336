"""Whether two known items may be merged because a model says that they say the same. Pure."""

import re
from collections.abc import Sequence
from datetime import date

from newton.heart.reconciliation.derived_days import list_weekdays
from newton.heart.reconciliation.text_evidence import (
    collect_evidence,
    find_unsupported_names,
    find_unsupported_numbers,
    list_own_names,
    list_stems,
    share_stems,
)
from newton.heart.statements.change_cues import load_cues
from newton.heart.statements.statement_candidates import has_verb
from newton.text.languages import ENGLISH, detect_language
from newton.text.patterns import is_negated

MIN_SHARED = 0.5  # of the words of the shorter statement
MIN_REPEATED = 0.8  # of the words of a statement that another repeats

# A sentence with one of these as a person or thing cannot be understood alone. Not those that may also be articles.
REFERENCE = re.compile(
    r"\b(?:he|she|they|it|him|her|them|there|er|sie|ihm|ihn|dort|él|ella|ellos|ellas|allí|elle|ils|elles|lei|lui|loro"
    r"|ele|ela|eles|elas|hij|zij|он|она|они|там)\b",
    re.IGNORECASE,
)
# In a sentence in the words of a person, these stand for names.
_SPEAKER = re.compile(
    r"\b(?:i|my|me|we|our|us|ich|mein\w*|wir|unser\w*|yo|mi|mis|nosotr[oa]s|nuestr\w+|je|mon|ma|mes|nous|notre|io|mio|mia|noi"
    r"|nostr\w|eu|meu|minha|nós|noss[oa]|ik|mijn|wij|ons|я|мой|моя|мы|наш\w*)\b",
    re.IGNORECASE,
)

# What is not so: of a correction, a "no" before the new value and the number that is wrong; what it is compared with.
_UNREAL = re.compile(
    r"^\W*(?:(?:no|nope|nah|nein|nee|non|não|нет)(?:[,.!…]+\s+|\s+(?=(?:no|nein|non|не)\b|(?:the\s+)?\d+(?:st|nd|rd|th)\b)))+"
    r"|(?:(?<=, )no|\b(?:not|nicht|pas|non|niet|não|не|instead\s+of|rather\s+than|statt|anstatt"
    r"|en\s+(?:vez|lugar)\s+de|au\s+lieu\s+de))\s+(?:the\s+)?\d[\d.,:]*(?:st|nd|rd|th)?\b"
    r"|\b(?:like\s+an?|wie\s+eine?|como\s+una?|comme\s+une?)\s+[\w-]+",
    re.IGNORECASE,
)


def say_same(first: str, second: str, *, user_names: Sequence[str]) -> bool:
    """Return whether two statements have the same names, numbers and negations, and share half of their words.

    The user's own names may be missing in one of them.

    >>> say_same("Kim's dog is called Bo.", "Kim has a dog, Bo.", user_names=["Kim"])
    True
    >>> say_same("Kim runs 5 km.", "Kim runs 8 km.", user_names=["Kim"])
    False
    """
    if is_denied(first) != is_denied(second) or not _share_words(first, second, user_names):
        return False
    return has_details(first, second, user_names=user_names) and has_details(second, first, user_names=user_names)


def includes(first: str, second: str, *, user_names: Sequence[str]) -> bool:
    """Return whether two statements say the same, or the other has all details of one in a person's words.

    Of such a sentence ("Na, I'm at Roda Torta anyway."), few words may be in the other; of a correction, its new date
    or number.

    >>> includes("Dad lives out there in Graz.", "Kim's dad lives in Graz and flies in on 3 May.", user_names=["Kim"])
    True
    >>> includes("No no, the 22nd.", "Mia sees Dr. Weiss on 22 May at 9:30.", user_names=["Kim"])
    True
    >>> includes("Kim lives in Graz.", "Kim's brother Malte lives in Graz.", user_names=["Kim"])
    False
    """
    real = leave_unreal(first), leave_unreal(second)
    corrects = any(is_fragment(text) or _UNREAL.search(text) for text in (first, second))
    is_linked = share_stems(*map(list_stems, real)) or (corrects and share_anchors(*real))
    if is_denied(real[0]) != is_denied(real[1]) or not is_linked:
        return False
    has_first, has_second = (has_details(*pair, user_names=user_names) for pair in (real[::-1], real))
    if (has_first and is_spoken(first)) or (has_second and is_spoken(second)):
        return True
    return has_first and has_second and _share_words(*real, user_names)


def leave_unreal(text: str) -> str:
    """Return a statement without the value that it corrects and without comparisons, of which nothing must be kept.

    >>> leave_unreal("No no, she wants 35 and not 30."), leave_unreal("He stands there like a Bavarian.")
    ('she wants 35 and .', 'He stands there .')
    >>> leave_unreal("No sugar for Kim in school no 17.")
    'No sugar for Kim in school no 17.'
    """
    return _UNREAL.sub("", text)


def share_anchors(first: str, second: str) -> bool:
    """Return whether two statements have a number or a weekday in common."""
    return bool(_list_anchors(first) & _list_anchors(second))


def _list_anchors(text: str) -> frozenset[object]:
    return collect_evidence([text]).numbers | list_weekdays(text, date.min.replace(year=2000))


def says_all(text: str, other: str, *, user_names: Sequence[str]) -> bool:
    """Return whether a text has nearly all words of another, all its names and numbers, and its negation.

    >>> says_all("Write to me without lists.", "And please write to me without lists.", user_names=[])
    True
    >>> says_all("Schreib mir ohne Listen.", "Und schreib mir bitte ohne Listen.", user_names=[])
    True
    >>> says_all("Escríbeme sin listas.", "Escríbeme sin listas, vivo en Graz.", user_names=[])
    False
    """
    mine, theirs = list_stems(text), list_stems(other) - list_stems(" . ".join(list_own_names(user_names)))
    is_covered = len(share_stems(theirs, mine)) >= MIN_REPEATED * len(theirs) > 0
    return is_covered and is_denied(text) == is_denied(other) and has_details(text, other, user_names=user_names)


def is_spoken(text: str) -> bool:
    """Return whether a statement is in a person's words: a fragment, a correction, or with pronouns for names."""
    return is_fragment(text) or any(pattern.search(text) for pattern in (_SPEAKER, REFERENCE, _UNREAL))


def is_fragment(text: str) -> bool:
    """Return whether an English text has no verb."""
    return detect_language(text) == ENGLISH and not has_verb(text)


def has_details(text: str, other: str, *, user_names: Sequence[str]) -> bool:
    """Return whether a text has all names and numbers of another, apart from the user's names."""
    sources = collect_evidence([text, *user_names])
    code = detect_language(other)
    return not find_unsupported_names(other, sources) and not find_unsupported_numbers(other, sources, code=code)


def _share_words(first: str, second: str, user_names: Sequence[str]) -> bool:
    user = list_stems(" . ".join(list_own_names(user_names)))
    shorter, longer = sorted((list_stems(first) - user, list_stems(second) - user), key=len)
    return len(share_stems(shorter, longer)) >= MIN_SHARED * len(shorter) > 0


def is_denied(text: str) -> bool:
    """Return whether a statement says that something is not so."""
    code = detect_language(text)
    return bool(load_cues().cues["negation"].search(text)) if code == ENGLISH else is_negated(text, code)
