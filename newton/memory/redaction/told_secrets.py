"""Detection of secrets stated in a sentence: a label such as "PIN" or "Passwort", some words, the value. Pure.

Other words may stand between label and value ("the password of the old router is still ..."), so each value in the rest
of the sentence is judged by its form.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from newton.memory.redaction.labelled_values import Labels, is_placeholder, is_plain_term
from newton.memory.redaction.rule_files import MAX_DISTANCE, index_labels, load_parts, load_secret_rules
from newton.memory.redaction.tally import SecretSpan

MAX_VALUE_CHARS = 60
_LEAD_CHARS = 30
_WORDS = {name: re.compile(words) for name, words in load_parts("told_secrets.yaml", "words").items()}
_SENTENCE_END = re.compile(r"\n|(?<!\b[Nn][ro])[.!](?=\s+[A-ZА-ЯÀ-Þ])")


class ToldValue(NamedTuple):
    """A value in a sentence: `before` is the text before the label, `between` that from the label to the value.

    `lead` and `after` are what stands right before and after the value.
    """

    value: str
    before: str
    between: str
    lead: str
    after: str


def find_told_secrets(text: str, lowered: str, labels: Labels, *, keep_household: bool = False) -> Iterator[SecretSpan]:
    """Yield the secrets that are told in sentences, such as "the PIN of the door is 4711".

    `lowered` is the text in lower case, of the same length, and `labels` are the positions of those that it contains.
    With `keep_household`, codes of doors, alarms and the like, and passwords of a Wi-Fi, are left out.
    """
    found = list[tuple[int, SecretSpan]]()
    for label, ends in labels.items():
        numbers = [one for one in _USES.get(label, ()) if not (keep_household and TOLD_SECRETS[one].is_household)]
        for end in ends if numbers else ():
            if not label[-1].isalpha() or _ENDING.match(lowered, end):
                found += _find_near(text, lowered, label, end, numbers, keep_wifi=keep_household)
    return (span for _, span in sorted(found))


def _find_near(
    text: str, lowered: str, label: str, end: int, numbers: Sequence[int], *, keep_wifi: bool
) -> Iterator[tuple[int, SecretSpan]]:
    """Yield the secrets in the sentence of a label that ends at `end`, each with the number of its rule."""
    sentence_end = _SENTENCE_END.search(text, end, end + MAX_DISTANCE)
    stop = sentence_end.start() if sentence_end else min(len(text), end + MAX_DISTANCE + MAX_VALUE_CHARS)
    line_end = text.find("\n", end, end + MAX_DISTANCE + MAX_VALUE_CHARS)
    line_end = line_end if line_end >= 0 else end + MAX_DISTANCE + MAX_VALUE_CHARS
    position = end - len(label)
    first = max(text.rfind("\n", 0, position) + 1, position - MAX_DISTANCE)
    before = lowered[first:position]
    is_plain = _NO_PLAIN_WORD.search(text, first, max(stop, line_end)) is None
    for number in numbers:
        rule = TOLD_SECRETS[number]
        needs_digit = rule.is_secret not in _OF_WORDS  # or a symbol
        if is_plain and needs_digit:
            continue
        last = line_end if rule.crosses else stop
        for match in rule.pattern.finditer(text, first if rule.looks_back else end, last):
            if needs_digit and match["value"].isalpha():  # first, as it is cheap and true for most words
                continue
            candidate = _to_told_value(match, lowered, before, end)
            is_kept = keep_wifi and _WORDS["wifi"].search(f"{before}{label}{candidate.between}")
            if len(candidate.between) <= rule.distance and rule.is_secret(candidate) and not is_kept:
                yield number, SecretSpan(match.start("value"), match.end("value"), rule.kind)


def _to_told_value(match: re.Match[str], lowered: str, before: str, end: int) -> ToldValue:
    start, stop = match.span("value")
    lead = lowered[max(start - _LEAD_CHARS, 0) : start].rpartition("\n")[2]
    return ToldValue(match["value"], before, lowered[end:start], lead, lowered[stop : stop + 20])


# What may follow a label: the end of the word, or a short ending of it.
_ENDING = re.compile(
    r"(?:s|es|m|im|n|et|en|(?<=[a-zà-ž]{5})(?:ni|i|ei|a|u|y|ul|at|ı|si|sı|in|ın|nin)|s?(?:nummer|nr)|у|а|ом|ы)?(?![a-z0-9_@а-я])"
    r"|(?<=[^\x00-\xff])"
)

_ADDRESS = re.compile(
    r"^AAAA[A-Z]3Nza|\w[\w.+-]*@[\w-]+\.\w|\w+://|^[/~]|^\d+/|\\|^\w+\.(?:py|js|ts|txt|md|html?|ya?ml|json|toml|exe|com|org|net|sql|sh)\b",
    re.IGNORECASE,
)
_CODE_PATH = re.compile(r"[a-z_]\w*(?:\.[A-Za-z_]\w*)+$")  # settings.db_password
_SYMBOL = re.compile(r"[^\W_][!#%^&*+~$|]|[!#%^&*$][^\W\d_]|[^\W_][.@][A-Z\d]")
_NO_PLAIN_WORD = re.compile(rf"\d|{_SYMBOL.pattern}")  # without one of these, most kinds of secrets cannot be there
_STRONG_SYMBOL = re.compile(r"[^\W_][!#%^&*~$][^\W_]|\w[!#%^*$]$")
_MEASURE = re.compile(r"\d+(?:[.,:]\d+)*-?[a-z]{1,6}$|[a-z]+-?\d{1,2}$|v\d[\d.]*$", re.IGNORECASE)


def _is_password(candidate: ToldValue) -> bool:
    """Return whether a word after a linking word can only be a password: letters with digits, or symbols within."""
    value = candidate.value
    if value.rstrip("!?").isalpha():
        return False
    if is_placeholder(value) or is_plain_term(value) or _ADDRESS.search(value) or _CODE_PATH.match(value):
        return False
    if not any(map(str.isalpha, value)) or re.match(r"\d+[\u3040-\u9fff]", value):
        return False
    has_digit = any(map(str.isdigit, value))
    return bool(_SYMBOL.search(value)) or (has_digit and (len(value) > 6 or not _MEASURE.match(value)))


def _is_strong_password(candidate: ToldValue) -> bool:
    """Return whether a word is a password even without a linking word: it has capitals, or symbols, and digits."""
    value = candidate.value
    if not _is_password(candidate) or _MEASURE.match(value):
        return False
    is_varied = any(map(str.isupper, value[1:])) or bool(_STRONG_SYMBOL.search(value)) or value[:1].isupper()
    return (any(map(str.isdigit, value)) and is_varied) or bool(_STRONG_SYMBOL.search(value))


def _is_wifi_password(candidate: ToldValue) -> bool:
    """Return whether the value is the key of a Wi-Fi, as a word before or after the label says."""
    return _is_password(candidate) and bool(_WORDS["key_word"].search(f"{candidate.before[-20:]} {candidate.between}"))


def _is_quoted_secret(candidate: ToldValue) -> bool:
    """Return whether an assignment gives a literal, and no placeholder, path or address."""
    value = candidate.value
    return not (is_placeholder(value) or _ADDRESS.search(value) or _CODE_PATH.match(value)) and any(
        map(str.isalpha, value)
    )


def _is_unmistakable_password(candidate: ToldValue) -> bool:
    """Return whether a word of a line about passwords is one: a symbol within a word, or a capital and two digits."""
    value = candidate.value
    if not _is_password(candidate) or _NAME_WITH_NUMBER.match(value):
        return False
    value += "!" * candidate.after.startswith("!")
    return bool(_WITHIN.search(value)) or bool(_CAPITAL_AND_DIGITS.match(value))


_WITHIN = re.compile(r"[^\W\d_][\w.-]*[!#%^&*$@~+][\w.-]*[!?]?$")
_CAPITAL_AND_DIGITS = re.compile(
    r"(?=.*[a-zà-ÿа-я]{3})[A-ZÀ-ÞА-Я][^\W\d_-]{3,}(?:[_-]\d{1,4}|\d{2,4}[a-zà-ÿ]{0,10}|-[A-ZÀ-ÞА-Я]\w+-?\d+)$"
)
_NAME_WITH_NUMBER = re.compile(
    r"[=:/\\]|[A-Z]{2,}-?\d|[A-Z]&[A-Z]\b|\w+@\w+\.\w|(?:Python|Windows|Ubuntu|Debian|Level|Room|Team|Player|User|Node)\d"
)

_IN_CODE = re.compile(r"[(\[{]$|[(){}<>=\[\]]\s?\S|[\"'],")
_OTHER_NUMBER = re.compile(r"\s?(?:no\.?\s|nr\.?\s|#)?[a-z]?\d{1,3}\b(?!\s(?:my|the|ur|your|u|me)\b)")


def _is_code(candidate: ToldValue) -> bool:
    """Return whether a number after "PIN" and the like is the code, and no measure or year."""
    digits = sum(map(str.isdigit, candidate.value))
    is_short = digits <= 10 and (len(candidate.value) > 4 or candidate.value.isdigit())
    return is_short and not (
        _OTHER_NUMBER.match(candidate.between)
        or _IN_CODE.search(candidate.between)
        or _WORDS["no_link"].search(candidate.between)
        or _WORDS["unit"].match(candidate.after)
    )


def _is_code_of_lock(candidate: ToldValue) -> bool:
    """Return whether "code" means that of a lock or a card, as a word near it says."""
    if _WORDS["no_code"].search(candidate.before) or _WORDS["no_code"].search(candidate.between[:14]):
        return False
    return bool(_WORDS["lock_words"].search(f"{candidate.before[-40:]} {candidate.between}")) and _is_code(candidate)


_YEAR = re.compile(r"(?:19[3-9]|20[0-4])\d$")


def _is_number(candidate: ToldValue) -> bool:
    """Return whether digits are none of a date, a measure, a price, a room and the like."""
    value = candidate.value.strip("*# ")
    return not (
        (_YEAR.match(candidate.value) and not _WORDS["entered"].search(candidate.lead))
        or _WORDS["plain_number"].search(candidate.lead)
        or _WORDS["unit"].match(candidate.after)
        or _PHONE.match(candidate.after)
        or (len(value) == _SHORTEST and value[0] != "0" and _WORDS["counted"].match(candidate.after))
        or sum(map(str.isdigit, value)) > _MAX_DIGITS
    )


_PHONE = re.compile(r"\)?[ -]{1,2}\d{3}")  # goes on
_SHORTEST, _MAX_DIGITS = 3, 8


def _is_spelled(candidate: ToldValue) -> bool:
    """Return whether a clause says how a password is written, and not how any has to be."""
    return not _WORDS["policy"].search(f"{candidate.before} {candidate.between} {candidate.value.lower()}")


def _is_id(candidate: ToldValue) -> bool:
    digits, letters = sum(map(str.isdigit, candidate.value)), sum(map(str.isalpha, candidate.value))
    return (digits >= 5 or (digits > 1 and letters > 0 and digits + letters > 6)) and not _WORDS["no_link"].search(
        candidate.between
    )


def _is_spaced(candidate: ToldValue) -> bool:
    """Return whether a quoted text of several words is a password: a slogan has no digit."""
    return " " in candidate.value and any(map(str.isdigit, candidate.value)) and not is_placeholder(candidate.value)


def _is_id_or_code(candidate: ToldValue) -> bool:
    return any(map(str.isdigit, candidate.value)) and not _WORDS["unit"].match(candidate.after)


def _always(candidate: ToldValue) -> bool:
    return True


_OF_WORDS = (_always, _is_quoted_secret, _is_spelled)  # the tests that a value of letters can pass
TOLD_SECRETS = load_secret_rules("told_secrets.yaml", globals())
_USES = index_labels([rule.labels for rule in TOLD_SECRETS])
