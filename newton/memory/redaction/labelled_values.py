"""Values that are secret because of the label before them, such as "password". Pure.

A label is plain text in lower case, and a pattern is matched only where a label ends. So the cost depends little on the
number of rules.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from newton.memory.redaction.rule_files import SecretRule, index_labels, load_secret_rules
from newton.memory.redaction.tally import SecretSpan

_ALTERNATION = re.compile(r"(?<=[A-Za-z])\d|(?<=\d)[A-Za-z]")
_SHORT_LABEL_CHARS = 4
_MIN_TOKEN_CHARS = 12
_MIN_PASSWORD_CHARS = 4
_MIN_QUOTED_CHARS = 6
_MIN_DIGITS = 6  # of a password without letters

_PLACEHOLDER = re.compile(
    r"[\[<{$%*•.]|!(?:vault|secret|ref|sub)\b|change.?me|your[ _-]|example|redacted|placeholder|x{3,}"
    r"|(?:self|this|os|process)\.|env\b|settings\.|config\.|args\.|(?:hidden|secret|password|passwd|dummy|none|null|nil|true|false|empty"
    r"|undefined|required|optional|string|bool|int|str|input)$|get[_A-Z(]",
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
_VARIABLE = re.compile(r"(?:\s{0,20}(?:export |set |ENV )?|(?:[^\n]{0,200}\s)?(?:-e|--env)\s)[A-Z][A-Z0-9_]{2,60}=$")
_MIN_SYMBOLS, _MANY_SYMBOLS = 3, 5
_PROGRAM = re.compile(r"[(){}=<>|]|[\w\]] = |;$|: (?:[A-Z]\w+){2}$")
UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")


Labels = Mapping[str, Sequence[int]]  # the positions at which each label in a text ends


def find_labels(text: str, lowered: str, labels: Iterable[str]) -> Labels:
    """Return for each label that is in the text the positions at which it ends, but not those within another word."""
    found: dict[str, list[int]] = {}
    for label in labels:
        position = lowered.find(label)
        while position >= 0:
            end = position + len(label)
            if is_label(text, lowered, position, end):
                found.setdefault(label, []).append(end)
            position = lowered.find(label, end)
    return found


def find_labelled_values(
    text: str, lowered: str, labels: Labels, *, keep_household: bool = False
) -> Iterator[SecretSpan]:
    """Yield the secrets that follow a label, such as "password: ".

    `lowered` is the text in lower case, of the same length, and `labels` are the positions of those that it contains.
    With `keep_household`, the password of a Wi-Fi in a sentence is not a secret.
    """
    for number, label in sorted((number, one) for one in labels for number in _USES.get(one, ())):
        rule, last = LABELLED_VALUES[number], 0
        for end in labels[label]:
            match = rule.pattern.match(text, end) if end - len(label) >= last else None
            is_kept = keep_household and _is_of_household(rule, lowered, end, match)
            if match and rule.is_secret(match) and not is_kept:
                last = match.end("value")
                yield SecretSpan(match.start("value"), last, rule.kind)


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
    if before == "/":
        return False
    is_long = end - start > _SHORT_LABEL_CHARS or not (lowered[start].isascii() and lowered[start].isalpha())
    is_hump = not is_long and text[start].isupper() and text[start - 1 : start].islower()  # "smtpPass"
    return is_long or is_hump or not (before.isascii() and before.isalpha())


def _is_of_household(rule: SecretRule, lowered: str, end: int, match: re.Match[str] | None) -> bool:
    """Return whether a sentence gives the password of a Wi-Fi, which people store to be reminded of it."""
    if match is None or rule.kind != "password" or "=" in match[0]:
        return False
    start = max(lowered.rfind("\n", 0, end) + 1, end - _HOUSEHOLD_CHARS)
    line = lowered[start : match.end()]
    return rule.is_secret in (_is_password, _is_phrase_password, _is_plain_word) and bool(_HOUSEHOLD.search(line))


def looks_random(text: str, *, alternations: int = 2) -> bool:
    """Return whether letters and digits alternate in the text, at least so many times, as they do in random tokens.

    >>> looks_random("sk-learn-issue-comment-12345"), looks_random("sk-4eC39HqLyjWDarjtT1zdp7dc")
    (False, True)
    """
    return len(_ALTERNATION.findall(text)) >= alternations


def is_placeholder(value: str) -> bool:
    """Return whether a value only stands for a secret, such as "changeme" or "${PASSWORD}"."""
    return bool(_PLACEHOLDER.match(value))


def is_literal(value: str) -> bool:
    """Return whether a value is neither a placeholder, such as "changeme", nor program code."""
    return not (is_placeholder(value) or _CODE.search(value))


def is_plain_term(value: str) -> bool:
    """Return whether a value with letters and digits is a term or a measure, such as "sha256" or "in-12"."""
    return bool(_KNOWN_NAMES.match(value))


def is_mixed(value: str) -> bool:
    """Return whether a value has letters and digits."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_mixed(value: str) -> bool:
    return is_mixed(value) and not is_plain_term(value)


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
    """Return whether the value that a sentence gives is a password: a word is one only in quotation marks."""
    value, quote = match["value"], match["quote"]
    if len(value) < _MIN_PASSWORD_CHARS or value.startswith("[") or not is_literal(value):
        return False
    is_quoted = quote not in ("", "`") and value.isalpha() and value.islower() and len(value) >= _MIN_QUOTED_CHARS
    is_told = is_quoted and match.string[match.start("quote") - 1].isspace()
    return is_told or _is_mixed(value) or (value.isdigit() and len(value) >= _MIN_DIGITS) or _has_inner_symbol(value)


