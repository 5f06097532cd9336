"""Values that are secret because of the label before them, such as "password". Pure.

A label is plain text in lower case, and a pattern is matched only where a label ends. So the cost depends little on the
number of rules.
"""

import base64
import binascii
import re
from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

from newton.memory.redaction.rule_files import load_rules

_ALTERNATION = re.compile(r"(?<=[A-Za-z])\d|(?<=\d)[A-Za-z]")
_MIN_ALTERNATIONS = 2
_SHORT_LABEL_CHARS = 4
_MIN_TOKEN_CHARS = 12
_MIN_PASSWORD_CHARS = 4
_MIN_BARE_CHARS = 16
_MIN_QUOTED_CHARS = 6
_MIN_DIGITS = 6  # of a password without letters

_PLACEHOLDER = re.compile(
    r"[\[<{$%*•.]|change.?me|your[ _-]|example|redacted|placeholder|x{3,}|self\.|this\.|os\.|process\.|env\b|settings\."
    r"|config\.|args\.|(?:hidden|secret|password|passwd|dummy|none|null|nil|true|false|empty|undefined|required|optional|string|bool|int"
    r"|str|input)$|get[_A-Z(]",
    re.IGNORECASE,
)
_CODE = re.compile(r"[(\[{]|[A-Za-z_]\w*\.[A-Za-z_]\w*(?:\.\w+)*$|/(?:run|etc|home|var|usr|work|tmp|dev)/|[A-Za-z]:\\")
# Terms, measures, and at the end chords, such as "E-F#-G#-A".
_KNOWN_NAMES = re.compile(
    r"(?:argon2\w*|bcrypt|scrypt|sha-?\d+|sha\d-\d+|md5|base(?:32|58|64)|oauth2?|http2?|utf-?8|pbkdf2\w*|v\d[\d.]*"
    r"|\d+(?:st|nd|rd|th|px|ms|min|kb|mb|gb|s|h|d|x|%)|(?:in|to|from|of|for|by|at)-\w+"
    r"|(?-i:[A-H](?:[#b♯♭]|is|es)?(?:m|maj|min|dim|sus|add)?(?:[24679]|1[13])?(?:[-–/|](?!$)|$)){2,12})$",
    re.IGNORECASE,
)
# Labels of languages without compounds that are parts of other words: "Autoclave", "conclave", "clavecin", "desenha".
_WHOLE_WORDS = frozenset({"clave", "senha", "parola", "hasło", "heslo", "şifre", "jeton"})
_HOUSEHOLD = re.compile(r"\bwi-?fi\b|\bwlan\b|\bguest network\b|\bhotspot\b")
_HOUSEHOLD_CHARS = 60
_HEX = re.compile(r"[0-9A-Fa-f-]+$")
_VARIABLE = re.compile(r"\s{0,20}(?:export |set |ENV )?[A-Z][A-Z0-9_]{2,60}=$")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")


class LabelledValue(NamedTuple):
    """A kind of secret that follows a label, such as "password".

    `labels` are in lower case. `pattern` is matched at the end of a label; its group "value" is the secret. `is_secret`
    returns whether the value can be one, because words, placeholders and code may follow a label too.
    """

    kind: str
    labels: tuple[str, ...]
    pattern: re.Pattern[str]
    is_secret: Callable[[re.Match[str]], bool]


class SecretSpan(NamedTuple):
    """The position of a secret in a text."""

    start: int
    end: int
    kind: str


def find_labelled_values(
    text: str, lowered: str, labels: Container[str], *, keep_household: bool = False
) -> Iterator[SecretSpan]:
    """Yield the secrets that follow a label, such as "password: ".

    `lowered` is the text in lower case, of the same length, and `labels` are those that it contains. With
    `keep_household`, the password of a Wi-Fi in a sentence is not a secret.
    """
    for rule in LABELLED_VALUES:
        for label in rule.labels:
            if label in labels:
                yield from _find_after_label(rule, label, text, lowered, keep_household=keep_household)


def _find_after_label(
    rule: LabelledValue, label: str, text: str, lowered: str, *, keep_household: bool
) -> Iterator[SecretSpan]:
    position = lowered.find(label)
    while position >= 0:
        end = position + len(label)
        match = rule.pattern.match(text, end) if is_label(text, lowered, position, end) else None
        is_kept = keep_household and _is_of_household(rule, lowered, end, match)
        if match and rule.is_secret(match) and not is_kept:
            yield SecretSpan(match.start("value"), match.end("value"), rule.kind)
            end = match.end("value")
        position = lowered.find(label, end)


def is_label(text: str, lowered: str, start: int, end: int) -> bool:
    """Return whether a label is not just a part of a longer word, such as "pin" in "spin" or "clave" in "autoclave".

    A long label may end a compound word: "WLAN-Passwort", "Masterpassword" and "dbPassword" are labels.
    """
    before = lowered[start - 1 : start]
    if lowered[start:end] in _WHOLE_WORDS:
        begins = not before.isalpha() or (text[start - 1].islower() and text[start].isupper())
        after = text[end : end + 1]
        ends = not after.isalpha() or after == "s" or (text[end - 1].islower() and after.isupper())
        return begins and ends
    is_long = end - start > _SHORT_LABEL_CHARS or not (lowered[start].isascii() and lowered[start].isalpha())
    return before != "/" and (is_long or not (before.isascii() and before.isalpha()))


