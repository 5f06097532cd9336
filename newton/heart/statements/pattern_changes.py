"""Detection of whether a statement in another language than English replaces an older one, by patterns. Pure."""

import re

from newton.text.languages import load_language
from newton.text.patterns import find_attribute, has_ended, is_negated
from newton.text.stems import stem_word
from newton.text.words import list_terms

# Attributes of the patterns with one value at a time.
SINGLE_VALUED = frozenset(
    {
        "lives in",
        "works at",
        "name",
        "birthday",
        "age",
        "spouse",
        "marital status",
        "phone number",
        "email",
        "favourite colour",
    }
)
MIN_SHARED = 0.6  # of the content words of the shorter statement, for one that ends or denies the other
MIN_EQUAL = 0.75  # of the content words of both, for statements that differ in an amount
_NUMBER = re.compile(r"\d")


def find_pattern_change(older: str, newer: str, code: str) -> str:
    """Return why the newer of two statements in a language replaces the older one; an empty text if it does not.

    >>> find_pattern_change("Ich wohne in Berlin.", "Ich wohne nicht mehr in Berlin.", "de")
    'the newer one ends what the older one says'
    >>> find_pattern_change("Ich wohne in Köln.", "Ich wohne nicht mehr in Berlin.", "de")
    ''
    """
    old, new = _content_stems(older, code), _content_stems(newer, code)
    shared = len(old & new) / max(min(len(old), len(new)), 1)
    ended = has_ended(newer, code) and not has_ended(older, code)
    if ended or has_ended(older, code):
        if ended and shared >= MIN_SHARED:
            return "the newer one ends what the older one says"
        return "" if ended else _same_attribute(older, newer, code) if shared >= MIN_SHARED else ""
    if is_negated(older, code) != is_negated(newer, code):
        return "one denies what the other says" if shared >= MIN_SHARED and old and new else ""
    if reason := _same_attribute(older, newer, code):
        return reason
    return "they differ only in numbers" if _differs_in_numbers(older, newer, old, new) else ""


def _same_attribute(older: str, newer: str, code: str) -> str:
    attribute = find_attribute(newer, code)
    is_same = attribute in SINGLE_VALUED and attribute == find_attribute(older, code)
    return f"both state the attribute {attribute!r}, which has one value at a time" if is_same else ""


def _differs_in_numbers(older: str, newer: str, old: frozenset[str], new: frozenset[str]) -> bool:
    if not (_NUMBER.search(older) and _NUMBER.search(newer)):
        return False
    return len(old & new) >= MIN_EQUAL * len(old | new) > 0


def _content_stems(text: str, code: str) -> frozenset[str]:
    """Return the stems of the words of a text, without function words and numbers."""
    data = load_language(code)
    terms = (term for term in list_terms(text) if not _NUMBER.search(term))
    if data.is_spaced:
        return frozenset(stem_word(term) for term in terms if len(term) > 1 and term not in data.words)
    return frozenset(term for term in terms if len(term) > 1)
