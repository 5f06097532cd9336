"""Filters of reviewed decisions by category and date. Pure."""

from collections.abc import Sequence
from datetime import datetime

from newton.brain.draft import ReviewedDecision
from newton.errors import InputError


def filter_decisions(
    decisions: Sequence[ReviewedDecision], *, category: str | None, since: datetime | None
) -> list[ReviewedDecision]:
    """Return the decisions of a category made at `since` or later; a filter of None selects all.

    Raises InputError for a category that no decision has.
    """
    categories = sorted({one.category for one in decisions})
    if category is not None and category not in categories:
        hint = f"Known categories: {', '.join(categories) or 'none'}."
        raise InputError(f"No reviewed decision has the category {category!r}.", hint=hint)
    return [
        one
        for one in decisions
        if (category is None or one.category == category) and (since is None or one.decided_at >= since)
    ]
