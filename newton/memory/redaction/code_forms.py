"""Codes by the form of their groups, such as `XXXX-XXXX-XXXX`, and words near them on either side. Pure.

A form alone is seldom enough: serial numbers and article numbers look alike. So a word before or after it says what it
is, and a word such as "order" right before it that it is none.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import re2

from newton.memory.redaction.labelled_values import Labels
from newton.memory.redaction.rule_files import index_labels, load_rules, name_tests
from newton.memory.redaction.tally import SecretSpan

_BEFORE_CHARS, _AFTER_CHARS = 90, 70
_WINDOW_CHARS = 240
_OTHER_CHARS = 26  # before a code, in which a word such as "serial" counts
_GROUPS = re.compile(r"[^\W_]+")
# One pass finds what may be a code: groups of capitals and digits, groups of four, pairs of hexadecimal digits, one
# long group, rows of numbers.
_CANDIDATE = re2.compile(
    rb"\b(?:[A-Z0-9]{3,8}(?:[ -][A-Z0-9]{2,8}){2,}|[A-Za-z0-9]{4}(?:[ -][A-Za-z0-9]{4}){3,}"
    rb"|[0-9A-Fa-f]{2}(?:[ :-][0-9A-Fa-f]{2}){7,}|[A-Z0-9]{11,25}|0x[0-9a-f]{64})\b"
    rb"|(?:[a-z]{0,5}[0-9][a-z0-9]{0,5}[ .:)-]{1,2}[a-z0-9]{4,6}[\"',;\s]{1,8}){2,}"
    rb"[a-z0-9]{1,6}[ .:)-]{1,2}[a-z0-9]{4,6}"
    rb"|[a-z0-9]{4,6}(?:-[a-z0-9]{4,6}){3,7}"
    rb"|[A-Z][a-z]{2,15}[!#%&$~][A-Za-z][a-z]{2,15}[0-9]{1,4}"
    rb"|[0-9]{3}-[0-9]{2}-[0-9]{3}|[0-9]{4}-[0-9]{3}-[0-9]{4}|(?:[a-z]{3,8} ){11,23}[a-z]{3,8}"
)


class CodeForm(NamedTuple):
    """The form of a kind of code. `near` are words of which one stands near it; without, the form is enough.

    With `labels`, in lower case, the form is only searched for around one of them, because it is common.
    """

    kind: str
    labels: tuple[str, ...]
    shapes: tuple[str, ...]
    pattern: re.Pattern[str]
    near: Any  # compiled by RE2, as it has many words
    other: Any
    is_code: Callable[[str], bool]


def find_code_forms(text: str, lowered: str, labels: Labels) -> Iterator[SecretSpan]:
    """Yield the codes of a text that their form, or their form and a word near them, reveals.

    `lowered` is the text in lower case, of the same length, and `labels` are the positions of those that it contains.
    """
    raw, position = text.encode("ascii", "replace"), 0
    while found := _CANDIDATE.search(raw, position):
        first, position = found.span()
        for rule in _OF_SHAPE[_to_shape(text[first:position])]:
            yield from _find_within(rule, text, lowered, first, position)
    for number in {number for label in labels for number in _USES.get(label, ())}:
        ends = sorted(end for label in CODE_FORMS[number].labels for end in labels.get(label, ()))
        for first, last in _merge_windows(ends):
            yield from _find_within(CODE_FORMS[number], text, lowered, first, last)


def _to_shape(candidate: str) -> str:
    """Return "number" or "code", in the plural if it has several groups."""
    return ("number" if candidate.upper() == candidate.lower() else "code") + "s" * (not candidate.isalnum())


def _find_within(rule: CodeForm, text: str, lowered: str, first: int, last: int) -> Iterator[SecretSpan]:
    for match in rule.pattern.finditer(text, first, last):
        if _is_apart(text, *match.span()) and rule.is_code(match[0]) and _is_meant(rule, lowered, *match.span()):
            yield SecretSpan(*match.span(), rule.kind)


def _merge_windows(ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text around labels that end at `ends`, in order, none of which overlap."""
    first, last = 0, 0
    for end in ends:
        if end - _WINDOW_CHARS > last:
            if last:
                yield first, last
            first = end - _WINDOW_CHARS
        last = end + _WINDOW_CHARS
    if last:
        yield first, last


