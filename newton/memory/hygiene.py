"""What a text must be before it is kept, and what is taken out of it. Pure."""

import re

from newton.errors import InputError

MAX_CHARACTERS = 1_000_000

# Shapes of credentials that are recognised with next to no false alarms; the whole match is replaced.
_SECRETS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "private-key",
            r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]{1,20000}?"
            r"-----END (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----",
        ),
        ("aws-key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})\b"),
        ("gitlab-token", r"\bglpat-[A-Za-z0-9_-]{20,64}"),
        ("api-key", r"\bsk-(?:proj-|ant-|svcacct-)?[A-Za-z0-9_-]{20,255}"),
        ("slack-token", r"\bxox[abposr]-[A-Za-z0-9-]{10,255}"),
        ("google-key", r"\bAIza[0-9A-Za-z_-]{35}"),
        ("stripe-key", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,255}"),
        ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
        ("jwt", r"\beyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,1000}"),
        ("bearer-token", r"(?i:\bbearer\s+)[A-Za-z0-9._~+/-]{20,2000}=*"),
        ("url-password", r"(?<=://)[^\s:/@]{1,100}:[^\s/@]{1,200}(?=@)"),
    )
)


def clean(text: str, *, what: str = "text") -> str:
    """The text with secrets replaced by `[REDACTED:kind]`.

    Raises InputError when it is empty, too long, or holds a NUL byte or half a character.
    """
    if not text.strip():
        raise InputError(f"The {what} is empty.", hint="Say something in it, or leave it out.")
    if len(text) > MAX_CHARACTERS:
        raise InputError(
            f"The {what} has {len(text):,} characters; {MAX_CHARACTERS:,} is the most.", hint="Split it into parts."
        )
    if "\0" in text:
        raise InputError(f"The {what} holds a NUL byte.", hint="Remove it: PostgreSQL cannot keep one in a text.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"The {what} holds half a character.", hint="Send it as valid UTF-8.") from None
    return redacted(text)


def mended(text: str) -> str:
    """What a model said, as it may be kept: nobody can be asked to say it better.

    >>> mended("the key\\0 is AKIAIOSFODNN7EXAMPLE")
    'the key is [REDACTED:aws-key]'
    """
    return redacted(text.replace("\0", "").encode("utf-8", "replace").decode())


def redacted(text: str) -> str:
    """
    >>> redacted("use postgres://ana:hunter2@db/x")
    'use postgres://[REDACTED:url-password]@db/x'
    """
    for kind, pattern in _SECRETS:
        text = pattern.sub(f"[REDACTED:{kind}]", text)
    return text
