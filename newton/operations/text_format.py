"""Formats in texts for people. It loads nothing slow, because each command prints."""

from collections.abc import Iterable, Mapping


def pluralize(number: int, singular: str, plural: str | None = None) -> str:
    """Format a number with a noun.

    >>> pluralize(1, "file"), pluralize(1_200, "file"), pluralize(2, "entry", "entries")
    ('1 file', '1,200 files', '2 entries')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def format_replaced(texts: Iterable[str | None]) -> str:
    """Format the texts of identity lines that a new line replaces, to be appended to the text of the new line.

    >>> format_replaced(["Be brief"]), format_replaced([])
    (' (replaces: Be brief)', '')
    """
    joined = "; ".join(text for text in texts if text)
    return f" (replaces: {joined})" if joined else ""


def truncate(text: str, max_chars: int) -> str:
    """Join the lines of a text; cut it to about `max_chars` characters and an ellipsis if it is longer.

    >>> truncate("What is\\nthis?", 8)
    'What is …'
    """
    line = " ".join(text.split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()} …"


def format_redactions(redacted: Mapping[str, int]) -> str:
    """Format the secrets, counted by kind, that were removed before a text was stored.

    >>> format_redactions({"jwt": 2, "password": 1})
    'Stored without 3 secrets: 2 jwt, 1 password.'
    """
    kinds = ", ".join(f"{number} {kind}" for kind, number in redacted.items())
    return f"Stored without {pluralize(sum(redacted.values()), 'secret')}: {kinds}."
