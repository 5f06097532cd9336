"""Formats of numbers in texts for people. It imports nothing, because each command prints."""


def pluralize(number: int, singular: str, plural: str | None = None) -> str:
    """Format a number with a noun.

    >>> pluralize(1, "file"), pluralize(1_200, "file"), pluralize(2, "entry", "entries")
    ('1 file', '1,200 files', '2 entries')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
