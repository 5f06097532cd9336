"""Patterns of credentials that are recognizable by their own form, such as a prefix. Pure."""

import re
from typing import NamedTuple


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
    _secret(
        "gitlab-token",
        "glpat- gldt- glrt- glft- glsoat- glcbt- glptt- gloas- glagent- glimt-",
        r"\bgl(?:pat|dt|rt|ft|soat|cbt|ptt|oas|agent|imt)-[A-Za-z0-9_-]{20,}+",
    ),
    _secret("api-key", "sk-", r"(?<![A-Za-z0-9_-])sk-[A-Za-z0-9_-]{20,}+", random=True),
    _secret("groq-key", "gsk_", r"\bgsk_[A-Za-z0-9]{40,}+"),
    _secret("huggingface-token", "hf_", r"\bhf_[A-Za-z0-9]{30,}+"),
    _secret("slack-token", "xox", r"\bxox[abceprs]-[A-Za-z0-9-]{10,}+"),
    _secret("slack-token", "xapp-", r"\bxapp-\d-[A-Za-z0-9-]{20,}+"),
    _secret("slack-webhook", "hooks.slack.com/", r"\bhooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/_-]{20,}+"),
    _secret("discord-webhook", "/api/webhooks/", r"\bdiscord(?:app)?\.com/api/webhooks/\d{15,25}+/[A-Za-z0-9_-]{40,}+"),
    _secret("telegram-token", ":aa", r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{30,36}(?![A-Za-z0-9_-])"),
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
    _secret("twilio-key", "sk", r"SK(?<!\wSK)[0-9a-f]{32}\b"),
    _secret("grafana-token", "glsa_", r"\bglsa_[A-Za-z0-9]{32}_[0-9a-f]{8}\b"),
    _secret("sentry-token", "sntry", r"\bsntry[us]_[A-Za-z0-9+/=_-]{40,}+"),
    _secret("newton-token", "nwt_", r"\bnwt_[A-Za-z0-9_-]{80,}+={0,2}"),
    _secret("stripe-secret", "whsec_", r"\bwhsec_[A-Za-z0-9+/=]{24,}+"),
    _secret("mailgun-key", "key-", r"(?<![\w-])key-[0-9a-f]{32}\b"),
    _secret("mailchimp-key", "-us1 -us2 -us3 -us4 -us5 -us6 -us7 -us8 -us9", r"\b[0-9a-f]{32}-us\d{1,2}\b"),
    _secret("linear-key", "lin_api_", r"\blin_api_[A-Za-z0-9]{32,}+"),
    _secret("figma-token", "figd_", r"\bfigd_[A-Za-z0-9_-]{36,}+"),
    _secret("supabase-token", "sbp_", r"\bsbp_[0-9a-f]{40}\b"),
    _secret("terraform-token", ".atlasv1.", r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,}+"),
    _secret("planetscale-token", "pscale_", r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}+"),
    _secret(
        "password-hash", "$", r"\$(?:2[abxy]?|apr1|[156y]|7|argon2(?:id|i|d)|scrypt)\$(?:[\w./$=+-]|,(?=[a-z]=)){20,}"
    ),
    _secret(
        "password-hash",
        "pbkdf2_ bcrypt_ argon2$",
        r"\b(?:pbkdf2_sha\d+|bcrypt_sha256|argon2)\$(?:[\w.$=+/-]|,(?=[a-z]=)){30,}",
    ),
    _secret("discord-token", ".", r"[MNO](?<![\w.-][MNO])[A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}+"),
    # host:port:database:user:password, a line of .pgpass
    _secret(
        "database-password",
        ":5432: :5433: :6432: :*:",
        r"(?<![\w.*:-])[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w*-]{1,60}:[\w*.-]{1,60}:[^\s:\"'(),;]{4,100}+",
    ),
    _secret("one-time-code", " your", r"\b\d{4,8} is your (?:[\w-]{1,20} ){0,3}(?:code|otp)\b"),
    _secret("notion-token", "ntn_ secret_", r"\b(?:ntn_[A-Za-z0-9]{40,}+|secret_[A-Za-z0-9]{43}\b)"),
    _secret("atlassian-token", "atatt3", r"\bATATT3[A-Za-z0-9_=-]{100,}+"),
    _secret("tailscale-key", "tskey-", r"\btskey-[a-z]{2,10}-[A-Za-z0-9]{8,}+(?:-[A-Za-z0-9]{8,}+)?"),
    _secret("url-token", "://", r"(?<=://)[0-9a-f]{32}(?=@)"),  # the DSN of a reporting service
    _secret(
        "database-password", "jdbc:oracle:", r"(?i:\bjdbc:oracle:[a-z]{2,6}:\w{1,60}/)(?![$<{])[^\s@/\"']{3,100}+(?=@)"
    ),
    _secret("jwt", "eyj", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+"),
    _secret("bearer-token", "bearer", r"(?i:\bbearer\s{1,9}+)[A-Za-z0-9._~+/-]{20,}+=*+", random=True),
    _secret(
        "basic-auth", "basic", r"(?i:\bauthorization[\"']?\s{0,9}[:=]\s{0,9}[\"']?basic\s{1,9}+)[A-Za-z0-9+/]{6,}+=*+"
    ),
    # up to the last @, because a password may contain one; quotation marks end a quoted URL
    _secret(
        "url-password",
        "://",
        r"(?<=://)(?![^\s:/@]{0,100}+:(?:pass|password|passwd|pwd|\*+|\.{3}|x{3,})@|[^\s:/@]{0,100}+:[$<{])[^\s:/@]{0,100}+:[^\s/\"'<>]{1,200}(?=@)",
    ),
)
