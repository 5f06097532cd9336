"""A part of the record, by category and date. Pure."""

from collections.abc import Sequence
from datetime import datetime

from newton.brain.choice import Judged
from newton.errors import InputError


def narrowed(judged: Sequence[Judged], *, category: str | None, start: datetime | None) -> list[Judged]:
    """Those of the category that were decided at `start` or later. Raises InputError for an unknown category."""
    known = sorted({one.category for one in judged})
    if category is not None and category not in known:
        listed = ", ".join(known) or "none"
        raise InputError(f"No judged decision is of category {category!r}.", hint=f"There are: {listed}.")
    return [
        one
        for one in judged
        if (category is None or one.category == category) and (start is None or one.decided_at >= start)
    ]
