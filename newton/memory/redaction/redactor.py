"""Replacement of secrets in texts, and a tally of what the current call replaced. Pure but for the tally."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import re2

from newton.memory.redaction.checked_numbers import find_checked_numbers
from newton.memory.redaction.labelled_values import LABELLED_VALUES, SecretSpan, find_labelled_values, looks_random
from newton.memory.redaction.secret_patterns import SECRET_PATTERNS, SecretPattern

Redactions = dict[str, int]  # the number of removed secrets by their kind

_MARKER = re.compile(r"\[REDACTED:([a-z0-9-]{1,30})\]")
_HINTS = sorted(
    {hint for secret in SECRET_PATTERNS for hint in secret.hints}
    | {label for rule in LABELLED_VALUES for label in rule.labels}
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
_tally: ContextVar[Counter[str] | None] = ContextVar("newton_redactions", default=None)


@contextmanager
def redaction_tally() -> Iterator[Counter[str]]:
    """Count the secrets that are redacted within the context, by their kind, apart from those redacted before it."""
    tally: Counter[str] = Counter()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)


def redact_secrets(text: str) -> str:
    """Return the text with secrets replaced by `[REDACTED:kind]`, and add them to the tally of the current call.

    >>> redact_secrets("use postgres://ana:hunter2@db/x, or my password hunter2")
    'use postgres://[REDACTED:url-password]@db/x, or my password [REDACTED:password]'
    """
    found: Counter[str] = Counter()
    lowered = _lower(text)
    hints = _find_hints(lowered)
    cleaned = text
    for secret in SECRET_PATTERNS:
        if not hints.isdisjoint(secret.hints):
            cleaned = _redact_pattern(secret, cleaned, found)
    spans = [
        *find_labelled_values(cleaned, lowered if cleaned is text else _lower(cleaned), hints),
        *find_checked_numbers(cleaned),
    ]
    cleaned = _redact_spans(cleaned, spans, found) if spans else cleaned
    if found:
        _add_to_tally(found)
    return cleaned


def count_redactions(*texts: str) -> Redactions:
    """Return the numbers of secrets, by their kind, that the current call removed from texts.

    A text can contain markers that somebody typed or that were stored before. They are not counted: there are at most
    as many of a kind as the call redacted.

    >>> with redaction_tally():
    ...     count_redactions(redact_secrets("postgres://ana:hunter2@db"), "typed: [REDACTED:jwt]")
    {'url-password': 1}
    """
    tally = _tally.get()
    if not tally:
        return {}
    markers = Counter(kind for text in texts for kind in _MARKER.findall(text))
    return {kind: number for kind in sorted(markers) if (number := min(markers[kind], tally[kind]))}


def add_redactions(first: Redactions, second: Redactions) -> Redactions:
    """Return the sum of two counts.

    >>> add_redactions({"jwt": 1}, {"iban": 1, "jwt": 2})
    {'iban': 1, 'jwt': 3}
    """
    return dict(sorted((Counter(first) + Counter(second)).items()))


def _add_to_tally(found: Counter[str]) -> None:
    tally = _tally.get()
    if tally is None:  # a program that uses the services without an interface
        _tally.set(tally := Counter())
    tally.update(found)


def _find_hints(lowered: str) -> frozenset[str]:
    """Return the hints and labels of all patterns that the text contains, in one pass over it."""
    found = _HINT_SET.Match(lowered.encode("utf-8", "replace"))
    return frozenset(_HINTS[index] for index in found if index < len(_HINTS)) if found else _ALL_HINTS


def _lower(text: str) -> str:
    """Return the text in lower case and with the same length: İ alone has two characters in lower case."""
    return text.replace("İ", "I").lower()


def _redact_pattern(secret: SecretPattern, text: str, found: Counter[str]) -> str:
    def replace(match: re.Match[str]) -> str:
        if secret.must_look_random and not looks_random(match[0]):
            return match[0]
        found[secret.kind] += 1
        return f"[REDACTED:{secret.kind}]"

    return secret.pattern.sub(replace, text)


def _redact_spans(text: str, spans: list[SecretSpan], found: Counter[str]) -> str:
    """Return the text without the spans. Of overlapping spans the first and longest is replaced."""
    parts, position = [], 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.start < position:
            continue
        parts += [text[position : span.start], f"[REDACTED:{span.kind}]"]
        position = span.end
        found[span.kind] += 1
    return "".join(parts) + text[position:]
