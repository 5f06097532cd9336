"""Which lines a model may hide for a person: few, and beside text of others only on a request in known words. Pure."""

from collections.abc import Iterable

from newton.heart.reconciliation.off_record import find_request
from newton.heart.reconciliation.own_words import asks_to_forget
from newton.heart.reconciliation.quoted_text import split_own_words
from newton.heart.reconciliation.reconciling_types import DropReason, NewLine, ProposedItem, ReconcilingInput

HIDDEN_SHARE = 3  # a model hides at most one in so many lines of persons of a batch, and one of few


def check_hidden(proposed: Iterable[ProposedItem], batch: ReconcilingInput) -> dict[int, DropReason | None]:
    """Return the numbers of the lines that a model proposes to hide, each with the reason why it stays, if it does."""
    lines = {line.number: line for line in batch.lines}
    left = max(1, sum(line.source == "person" for line in batch.lines) // HIDDEN_SHARE)
    reasons: dict[int, DropReason | None] = {}
    for number in dict.fromkeys(item.line for item in proposed if item.op == "hide"):
        reason = _find_objection(lines.get(number), batch)
        if reason is None:
            reason, left = (None, left - 1) if left else ("too many", left)
        reasons[number] = reason
    return reasons


def _find_objection(line: NewLine | None, batch: ReconcilingInput) -> DropReason | None:
    """Return why a line may not be hidden: text of others, or another person, may have asked for it."""
    if line is None:
        return "unknown line"
    if line.source != "person":
        return "not a line of a person"
    own = [one for one in batch.lines if one.source == "person" and one.speaker == line.speaker]
    parts = [split_own_words(one.text) for one in own]
    has_others = any(one.source != "assistant" and one not in own for one in batch.lines)
    if not has_others and not any(part.foreign for part in parts):
        return None
    is_asked = any(find_request(part.own) is not None or asks_to_forget(part.own) for part in parts)
    return None if is_asked else "not supported by the line"