def _is_apart(text: str, start: int, end: int) -> bool:
    """Return whether a code is not a part of a longer word or number."""
    before, after = text[start - 1 : start], text[end : end + 2]
    return not (before.isalnum() or before in tuple("-_/.@#")) and not (
        after[:1].isalnum() or after[:1] in tuple("-_/@") or re.match(r"[.,:]\d", after)
    )


def _is_meant(rule: CodeForm, lowered: str, start: int, end: int) -> bool:
    before = lowered[max(start - _BEFORE_CHARS, 0) : start]
    if rule.other.search(before[-_OTHER_CHARS:].rpartition("\n")[2]):
        return False
    return bool(rule.near.search(before) or rule.near.search(lowered[end : end + _AFTER_CHARS]))


def _count_mixed(value: str) -> int:
    """Return how many groups of a code have both letters and digits."""
    return sum(not group.isalpha() and not group.isdigit() for group in _GROUPS.findall(value))


def _has_mixed(value: str) -> bool:
    """Return whether one group has letters and digits, or three if spaces are between the groups."""
    return _count_mixed(value) >= (3 if " " in value else 1)


def _has_many_mixed(value: str) -> bool:
    return _count_mixed(value) > 2


_COMMON = re.compile(
    r"\b(?:this|that|with|from|have|they|will|your|when|what|been|more|some|time|into|only|over|such|then|them|were|also|each|than|most"
    r"|like|just|back|here|need|make|take|work|used|must|does|list|both|name|last|next|code|mail|user|file|text|data|test|page|line|type"
    r"|oder|wenn|dass|nach|auch|wird|sind|eine|noch|über|para|como|este|esta|pero|todo|pour|dans|avec|plus|tout|della|sono|come|voor)\b"
)


def _is_no_phrase(value: str) -> bool:
    """Return whether four groups of four letters are no words of a sentence, none of which is a common one."""
    return _COMMON.search(value) is None


def _is_word_list(value: str) -> bool:
    """Return whether words are as wallets show them: in lower case or all in capitals, and no dictionary."""
    words = re.findall(r"[^\W\d_]+", value)
    is_dictionary = words == sorted(words) and words[0][0] == words[-1][0]
    return (value.islower() or value.isupper()) and not is_dictionary


def _is_wallet(value: str) -> bool:
    """Return whether words are as many as a wallet has, and differ in their first four letters, as in BIP 39."""
    words = value.split()
    has_plurals = len(re.findall(r"[^aisu]s\b", value)) > 1  # BIP 39 has few
    is_whole = len(words) in (12, 15, 18, 21, 24) and len({word[:4] for word in words}) == len(words)
    return is_whole and not has_plurals and _is_no_phrase(value)


def _always(value: str) -> bool:
    return True


_TESTS = name_tests(globals())
CODE_FORMS: tuple[CodeForm, ...] = tuple(
    CodeForm(
        rule["kind"],
        tuple(rule["labels"].split("|")) if "labels" in rule else (),
        tuple(rule["shape"].split("|")) if "shape" in rule else (),
        re.compile(rf"(?<![^\W_])(?:{rule['form']})"),
        re2.compile(rule.get("near", "")),
        re2.compile(rf"(?:^|[^a-z])(?:{rule['other']})"),
        _TESTS[rule["test"]],
    )
    for rule in load_rules("code_forms.yaml")
)

_OF_SHAPE = {
    shape: [rule for rule in CODE_FORMS if shape in rule.shapes or (shape == "codes" and "numbers" in rule.shapes)]
    for shape in ("number", "numbers", "code", "codes")
}
_USES = index_labels([rule.labels for rule in CODE_FORMS])
