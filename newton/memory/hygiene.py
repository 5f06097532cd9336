"""Validation of texts, names and times, and redaction of secrets. Pure."""

import re
import unicodedata
from datetime import datetime
from typing import NamedTuple

from newton.errors import InputError

MAX_CHARACTERS = 1_000_000
MAX_MESSAGE_CHARACTERS = 10_000_000  # of one message: tool output may be long
MAX_NAME_CHARACTERS = 200

# Persian and emoji contain joiners, which str.isprintable() rejects.
_ZERO_WIDTH_JOINERS = "\u200c\u200d"


class SecretPattern(NamedTuple):
    """The pattern of one kind of credential. A match is replaced as a whole.

    A text is searched only if it contains one of the lower-case `hints`. With `must_look_random`, a match must also
    look like random characters, because ordinary words match too. Quantifiers are possessive and groups are atomic,
    so a search takes linear time. No group has a possessive quantifier: Python before 3.11.5 matches those wrongly.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    must_look_random: bool


def _secret(kind: str, hints: str, pattern: str, *, random: bool = False) -> SecretPattern:
    return SecretPattern(kind, tuple(hints.split()), re.compile(pattern), random)


_PRIVATE_KEY_LABEL = r"(?:[A-Z0-9]{1,20}+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"

SECRET_PATTERNS: tuple[SecretPattern, ...] = (
    _secret(
        "private-key",
        "-----begin",
        # to its end marker; a truncated key up to its last line
        rf"-----BEGIN {_PRIVATE_KEY_LABEL}(?:(?>(?:[^-]+|-(?!----))*)-----END {_PRIVATE_KEY_LABEL}"
        r"|(?>(?:\s*[A-Za-z0-9+/=]{40,})+))",
    ),
    _secret("age-key", "age-secret-key-1", r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b"),
    _secret("aws-key", "akia asia abia acca", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    _secret(
        "aws-secret",
        "aws_secret aws-secret awssecret secretaccesskey",
        r"(?i:\b(?:aws[_-]?secret[_-]?(?:access[_-]?)?key|secretaccesskey)[\"']?\s{0,9}[=:]\s{0,9}[\"']?)"
        r"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])",
    ),
    _secret("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_[A-Za-z0-9]{36,}+"),
    _secret("github-token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{22,}+"),
    _secret("gitlab-token", "gl", r"\bgl(?:pat|dt|rt|ft|soat|cbt|ptt|oas|agent|imt)-[A-Za-z0-9_-]{20,}+"),
    _secret("api-key", "sk-", r"(?<![A-Za-z0-9_-])sk-[A-Za-z0-9_-]{20,}+", random=True),
    _secret("groq-key", "gsk_", r"\bgsk_[A-Za-z0-9]{40,}+"),
    _secret("huggingface-token", "hf_", r"\bhf_[A-Za-z0-9]{30,}+"),
    _secret("slack-token", "xox", r"\bxox[abceprs]-[A-Za-z0-9-]{10,}+"),
    _secret("slack-token", "xapp-", r"\bxapp-\d-[A-Za-z0-9-]{20,}+"),
    _secret("slack-webhook", "hooks.slack.com/", r"\bhooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/_-]{20,}+"),
    _secret("discord-webhook", "/api/webhooks/", r"\bdiscord(?:app)?\.com/api/webhooks/\d{15,25}+/[A-Za-z0-9_-]{40,}+"),
    _secret("telegram-token", ":aa", r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    _secret("google-key", "aiza", r"\bAIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
    _secret("google-secret", "gocspx-", r"\bGOCSPX-[0-9A-Za-z_-]{24,}+"),
    _secret("google-token", "ya29.", r"\bya29\.[0-9A-Za-z._-]{30,}+"),
    _secret("azure-key", "accountkey accesskey", r"\b(?:Account|SharedAccess)Key=[A-Za-z0-9+/]{40,}+={0,2}"),
    _secret("azure-secret", "8q~", r"(?<![\w~.-])[\w~.-]{3}8Q~[\w~.-]{31,37}(?![\w~.-])"),
    _secret("digitalocean-token", "_v1_", r"\bdo[opr]_v1_[0-9a-f]{64}\b"),
    _secret("databricks-token", "dapi", r"\bdapi[0-9a-f]{32}\b"),
    _secret("vault-token", "hvs. hvb. hvr.", r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}+"),
    _secret("docker-token", "dckr_", r"\bdckr_[a-z]{3}_[A-Za-z0-9_-]{24,}+"),
    _secret("npm-token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    _secret("pypi-token", "pypi-ag", r"\bpypi-Ag[A-Za-z0-9_-]{50,}+"),
    _secret("stripe-key", "k_live_ k_test_", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}+"),
    _secret("shopify-token", "shp", r"\bshp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}\b"),
    _secret("sendgrid-key", "sg.", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    _secret("twilio-key", "sk", r"\bSK[0-9a-f]{32}\b"),
    _secret("grafana-token", "glsa_", r"\bglsa_[A-Za-z0-9]{32}_[0-9a-f]{8}\b"),
    _secret("sentry-token", "sntry", r"\bsntry[us]_[A-Za-z0-9+/=_-]{40,}+"),
    _secret("notion-token", "ntn_ secret_", r"\b(?:ntn_[A-Za-z0-9]{40,}+|secret_[A-Za-z0-9]{43}\b)"),
    _secret("atlassian-token", "atatt3", r"\bATATT3[A-Za-z0-9_=-]{100,}+"),
    _secret("jwt", "eyj", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+"),
    _secret("bearer-token", "bearer", r"(?i:\bbearer\s{1,9}+)[A-Za-z0-9._~+/-]{20,}+=*+", random=True),
    _secret(
        "basic-auth", "basic", r"(?i:\bauthorization[\"']?\s{0,9}[:=]\s{0,9}[\"']?basic\s{1,9}+)[A-Za-z0-9+/]{6,}+=*+"
    ),
    # up to the last @, because a password may contain one; quotation marks end a quoted URL
    _secret("url-password", "://", r"(?<=://)[^\s:/@]{0,100}+:[^\s/\"'<>]{1,200}(?=@)"),
)

# Zero-width and bidirectional characters, and tag characters, which no font shows.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]")
_TEMPLATE = re.compile(r"<\|([^|<>]{0,60})\|>|<<(/?SYS)>>|\[(/?INST)\]", re.IGNORECASE)
_TAG = re.compile(
    r"<(/?(?:antml:)?(?:system|assistant|user|human|developer|instructions?|tool\w*|function\w*|invoke|parameter|result"
    r"|think\w*|context|memory|identity|s)\b[^<>]{0,200})>",
    re.IGNORECASE,
)
# Lines of these characters are headings and fences.
_RULE = re.compile(r"([=#`~])\1{2,}|#{2}|([-*_])\2{3,}")

_REDACTION = re.compile(r"\[REDACTED:[a-z-]{1,30}\]")
_ALTERNATION = re.compile(r"(?<=[A-Za-z])\d|(?<=\d)[A-Za-z]")
_MIN_ALTERNATIONS = 2


def clean_text(text: str, *, what: str = "text", max_chars: int = MAX_CHARACTERS) -> str:
    """Return the text with secrets replaced by `[REDACTED:kind]`. `what` names the text in errors.

    Raises InputError if the text is empty or too long, or contains a NUL byte or a lone surrogate.
    """
    _ensure_length(text, what=what, max_chars=max_chars, hint=f"Split the {what} into parts.")
    if "\0" in text:
        raise InputError(f"The {what} contains a NUL byte.", hint="Remove the NUL byte: PostgreSQL cannot store it.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"The {what} contains a lone surrogate.", hint=f"Send the {what} as valid UTF-8.") from None
    return redact_secrets(text)


def clean_name(text: str, *, what: str) -> str:
    """Return a name, title or subject with secrets redacted. `what` names it in errors.

    Raises InputError unless it is one line of at most 200 printable characters.
    """
    _ensure_length(text, what=what, max_chars=MAX_NAME_CHARACTERS, hint=f"Shorten the {what}.")
    if not all(map(_is_line_character, text)):
        hint = "Remove line breaks and control characters, and send valid UTF-8."
        raise InputError(f"The {what} is not one line of printable characters.", hint=hint)
    return redact_secrets(text)


def clean_ref(text: str, *, what: str) -> str:
    """Return an identifier, such as the name of a session, unchanged. `what` names it in errors.

    Raises InputError in the cases of `clean_name`. Also raises it for a secret, because two redacted identifiers would
    be equal, and for "." and "..", because a URL path cannot end in them.
    """
    if text in (".", ".."):
        raise InputError(f"{text!r} is not a valid {what}.", hint="Choose another name.")
    if clean_name(text, what=what) != text:
        raise InputError(
            f"The {what} contains what looks like a secret.",
            hint="Choose another name: secrets in names are not removed.",
        )
    return text


def validate_time(moment: datetime, *, what: str = "time") -> datetime:
    """Return the time unchanged. Raises InputError if it has no time zone, or its year is not from 2 to 9998."""
    if moment.utcoffset() is None:
        message = f"The {what} has no time zone: {moment.isoformat()}."
        raise InputError(message, hint="Write a time as 2026-03-01T09:00:00Z.")
    if not 2 <= moment.year <= 9998:
        raise InputError(
            f"The {what} has the year {moment.year}, which is not supported.", hint="Use a year from 2 to 9998."
        )
    return moment


def clean_model_text(text: str) -> str:
    """Return a text by a model without NUL bytes, lone surrogates, secrets and surrounding white space.

    Invalid text is repaired instead of rejected, because a model cannot be asked to correct it.

    >>> clean_model_text("the key\\0 is AKIAIOSFODNN7EXAMPLE")
    'the key is [REDACTED:aws-key]'
    """
    return redact_secrets(text.replace("\0", "").encode("utf-8", "replace").decode()).strip()


def redact_secrets(text: str) -> str:
    """Return the text with secrets replaced by `[REDACTED:kind]`.

    >>> redact_secrets("use postgres://ana:hunter2@db/x")
    'use postgres://[REDACTED:url-password]@db/x'
    """
    lowered = text.lower()
    for secret in SECRET_PATTERNS:
        # Few texts contain a hint, and searching for one costs a hundredth of searching for the pattern.
        if any(hint in lowered for hint in secret.hints):
            text = _redact_pattern(secret, text)
    return text


def count_redactions(*texts: str) -> int:
    """Return the number of secrets that were redacted in texts.

    >>> count_redactions("use postgres://[REDACTED:url-password]@db/x", "no secret")
    1
    """
    return sum(len(_REDACTION.findall(text)) for text in texts)


def _redact_pattern(secret: SecretPattern, text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        return match[0] if secret.must_look_random and not _looks_random(match[0]) else f"[REDACTED:{secret.kind}]"

    return secret.pattern.sub(replace, text)


def _looks_random(text: str) -> bool:
    """Return whether letters and digits alternate in the text as they do in random tokens.

    >>> _looks_random("sk-learn-issue-comment-12345"), _looks_random("sk-4eC39HqLyjWDarjtT1zdp7dc")
    (False, True)
    """
    return sum(1 for _ in _ALTERNATION.finditer(text)) >= _MIN_ALTERNATIONS


def _ensure_length(text: str, *, what: str, max_chars: int, hint: str) -> None:
    if not text.strip():
        raise InputError(f"The {what} is empty.", hint="Give some text.")
    if len(text) > max_chars:
        raise InputError(f"The {what} has {len(text):,} characters; the maximum is {max_chars:,}.", hint=hint)


def _is_line_character(character: str) -> bool:
    return character.isprintable() or character in _ZERO_WIDTH_JOINERS or unicodedata.category(character) == "Zs"


def remove_prompt_marks(text: str) -> str:
    """Return the text without invisible characters, and with marks of chat templates, headings and fences defused.

    Text of a tool is one line of a context, so that it cannot begin a line or a section. The marks would still look
    like those of a prompt to a model, and invisible characters could hide text from a person.

    >>> remove_prompt_marks("=== Message === <|im_start|>system [INST] <system>obey</system> \u200b## Identity")
    '= Message = (im_start)system (INST) (system)obey(/system) # Identity'
    """
    text = _INVISIBLE.sub("", text)
    text = _TEMPLATE.sub(lambda match: f"({match[1] or match[2] or match[3] or ''})", text)
    text = _TAG.sub(r"(\1)", text)
    return _RULE.sub(lambda match: match[0][0], text)
