"""Values that are secret because of the label before them, such as "password". Pure.

A label is plain text in lower case, and a pattern is matched only where a label ends. So the cost depends little on the
number of rules.
"""

import base64
import binascii
import re
from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

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


def _rule(kind: str, labels: str, pattern: str, is_secret: Callable[[re.Match[str]], bool]) -> LabelledValue:
    return LabelledValue(kind, tuple(labels.split("|")), re.compile(pattern, re.IGNORECASE), is_secret)


# After a label: the rest of the identifier, "is" in several languages or an operator, and the opening quotation mark.
_REST = r"(?:[A-Za-z0-9_.\]-]{0,30})"
_OPERATOR = r"(?:\\{0,3}[\"'`]?\]?\s{0,4}(?:=>|:=|==?|:|：)\s{0,4})"
_IS = (
    r"(?:[ \t]{0,4}(?:=|:|：|\b(?:is|was|to|ist|lautet|war|est|es|era)\b|['’]s\b|, it(?: is|['’]s)\b"
    r"|é|è|是|为|為|は|은|는)[ \t]{0,4})"
)
_STILL = r"(?:(?:still|now|just|currently|always|actually|simply|noch|jetzt|immer noch|toujours)\s{1,2})?"
_OF = (
    r"(?:\s(?:for|of|to|on|für|fürs|vom|von|zum|du|de|pour|del|para|per|voor|do|от|для)\s[\w'’@+ .-]{1,40}?"
    r"|\s?\([^()\n]{1,30}\))?"
)
_WORD_VALUE = (
    r"(?P<quote>[\"'`«“„]?)(?P<value>[^\s\"'`<>«»“”„,;]{3,120}?)(?=[\"'`«»“”„,;<>)\]]|[.!?…]?(?:\s|$)|です|だ)"
)
_QUOTE = r"\\{0,3}[\"'`]?"
_TOKEN_VALUE = r"\\{0,3}[\"'`]?(?:s%3A|base64:)?(?P<value>[A-Za-z0-9+/=_.~%-]{12,400}+)(?![(\[])"

_PASSWORD_NOUNS = (
    "password|passwd|passphrase|passwort|kennwort|mot de passe|contraseña|senha|wachtwoord|hasło|пароль"
    "|mdp|clave|密码|密碼|パスワード|비밀번호|lösenord|salasana|şifre|heslo|jelszó"
)

