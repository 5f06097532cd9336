"""Replacement of secrets in texts. Pure but for the tally of the current call."""

import re

import re2

from newton.memory.redaction import household_codes
from newton.memory.redaction.checked_numbers import find_checked_numbers
from newton.memory.redaction.labelled_values import LABELLED_VALUES, SecretSpan, find_labelled_values, looks_random
from newton.memory.redaction.secret_patterns import SECRET_PATTERNS, SecretPattern
from newton.memory.redaction.tally import current_tally
from newton.memory.redaction.told_secrets import TOLD_SECRETS, find_told_secrets

_HINTS = sorted(
    {hint for secret in SECRET_PATTERNS for hint in secret.hints}
    | {label for rule in (*LABELLED_VALUES, *TOLD_SECRETS) for label in rule.labels}
)
_ALL_HINTS = frozenset(_HINTS)


def _compile_hints() -> re2.Set:
    compiled = re2.Set.SearchSet()
    for hint in _HINTS:
        compiled.Add(re2.escape(hint))
    compiled.Add("")  # found in each text, so finding nothing means that RE2 ran out of memory
    compiled.Compile()
    return compiled


_HINT_SET = _compile_hints()


def redact_secrets(text: str) -> str:
    """Return the text with secrets replaced by `[REDACTED:kind]`, and add them to the tally of the current call.

    >>> redact_secrets("use postgres://ana:hunter2@db/x, or my password hunter2")
    'use postgres://[REDACTED:url-password]@db/x, or my password [REDACTED:password]'
    """
    lowered = _lower(text)
    hints = _find_hints(lowered)
    cleaned = text
    for secret in SECRET_PATTERNS:
        if not hints.isdisjoint(secret.hints):
            cleaned = _redact_pattern(secret, cleaned)
    lowered = lowered if cleaned is text else _lower(cleaned)
    keep_household = household_codes.are_kept()
    spans = [
        *find_checked_numbers(cleaned),  # first, because of equal spans the first one counts
        *find_labelled_values(cleaned, lowered, hints, keep_household=keep_household),
        *find_told_secrets(cleaned, lowered, hints, keep_household=keep_household),
    ]
    return _redact_spans(cleaned, spans) if spans else cleaned


def _find_hints(lowered: str) -> frozenset[str]:
    """Return the hints and labels of all patterns that the text contains, in one pass over it."""
    found = _HINT_SET.Match(lowered.encode("utf-8", "replace"))
    return frozenset(_HINTS[index] for index in found if index < len(_HINTS)) if found else _ALL_HINTS


def _lower(text: str) -> str:
    """Return the text in lower case and with the same length: İ alone has two characters in lower case."""
    return text.replace("İ", "I").lower()


def _redact_pattern(secret: SecretPattern, text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        if secret.must_look_random and not looks_random(match[0]):
            return match[0]
        current_tally().add(secret.kind, match[0])
        return f"[REDACTED:{secret.kind}]"

    return secret.pattern.sub(replace, text)


def _redact_spans(text: str, spans: list[SecretSpan]) -> str:
    """Return the text without the spans. Of overlapping spans the first and longest is replaced."""
    parts, position = list[str](), 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.start < position:
            continue
        parts += [text[position : span.start], f"[REDACTED:{span.kind}]"]
        position = span.end
        current_tally().add(span.kind, text[span.start : span.end])
    return "".join(parts) + text[position:]
