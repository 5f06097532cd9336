"""The secrets that the current call redacted, counted by kind. It imports only the standard library, as commands do."""

import re
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

Redactions = dict[str, int]  # the number of removed secrets by their kind

_MARKER = re.compile(r"\[REDACTED:([a-z0-9-]{1,30})\]")


class SecretSpan(NamedTuple):
    """The position of a secret in a text."""

    start: int
    end: int
    kind: str


class RedactionTally:
    """The distinct secrets that a call redacted: the kind and the hash of each. A secret that occurs twice is one."""

    def __init__(self) -> None:
        self._secrets: set[tuple[str, int]] = set()

    def add(self, kind: str, secret: str) -> None:
        """Add a secret."""
        self._secrets.add((kind, hash(secret)))

    def count(self) -> Redactions:
        """Return the number of secrets by kind."""
        return dict(sorted(Counter(kind for kind, _ in self._secrets).items()))


_tally: ContextVar[RedactionTally | None] = ContextVar("newton_redactions", default=None)


@contextmanager
def redaction_tally() -> Generator[RedactionTally]:
    """Collect the secrets that are redacted within the context, apart from those redacted before it."""
    tally = RedactionTally()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)


def current_tally() -> RedactionTally:
    """Return the tally of the current call; a new one for a program that uses services without an interface."""
    tally = _tally.get()
    if tally is None:
        _tally.set(tally := RedactionTally())
    return tally


def redact_spans(text: str, spans: Iterable[SecretSpan]) -> str:
    """Return the text without the spans, which are tallied. Of overlapping spans the first and longest is replaced."""
    parts, position = list[str](), 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.start >= position:
            parts += [text[position : span.start], f"[REDACTED:{span.kind}]"]
            position = span.end
            current_tally().add(span.kind, text[span.start : span.end])
    return "".join(parts) + text[position:]


def count_redactions(*texts: str) -> Redactions:
    """Return the number of secrets, by kind, that the current call replaced by the markers in these texts.

    Markers that somebody typed, or that were stored before, can exceed this number, so it is limited to the secrets
    that the call has redacted.

    >>> with redaction_tally() as tally:
    ...     tally.add("iban", "DE89370400440532013000")
    ...     count_redactions("to [REDACTED:iban]", "typed: [REDACTED:jwt]")
    {'iban': 1}
    """
    tally = _tally.get()
    removed = tally.count() if tally else {}
    if not removed:
        return {}
    markers = Counter(kind for text in texts for kind in _MARKER.findall(text))
    return {kind: min(markers[kind], number) for kind, number in removed.items() if kind in markers}


def add_redactions(first: Redactions, second: Redactions) -> Redactions:
    """Return the sum of two counts.

    >>> add_redactions({"jwt": 1}, {"iban": 1, "jwt": 2})
    {'iban': 1, 'jwt': 3}
    """
    return dict(sorted((Counter(first) + Counter(second)).items()))
