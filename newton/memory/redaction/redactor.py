"""Replacement of secrets in texts: credentials by their form, numbers with check digits, and labelled values.

Codes of a household are secrets, but people also store them to be reminded of them. The setting
`keep_household_codes` decides, and is read once at start.
"""

import re
from collections.abc import Iterator

import re2

from newton.memory.redaction.code_forms import CODE_FORMS, find_code_forms
from newton.memory.redaction.labelled_values import (
    LABELLED_VALUES,
    find_labelled_values,
    find_labels,
    looks_random,
)
from newton.memory.redaction.own_secrets import redact_own_secrets
from newton.memory.redaction.random_values import find_random_values
from newton.memory.redaction.rule_files import SecretRule, load_secret_rules
from newton.memory.redaction.tally import SecretSpan, current_tally, redact_spans, redaction_tally
from newton.memory.redaction.told_secrets import TOLD_SECRETS, find_told_secrets
from newton.text.encoded_parts import find_encoded_parts

# Quantifiers of these patterns are possessive and groups are atomic, so a search takes linear time. No group has a
# possessive quantifier: Python before 3.11.5 matches those wrongly.
SECRET_PATTERNS = load_secret_rules("secret_patterns.yaml", {}, flags=0)

_is_kept = True


def keep_household_codes(*, keep: bool) -> None:
    """Set whether this process stores codes of a household (of doors, safes and Wi-Fi) from now on, or redacts them."""
    global _is_kept  # noqa: PLW0603 - texts are redacted in places that know no settings
    _is_kept = keep


def are_kept() -> bool:
    """Return whether codes of a household are stored; if not, they are redacted."""
    return _is_kept


# The first character is matched by a set, which Python searches fast; what precedes it is checked afterwards.
_CARD = re.compile(r"[3-6](?<![\w.,+/-][3-6])\d{2,3}(?:[ -]?\d){10,14}(?![\w/]|[.,-]\d)")
_LONG_NUMBER = re2.compile(rb"[0-9](?:[ -]?[0-9]){11}|[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11}")
_CARD_RANGES = re.compile(
    r"4.{15}$|5[1-5].{14}$|2[2-7].{14}$|3[47].{13}$|6(?:011|5..|4[4-9].).{12}$|35.{14}$|3[068].{12}$"
)
_IBAN = re.compile(r"[A-Z](?<![A-Za-z0-9][A-Z])[A-Z]\d{2}(?:[ -]?[A-Z0-9]){11,30}")
_IBAN_LENGTHS = {  # ISO 13616
    country: int(length)
    for length, countries in re.findall(
        r"(\d\d) ([A-Z ]+)",
        "15 NO,16 BE,18 DK FI FO GL NL SD,19 MK SI,20 AT BA EE KZ LT LU XK,21 CH HR LI LV,"
        "22 BG BH CR DE GB GE IE ME RS VA,23 AE GI IL IQ OM SO TL,24 AD CZ ES MD PK RO SA SE SK TN VG,"
        "25 LY PT ST,26 IS TR,27 BI DJ FR GR IT MC MR SM,28 AL AZ BY CY DO GT HN HU LB NI PL SV,"
        "29 BR EG PS QA UA,30 JO KW MU YE,31 MT SC,32 LC,33 RU",
    )
    for country in countries.split()
}


def find_checked_numbers(text: str) -> Iterator[SecretSpan]:
    """Yield the numbers of payment cards and bank accounts in a text whose check digits are right."""
    if _LONG_NUMBER.search(text.encode("ascii", "replace")) is None:
        return
    for match in _CARD.finditer(text):
        digits = _without_gaps(match[0])
        if _CARD_RANGES.match(digits) and _has_luhn_digit(digits):
            yield SecretSpan(match.start(), match.end(), "payment-card")
    for match in _IBAN.finditer(text):
        if (end := _iban_end(match)) is not None:
            yield SecretSpan(match.start(), end, "iban")


def _iban_end(match: re.Match[str]) -> int | None:
    """Return the end of the account number in the match, which may include following words; None without a number."""
    left = _IBAN_LENGTHS.get(match[0][:2], 0)
    if not left:
        return None
    end = match.start()
    for character in match[0]:
        if not left:
            break
        left -= character not in " -"
        end += 1
    number = _without_gaps(match.string[match.start() : end])
    follows_letter = match.string[end : end + 1].isalnum()
    return end if not left and not follows_letter and _has_mod_97_digits(number) else None


