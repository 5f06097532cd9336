"""Entries that cover many positions."""

from newton.dialogue.compaction.strategies import CompactionBlock, ViewState, refusal_reason
from newton.dialogue.view import ViewMessage


def test_the_length_of_what_an_entry_covers_costs_nothing() -> None:
    """A walk over the positions that it covers would not end."""
    long = ViewMessage("user", "[goals]", 500, 0, 10**15, "goals")
    view = (long, ViewMessage("user", "And now?", 5, 10**15 + 1, 10**15 + 1))
    block = CompactionBlock("merged", (long,), max_tokens=10)
    assert "restored" not in (refusal_reason(block, ViewState(view, 1_000, frozenset({10**15 + 1}))) or "")
    assert "restored" in (refusal_reason(block, ViewState(view, 1_000, frozenset({7}))) or "")
