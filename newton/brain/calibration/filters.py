"""A part of the record, by category and date. Pure."""

from collections.abc import Sequence
from datetime import datetime

from newton.brain.draft import ReviewedDecision
from newton.errors import InputError


def filter_decisions(
    decisions: Sequence[ReviewedDecision], *, category: str | None, since: datetime | None
) -> list[ReviewedDecision]:
    """Those of the category that were decided at `start` or later. Raises InputError for an unknown category."""
    known = sorted({one.category for one in decisions})
    if category is not None and category not in known:
        listed = ", ".join(known) or "none"
        raise InputError(f"No judged decision is of category {category!r}.", hint=f"There are: {listed}.")
    return [
        one
        for one in decisions
        if (category is None or one.category == category) and (since is None or one.decided_at >= since)
    ]