LABELLED_VALUES: tuple[LabelledValue, ...] = (
    _rule(
        "password",
        f"{_PASSWORD_NOUNS}|pwd|psk",
        rf"{_REST}{_OPERATOR}(?:r|b|f)?\\{{0,3}}(?P<quote>[\"'`]?)(?P<value>[^\s\"'`<>,;&\\]{{3,200}})",
        _is_password,
    ),
    _rule("password", _PASSWORD_NOUNS, rf"{_OF}{_IS}{_STILL}{_WORD_VALUE}", _is_phrase_password),
    _rule(
        "password",
        f"{_PASSWORD_NOUNS}|--password=",
        rf"(?:\s{{1,3}}|(?<==)){_WORD_VALUE}",
        _is_mixed_value,
    ),
    _rule(
        "password",
        f"{_PASSWORD_NOUNS}|pwd|psk",
        rf"{_REST}{_OPERATOR}\\{{0,3}}(?P<quote>[\"'`])(?P<value>[^\"'`\n\\]{{6,200}})(?P=quote)",
        _is_password,
    ),
    _rule(
        "password", "pw|pwd|pass|passcode|bindpw|requirepass", rf"{_OF}{_IS}{_STILL}{_WORD_VALUE}", _is_phrase_password
    ),
    _rule("password", "requirepass |masterauth ", _WORD_VALUE, _is_mixed_value),
    _rule(
        "password",
        "creds|credentials|login|zugangsdaten|identifiants",
        rf"(?:[^\n:=]{{0,40}}[:=]\s{{0,2}}|\s(?:are|is|sind|sont|son)\s)[A-Za-z][\w.@-]{{0,60}}(?::|\s{{0,2}}[/|]\s{{0,2}}){_WORD_VALUE}",
        _is_mixed_value,
    ),
    _rule("password", "pass|pw", rf"\s{{0,2}}[:=]\s{{0,2}}{_WORD_VALUE}", _is_mixed_value),
    _rule("password", "<password>|<passwd>", r"(?P<value>[^<\s]{4,100})(?=</)", _is_mixed_value),
    _rule("password", "wifi:", r"[^\n]{0,80}?;P:(?P<value>[^;\n]{4,80});", _always),
    _rule("password", "sshpass ", r"\s{0,3}-p\s?['\"]?(?P<value>[^\s'\"]{3,80})", _is_login),
    _rule(
        "password",
        "mysql|mysqldump|mysqladmin|mariadb",
        r"\b[^\n|;]{0,120}?\s-p['\"]?(?P<value>[^\s'\"]{3,80})",
        _is_login,
    ),
    _rule("password", "redis-cli ", r"[^\n|;]{0,60}?-a\s['\"]?(?P<value>[^\s'\"]{6,80})", _is_mixed_value),
    _rule("password", "openssl ", r"[^\n|;]{0,60}?\s-k\s['\"]?(?P<value>[^\s'\"]{4,80})", _is_mixed_value),
    _rule(
        "password", "htpasswd ", r"[^\n|;]{0,20}?-\w{0,4}b\w{0,4}\s\S{1,80}\s\S{1,60}\s(?P<value>\S{4,80})", _is_login
    ),
    _rule("password", "echo ", r"\s{0,3}['\"]?(?P<value>[^\s'\"|]{4,80})['\"]?\s{0,3}\|\s{0,3}sudo\b", _is_login),
    _rule(
        "password",
        "echo ",
        r"\s{0,3}['\"]?[\w.-]{1,40}:(?P<value>[^\s'\"|]{4,80})['\"]?\s{0,3}\|\s{0,3}(?:sudo )?chpasswd\b",
        _is_login,
    ),
    _rule(
        "secret",
        "_secret=|_password=|_passphrase=",
        r"[\"']?(?P<value>[^\s\"'][^\n\"']{6,200}(?<!\s))",
        _is_of_environment,
    ),
    _rule("password", "net use ", r"[^\n]{0,120}?/user:\S{1,60}\s(?P<value>\S{4,80})", _is_login),
    _rule(
        "password",
        "curl |wget |http ",
        r"[^\n]{0,200}?(?<=\s)(?:-u|--user|--proxy-user)[ =]['\"]?[\w.@-]{1,60}:(?P<value>[^\s'\"]{3,120})",
        _is_login,
    ),
    _rule(
        "api-key",
        "api_key|api-key|apikey|api key|access_key|access-key|accesskey|access key|auth_key|auth key|private_key"
        "|privatekey|private key|presharedkey"
        "|encryption_key|signing_key|account_key|account key|storage_key|secret_key|secret-key|secretkey|secret key"
        "|schlüssel|clé api|app_key|license_key",
        rf"{_REST}(?:[A-Za-z]{{0,3}}{_OF}(?:{_OPERATOR}|{_IS})|\s){_STILL}{_TOKEN_VALUE}",
        _is_token,
    ),
    _rule("api-key", "key for |schlüssel für |clé pour ", rf"[\w .-]{{1,40}}?{_IS}{_TOKEN_VALUE}", _is_token),
    _rule(
        "token",
        "token|credential|jeton",
        rf"{_REST}(?:{_OF}(?:{_OPERATOR}|{_IS})){_STILL}{_TOKEN_VALUE}",
        _is_session,
    ),
    _rule("token", "--token |--api-token |--access-token |--auth-token |--secret ", _TOKEN_VALUE, _is_token),
    _rule("token", "token ", _TOKEN_VALUE, _is_bare_token),
    _rule(
        "aws-secret",
        "aws|akia",
        r"[^\n]{0,80}?(?<![\w/+.=-])(?P<value>(?=[^\n]{0,39}[a-z])(?=[^\n]{0,39}[A-Z])[A-Za-z0-9/+]{40})(?![\w/+=-])",
        _is_bare_token,
    ),
    _rule(
        "recovery-code",
        "backup codes|recovery codes|rescue codes|backup-codes|wiederherstellungscodes|codes de secours",
        r"[^\n:]{0,40}:\s{0,3}(?P<value>\d{4}[ -]?\d{4}(?:[,;]?\s{1,2}\d{4}[ -]?\d{4}){0,15})(?![\w-])",
        _always,
    ),
    _rule("private-key", "bitcoin|btc|wif", r"\b[^\n]{0,30}?\b(?P<value>[5KL][1-9A-HJ-NP-Za-km-z]{50,51})\b", _always),
    _rule("secret", "secret|mnemonic", rf"{_REST}(?:{_OF}(?:{_OPERATOR}|{_IS})){_STILL}{_TOKEN_VALUE}", _is_token),
    _rule(
        "token",
        "authorization: token |authorization: |x-auth-token: ",
        r"(?P<value>[A-Za-z0-9_.+/=-]{20,400})",
        _is_token,
    ),
    _rule("basic-auth", '"auth"', r"\s{0,3}:\s{0,3}\"(?P<value>[A-Za-z0-9+/]{6,200}={0,2})\"", _is_basic),
    _rule(
        "session-cookie",
        "sessionid=|session=|phpsessid=|jsessionid=|connect.sid=|sessid=|asp.net_sessionid=",
        _TOKEN_VALUE,
        _is_session,
    ),
    _rule("azure-signature", "&sig=|?sig=", r"(?P<value>[A-Za-z0-9%+/=]{20,120})", _always),
    _rule("one-time-secret", "otpauth://", r"[^\s]{0,120}?secret=(?P<value>[A-Za-z2-7]{16,128})", _always),
    _rule(
        "one-time-secret", "totp|2fa|mfa", rf"[ _-](?:secret|seed|key){_IS}(?P<value>[A-Za-z2-7]{{16,128}})", _always
    ),
    _rule(
        "recovery-code",
        "recovery code|backup code|wiederherstellungscode|recovery-code",
        rf"s?(?:{_IS}|\s)(?P<value>(?:[a-z0-9]{{4,6}}-[a-z0-9]{{4,6}}[, ]{{0,2}}){{1,16}})",
        _is_mixed_value,
    ),
    _rule(
        "one-time-code",
        "verification code|login code|security code|confirmation code|one-time password|one-time code|one-time passcode"
        "|bestätigungscode|otp|authentication code|your code|code de vérification|código de verificación",
        rf"(?:\b{_IS}|{_OPERATOR}{_QUOTE})(?P<value>\d{{4,8}})\b",
        _always,
    ),
    _rule(
        "pin",
        "pin|pin code|geheimzahl|code pin|unlock code|passcode",
        rf"(?:\b{_OF}{_IS}|{_OPERATOR}{_QUOTE})(?P<value>\d{{4,8}})\b",
        _always,
    ),
    _rule(
        "card-code",
        "cvv|cvc|cvv2|cvc2",
        rf"(?:\b\s{{0,2}}(?:is|:|=)?\s{{0,2}}|{_OPERATOR}{_QUOTE})(?P<value>\d{{3,4}})\b",
        _always,
    ),
    _rule(
        "social-security-number",
        "ssn|social security number|social security no",
        r"\b[^\d\n]{0,20}(?P<value>\d{3}[- ]?\d{2}[- ]?\d{4})\b",
        _always,
    ),
    _rule(
        "seed-phrase",
        "seed phrase|recovery phrase|seed words|mnemonic|wallet seed|wallet's seed|seed-phrase|secret phrase",
        rf"(?:{_IS}|{_OPERATOR})[\"'`]?(?P<value>(?:[a-z]{{3,8}}[ ,]{{1,2}}){{11,23}}[a-z]{{3,8}})\b",
        _always,
    ),
)