def _is_plain_word(match: re.Match[str]) -> bool:
    """Return whether a word that ends a clause about a password is it: no part of program code."""
    start = match.string.rfind("\n", 0, match.start()) + 1
    line = match.string[start : match.end() + 20].partition("\n")[0]
    return not (_PROGRAM.search(line) or is_placeholder(match["value"]))


def _is_mixed_value(match: re.Match[str]) -> bool:
    value = match["value"]
    return len(value) >= _MIN_QUOTED_CHARS - 1 and is_literal(value) and _is_mixed(value)


def _is_strong(match: re.Match[str]) -> bool:
    """Return whether the value is a password wherever it stands: with a digit, and a capital or a symbol within."""
    value = match["value"]
    is_varied = any(map(str.isupper, value)) or _has_inner_symbol(value)
    return _is_mixed_value(match) and is_varied and not value.isupper()


def _is_reply(match: re.Match[str]) -> bool:
    """Return whether a line after one about a password is only the password: no code, and no path or address."""
    value = match["value"]
    is_word = not any(character in value for character in "=:/\\|(){}[]<>")
    return is_word and _is_mixed_value(match) and sum(map(str.isalpha, value)) > 2


_PAIR = re.compile(r"(?:[:,–→>]\s{1,3}|\s)(?:[\w.@+-]{2,40} ){1,3}/ $")


def _is_of_pair(match: re.Match[str]) -> bool:
    """Return whether the second of two words, as in ": anna / Sun&Moon7", is a password: with a symbol and a digit."""
    string, start = match.string, match.start()
    is_pair = _PAIR.search(string, max(string.rfind("\n", 0, start) + 1, start - 50), start)
    return bool(is_pair) and _is_strong(match) and _has_inner_symbol(match["value"]) and "=" not in match["value"]


def _is_token(match: re.Match[str]) -> bool:
    value = match["value"]
    return len(value) >= _MIN_TOKEN_CHARS and not _PLACEHOLDER.match(value) and looks_random(value)


def _is_session(match: re.Match[str]) -> bool:
    return _is_token(match) and not UUID.match(match["value"])


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


def _is_flag_value(match: re.Match[str]) -> bool:
    """Return whether the argument of a flag is a literal, and no path or other flag."""
    return _is_login(match) and is_literal(match["value"]) and not match["value"].startswith(("-", "/", "."))


def _is_strong_flag(match: re.Match[str]) -> bool:
    """Return whether the argument of a flag such as -p can only be a password: `-p 8080:80` is a port."""
    value = match["value"]
    has_symbol = any(not character.isalnum() and character not in "/:.,=-_" for character in value)
    has_capital, has_digit = any(map(str.isupper, value)), any(map(str.isdigit, value))
    return _is_flag_value(match) and ":" not in value and "/" not in value and has_digit + has_symbol + has_capital > 1


def _is_varied(match: re.Match[str]) -> bool:
    """Return whether a quoted text has letters, digits and symbols in turn, as a salt of a content system has them."""
    value = match["value"]
    symbols = sum(not character.isalnum() and character not in " -_/.:" for character in value)
    is_varied = symbols >= _MIN_SYMBOLS and any(map(str.isdigit, value))
    is_chaos = symbols >= _MANY_SYMBOLS and not any(character in " \\([{" for character in value)
    return (is_varied or is_chaos) and not is_placeholder(value)


def _has_digit(match: re.Match[str]) -> bool:
    return any(map(str.isdigit, match["value"]))


def _is_base32(match: re.Match[str]) -> bool:
    """Return whether the value mixes letters and digits in the way of base 32, in several groups or as a whole."""
    groups = match["value"].split()
    return sum(map(is_mixed, groups)) > (len(groups) > 1)


LABELLED_VALUES = load_secret_rules("labelled_values.yaml", globals())
_USES = index_labels([rule.labels for rule in LABELLED_VALUES])
