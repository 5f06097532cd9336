"""What a text, a name and a time must be before they are kept, and what is taken out of them. Pure."""

import re
import unicodedata
from datetime import datetime
from typing import NamedTuple

from newton.errors import InputError

MAX_CHARACTERS = 1_000_000
MAX_MESSAGE = 10_000_000  # characters of a line of dialogue: what a tool gave is as long as it is
MAX_NAME = 200

# Persian and emoji are written with joiners, which Python takes for unprintable.
_JOINERS = "\u200c\u200d"


class Shape(NamedTuple):
    """How credentials of one kind look.

    A match is replaced whole. It holds one of `hints` (in lower case), and where people write the same way it must also
    look drawn by lot, or `random` is false. No pattern reads a character more than a few times, however the text is
    made: repetitions do not give back what they took, and begin only where their own characters begin.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    random: bool


def _shape(kind: str, hints: str, pattern: str, *, random: bool = False) -> Shape:
    return Shape(kind, tuple(hints.split()), re.compile(pattern), random)


_KEY = r"(?:[A-Z0-9]{1,20}+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"

SHAPES: tuple[Shape, ...] = (
    _shape(
        "private-key",
        "-----begin",
        # to its end; a key that was cut off, as far as its lines go
        rf"-----BEGIN {_KEY}(?:(?:[^-]++|-(?!----))*+-----END {_KEY}|(?:\s*+[A-Za-z0-9+/=]{{40,}}+)++)",
    ),
    _shape("age-key", "age-secret-key-1", r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b"),
    _shape("aws-key", "akia asia abia acca", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    _shape(
        "aws-secret",
        "aws_secret aws-secret awssecret secretaccesskey",
        r"(?i:\b(?:aws[_-]?secret[_-]?(?:access[_-]?)?key|secretaccesskey)[\"']?\s{0,9}[=:]\s{0,9}[\"']?)"
        r"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])",
    ),
    _shape("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"\bgh[pousr]_[A-Za-z0-9]{36,}+"),
    _shape("github-token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{22,}+"),
    _shape("gitlab-token", "gl", r"\bgl(?:pat|dt|rt|ft|soat|cbt|ptt|oas|agent|imt)-[A-Za-z0-9_-]{20,}+"),
    _shape("api-key", "sk-", r"(?<![A-Za-z0-9_-])sk-[A-Za-z0-9_-]{20,}+", random=True),
    _shape("groq-key", "gsk_", r"\bgsk_[A-Za-z0-9]{40,}+"),
    _shape("huggingface-token", "hf_", r"\bhf_[A-Za-z0-9]{30,}+"),
    _shape("slack-token", "xox", r"\bxox[abceprs]-[A-Za-z0-9-]{10,}+"),
    _shape("slack-token", "xapp-", r"\bxapp-\d-[A-Za-z0-9-]{20,}+"),
    _shape("slack-webhook", "hooks.slack.com/", r"\bhooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/_-]{20,}+"),
    _shape("discord-webhook", "/api/webhooks/", r"\bdiscord(?:app)?\.com/api/webhooks/\d{15,25}+/[A-Za-z0-9_-]{40,}+"),
    _shape("telegram-token", ":aa", r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"),
    _shape("google-key", "aiza", r"\bAIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
    _shape("google-secret", "gocspx-", r"\bGOCSPX-[0-9A-Za-z_-]{24,}+"),
    _shape("google-token", "ya29.", r"\bya29\.[0-9A-Za-z._-]{30,}+"),
    _shape("azure-key", "accountkey accesskey", r"\b(?:Account|SharedAccess)Key=[A-Za-z0-9+/]{40,}+={0,2}"),
    _shape("azure-secret", "8q~", r"(?<![\w~.-])[\w~.-]{3}8Q~[\w~.-]{31,37}(?![\w~.-])"),
    _shape("digitalocean-token", "_v1_", r"\bdo[opr]_v1_[0-9a-f]{64}\b"),
    _shape("databricks-token", "dapi", r"\bdapi[0-9a-f]{32}\b"),
    _shape("vault-token", "hvs. hvb. hvr.", r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}+"),
    _shape("docker-token", "dckr_", r"\bdckr_[a-z]{3}_[A-Za-z0-9_-]{24,}+"),
    _shape("npm-token", "npm_", r"\bnpm_[A-Za-z0-9]{36}\b"),
    _shape("pypi-token", "pypi-ag", r"\bpypi-Ag[A-Za-z0-9_-]{50,}+"),
    _shape("stripe-key", "k_live_ k_test_", r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}+"),
    _shape("shopify-token", "shp", r"\bshp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}\b"),
    _shape("sendgrid-key", "sg.", r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    _shape("twilio-key", "sk", r"\bSK[0-9a-f]{32}\b"),
    _shape("grafana-token", "glsa_", r"\bglsa_[A-Za-z0-9]{32}_[0-9a-f]{8}\b"),
    _shape("sentry-token", "sntry", r"\bsntry[us]_[A-Za-z0-9+/=_-]{40,}+"),
    _shape("notion-token", "ntn_ secret_", r"\b(?:ntn_[A-Za-z0-9]{40,}+|secret_[A-Za-z0-9]{43}\b)"),
    _shape("atlassian-token", "atatt3", r"\bATATT3[A-Za-z0-9_=-]{100,}+"),
    _shape(
        "jwt",
        "eyj",
        r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+",
    ),
    _shape("bearer-token", "bearer", r"(?i:\bbearer\s{1,9}+)[A-Za-z0-9._~+/-]{20,}+=*+", random=True),
    _shape(
        "basic-auth", "basic", r"(?i:\bauthorization[\"']?\s{0,9}[:=]\s{0,9}[\"']?basic\s{1,9}+)[A-Za-z0-9+/]{6,}+=*+"
    ),
    # up to the last @, for a password may hold one; a quotation mark ends what an address is quoted in
    _shape("url-password", "://", r"(?<=://)[^\s:/@]{0,100}+:[^\s/\"'<>]{1,200}(?=@)"),
)

_TURN = re.compile(r"(?<=[A-Za-z])\d|(?<=\d)[A-Za-z]")
_FEWEST_TURNS = 2


def clean(text: str, *, what: str = "text", most: int = MAX_CHARACTERS) -> str:
    """The text with secrets replaced by `[REDACTED:kind]`.

    Raises InputError when it is empty, too long, or holds a NUL byte or half a character.
    """
    _said(text, what=what, most=most, hint="Split it into parts.")
    if "\0" in text:
        raise InputError(f"The {what} holds a NUL byte.", hint="Remove it: PostgreSQL cannot keep one in a text.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"The {what} holds half a character.", hint="Send it as valid UTF-8.") from None
    return redacted(text)


def name(text: str, *, what: str) -> str:
    """A name somebody gave, as a title or a subject, with secrets replaced as in any text.

    Raises InputError unless it is one line of at most 200 printable characters.
    """
    _said(text, what=what, most=MAX_NAME, hint="Shorten it.")
    if not all(map(_fits_a_line, text)):
        raise InputError(
            f"The {what} is not one line of printable characters.",
            hint="Leave out line ends and control characters, and send it as valid UTF-8.",
        )
    return redacted(text)


def ref(text: str, *, what: str) -> str:
    """A name by which something is found again, such as a session's: a name, word for word.

    Raises InputError as `name` does, for a name that holds a secret, since redacted, two such names would be one, and
    for "." and "..", which an address of HTTP cannot end in.
    """
    if text in (".", ".."):
        raise InputError(f"{text!r} is no name for a {what}.", hint="Give it another one.")
    if name(text, what=what) != text:
        raise InputError(f"The {what} holds what looks like a secret.", hint="Give it another name: it is kept.")
    return text


def moment(at: datetime, *, what: str = "time") -> datetime:
    """A time as it may be kept: with a zone, in the years 2 to 9998, so that it is a time in every zone."""
    if at.utcoffset() is None:
        raise InputError(f"The {what} has no time zone: {at.isoformat()}.", hint="Write it as 2026-03-01T09:00:00Z.")
    if not 2 <= at.year <= 9998:
        raise InputError(f"The {what} is in no usable year: {at.year}.", hint="Years run from 2 to 9998.")
    return at


def mended(text: str) -> str:
    """What a model said, as it may be kept, without the white space around it: nobody can be asked to say it better.

    >>> mended("the key\\0 is AKIAIOSFODNN7EXAMPLE")
    'the key is [REDACTED:aws-key]'
    """
    return redacted(text.replace("\0", "").encode("utf-8", "replace").decode()).strip()


def redacted(text: str) -> str:
    """
    >>> redacted("use postgres://ana:hunter2@db/x")
    'use postgres://[REDACTED:url-password]@db/x'
    """
    lowered = text.lower()
    for shape in SHAPES:
        # Few texts hold a hint, and looking for one costs a hundredth of looking for the pattern.
        if any(hint in lowered for hint in shape.hints):
            text = _without(shape, text)
    return text


def _without(shape: Shape, text: str) -> str:
    instead = f"[REDACTED:{shape.kind}]"
    return shape.pattern.sub(lambda hit: hit[0] if shape.random and not _random(hit[0]) else instead, text)


def _random(text: str) -> bool:
    """Whether letters and digits alternate as they do in what was drawn by lot, and hardly in words with a number.

    >>> _random("sk-learn-issue-comment-12345"), _random("sk-4eC39HqLyjWDarjtT1zdp7dc")
    (False, True)
    """
    return sum(1 for _ in _TURN.finditer(text)) >= _FEWEST_TURNS


def _said(text: str, *, what: str, most: int, hint: str) -> None:
    if not text.strip():
        raise InputError(f"The {what} is empty.", hint="Say something in it, or leave it out.")
    if len(text) > most:
        raise InputError(f"The {what} has {len(text):,} characters; {most:,} is the most.", hint=hint)


def _fits_a_line(character: str) -> bool:
    return character.isprintable() or character in _JOINERS or unicodedata.category(character) == "Zs"
