"""What follows from an answer without being said in it: settled pairs, and sentences that another item holds. Pure."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from newton.heart.facts.conflicts import concerns_safety
from newton.heart.reconciliation.reconciling_types import CheckedItem, KnownItem, Operation, ReconcilingInput
from newton.heart.reconciliation.same_statements import says_all

_HELD_ELSEWHERE = frozenset[Operation]({"rule", "wish", "procedure"})


def list_implied_items(batch: ReconcilingInput, kept: Sequence[CheckedItem]) -> list[CheckedItem]:
    """Return the items that follow from those that were kept, to be applied after them."""
    return [*_drop_held(batch, kept), *_settle_pairs(batch.known, kept)]


def _drop_held(batch: ReconcilingInput, kept: Sequence[CheckedItem]) -> Iterator[CheckedItem]:
    """Drop the sentences of lines that a rule, wish or procedure holds, or the fact would outlive it."""
    held = [item for item in kept if item.op in _HELD_ELSEWHERE and not item.needs_approval]
    named = {one.item_id for item in held for one in item.known}
    lines = {line.memory_id: line for line in batch.lines}
    for draft in batch.known:
        line = lines.get(draft.drafted_by) if draft.drafted_by else None
        is_repeated = any(says_all(item.text, draft.text, user_names=batch.user_names) for item in held)
        if line and (not draft.label or draft.item_id in named or is_repeated):
            yield CheckedItem(op="not_asserted", line=line, known=(draft,))


def _settle_pairs(known: Sequence[KnownItem], kept: Sequence[CheckedItem]) -> Iterator[CheckedItem]:
    """Settle pairs of facts that a classifier doubts and the model, which saw both and answered, left alone.

    Two facts on safety stay doubtful.
    """
    unsure = {one.item_id for item in kept if item.contests for one in item.known}
    shown = [item for item in known if item.label and item.item_id not in unsure] if kept else []
    for one, other in combinations(shown, 2):
        is_safe = not (concerns_safety(one.text) and concerns_safety(other.text))
        if other.item_id in one.doubtful_with and is_safe:
            yield CheckedItem(op="both", line=None, known=(one, other))