def _has_luhn_digit(digits: str) -> bool:
    """Return whether the last digit is the check digit of a payment card (ISO/IEC 7812).

    >>> _has_luhn_digit("4111111111111111"), _has_luhn_digit("4111111111111112")
    (True, False)
    """
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(one - 9 if one > 9 else one for one in doubled)) % 10 == 0


def _has_mod_97_digits(number: str) -> bool:
    """Return whether the check digits of an IBAN are right (ISO 13616).

    >>> _has_mod_97_digits("DE89370400440532013000")
    True
    """
    return int("".join(str(int(character, 36)) for character in number[4:] + number[:4])) % 97 == 1


def _without_gaps(text: str) -> str:
    return text.replace(" ", "").replace("-", "")


_LABELS = frozenset(label for rule in (*LABELLED_VALUES, *TOLD_SECRETS, *CODE_FORMS) for label in rule.labels)
_HINTS = sorted({hint for secret in SECRET_PATTERNS for hint in secret.hints} | _LABELS)
_ALL_HINTS = frozenset(_HINTS)


def _compile_hints() -> re2.Set:
    compiled = re2.Set.SearchSet()
    for hint in _HINTS:
        compiled.Add(re2.escape(hint))
    compiled.Add("")  # found in each text, so finding nothing means that RE2 ran out of memory
    compiled.Compile()
    return compiled


_DIGIT = re.compile("[0-9]")
_MIN_ENCODED_CHARS = 24
# base64 or hexadecimal digits, also in pairs; with a digit, as names of programs seldom have one
_ENCODED = re2.compile(rb"[A-Za-z+/_-]{0,40}[0-9][A-Za-z0-9+/_-]{14,}={0,2}|(?:[0-9A-Fa-f]{2}[ :,]){12,}[0-9A-Fa-f]{2}")
_HINT_SET = _compile_hints()


def redact_secrets(text: str) -> str:
    """Return the text with secrets replaced by `[REDACTED:kind]`, and add them to the tally of the current call.

    >>> redact_secrets("use postgres://ana:hunter2@db/x, or my password hunter2")
    'use postgres://[REDACTED:url-password]@db/x, or my password [REDACTED:password]'
    """
    text = redact_own_secrets(text)
    lowered = _lower(text)
    hints = _find_hints(lowered)
    cleaned = text
    for secret in SECRET_PATTERNS:
        if not hints.isdisjoint(secret.hints):
            cleaned = _redact_pattern(secret, cleaned)
    lowered = lowered if cleaned is text else _lower(cleaned)
    keep_household, labels = are_kept(), find_labels(cleaned, lowered, hints & _LABELS)
    has_digit = _DIGIT.search(cleaned) is not None
    spans = [
        # first: of two equal spans, the one earlier in this list is replaced
        *(find_checked_numbers(cleaned) if has_digit else ()),
        *find_labelled_values(cleaned, lowered, labels, keep_household=keep_household),
        *find_told_secrets(cleaned, lowered, labels, keep_household=keep_household),
        *(find_random_values(cleaned, lowered, labels) if has_digit else ()),
        *find_code_forms(cleaned, lowered, labels),
    ]
    spans += _find_encoded(cleaned) if has_digit else ()
    return redact_spans(cleaned, spans) if spans else cleaned


def _find_encoded(text: str) -> Iterator[SecretSpan]:
    """Yield the encoded parts of a text in which a secret is."""
    raw, position = text.encode("ascii", "replace"), 0
    while match := _ENCODED.search(raw, position):
        first, position = match.span()
        for start, end, decoded in find_encoded_parts(text[first:position], min_chars=_MIN_ENCODED_CHARS):
            with redaction_tally() as tally:
                redact_secrets(decoded)
            if kinds := tally.count():
                yield SecretSpan(first + start, first + end, next(iter(kinds)))


def _find_hints(lowered: str) -> frozenset[str]:
    """Return the hints and labels of all patterns that the text contains, in one pass over it."""
    found = _HINT_SET.Match(lowered.encode("utf-8", "replace"))
    return frozenset(_HINTS[index] for index in found if index < len(_HINTS)) if found else _ALL_HINTS


def _lower(text: str) -> str:
    """Return the text in lower case and with the same length: İ alone has two characters in lower case."""
    return text.replace("İ", "I").lower()


def _redact_pattern(secret: SecretRule, text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        if secret.is_random and not looks_random(match[0]):
            return match[0]
        current_tally().add(secret.kind, match[0])
        return f"[REDACTED:{secret.kind}]"

    return secret.pattern.sub(replace, text)