def _is_of_household(rule: LabelledValue, lowered: str, end: int, match: re.Match[str] | None) -> bool:
    """Return whether a sentence gives the password of a Wi-Fi, which people store to be reminded of it."""
    if match is None or rule.kind != "password" or "=" in match[0]:
        return False
    start = max(lowered.rfind("\n", 0, end) + 1, end - _HOUSEHOLD_CHARS)
    line = lowered[start : match.end()]
    return rule.is_secret in (_is_password, _is_phrase_password) and bool(_HOUSEHOLD.search(line))


def looks_random(text: str) -> bool:
    """Return whether letters and digits alternate in the text as they do in random tokens.

    >>> looks_random("sk-learn-issue-comment-12345"), looks_random("sk-4eC39HqLyjWDarjtT1zdp7dc")
    (False, True)
    """
    return sum(1 for _ in _ALTERNATION.finditer(text)) >= _MIN_ALTERNATIONS


def is_placeholder(value: str) -> bool:
    """Return whether a value only stands for a secret, such as "changeme" or "${PASSWORD}"."""
    return bool(_PLACEHOLDER.match(value))


def is_literal(value: str) -> bool:
    """Return whether a value is neither a placeholder, such as "changeme", nor program code."""
    return not (is_placeholder(value) or _CODE.search(value))


def is_plain_term(value: str) -> bool:
    """Return whether a value with letters and digits is a term or a measure, such as "sha256" or "in-12"."""
    return bool(_KNOWN_NAMES.match(value))


def _is_mixed(value: str) -> bool:
    has_letter, has_digit = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    return has_letter and has_digit and not is_plain_term(value)


def _is_password(match: re.Match[str]) -> bool:
    """Return whether the value after an operator or in quotation marks is a password."""
    value, quoted = match["value"], bool(match["quote"])
    if len(value) < _MIN_PASSWORD_CHARS or value.startswith("["):
        return False
    if quoted and not _PLACEHOLDER.match(value) and len(value) >= _MIN_QUOTED_CHARS:
        return " " not in value or _is_mixed(value)
    if not is_literal(value):
        return False
    return _is_mixed(value) or (value.isdigit() and len(value) >= _MIN_DIGITS) or _has_inner_symbol(value)


def _has_inner_symbol(value: str) -> bool:
    return any(symbol in value[:-1] for symbol in "!#%^&*@+~?=") and any(map(str.isalpha, value))


def _is_phrase_password(match: re.Match[str]) -> bool:
    """Return whether the value that a sentence gives is a password: words alone are none."""
    value = match["value"]
    if len(value) < _MIN_PASSWORD_CHARS or value.startswith("[") or not is_literal(value):
        return False
    return _is_mixed(value) or (value.isdigit() and len(value) >= _MIN_DIGITS) or _has_inner_symbol(value)


def _is_mixed_value(match: re.Match[str]) -> bool:
    value = match["value"]
    return len(value) >= _MIN_QUOTED_CHARS - 1 and is_literal(value) and _is_mixed(value)


def _is_token(match: re.Match[str]) -> bool:
    value = match["value"]
    return len(value) >= _MIN_TOKEN_CHARS and not _PLACEHOLDER.match(value) and looks_random(value)


def _is_session(match: re.Match[str]) -> bool:
    return _is_token(match) and not _UUID.match(match["value"])


def _is_bare_token(match: re.Match[str]) -> bool:
    """Return whether a value right after the label is a token: a hash or an id may follow the label in a log."""
    return len(match["value"]) >= _MIN_BARE_CHARS and _is_token(match) and not _HEX.match(match["value"])


def _is_of_environment(match: re.Match[str]) -> bool:
    """Return whether the value is assigned as in an environment file: to a name in capitals that starts the line."""
    line_start = match.string.rfind("\n", 0, match.start()) + 1
    name = _VARIABLE.match(match.string, line_start, match.start())
    return bool(name) and is_literal(match["value"])


def _is_login(match: re.Match[str]) -> bool:
    value = match["value"]
    return not value.startswith(("$", "<", "{", "[", "%")) and not value.isdigit()


def _is_basic(match: re.Match[str]) -> bool:
    try:
        decoded = base64.b64decode(match["value"] + "=" * (-len(match["value"]) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    return ":" in decoded and decoded.isprintable()


def _always(match: re.Match[str]) -> bool:
    return True


_TESTS: dict[str, Callable[[re.Match[str]], bool]] = {
    "always": _always,
    "bare_token": _is_bare_token,
    "basic": _is_basic,
    "login": _is_login,
    "mixed_value": _is_mixed_value,
    "of_environment": _is_of_environment,
    "password": _is_password,
    "phrase_password": _is_phrase_password,
    "session": _is_session,
    "token": _is_token,
}

LABELLED_VALUES: tuple[LabelledValue, ...] = tuple(
    LabelledValue(
        rule["kind"],
        tuple(rule["labels"].split("|")),
        re.compile(rule["pattern"], re.IGNORECASE),
        _TESTS[rule["test"]],
    )
    for rule in load_rules("labelled_values.yaml")
)
