"""Compaction learns: a strategy whose cuts turn out wrong waits longer, and a costly model is left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newton.dialogue.compaction.presets import (
    MAX_FACTOR,
    MIN_ENTRIES,
    PRESETS,
    StrategyFeedback,
    adapt_preset,
    find_problem,
)
from newton.dialogue.compaction.strategies import SummarizeOldest, SummarizeToolCalls

COUNTS = st.integers(0, 10_000)
DEFAULT = PRESETS["default"]


def feedback(strategy: str = "threshold", *, entries: int = 100, wrong: int = 0) -> StrategyFeedback:
    return StrategyFeedback(strategy, entries, wrong, 0, 0, 0)


@given(COUNTS, COUNTS)
def test_the_factor_keeps_to_its_bounds(entries: int, wrong: int) -> None:
    # S003-F3
    assert 1 <= feedback(entries=entries, wrong=min(entries, wrong)).factor <= MAX_FACTOR


def test_only_a_strategy_with_enough_wrong_cuts_waits_longer() -> None:
    # S003-F3
    assert feedback(entries=MIN_ENTRIES - 1, wrong=MIN_ENTRIES - 1).factor == 1
    assert feedback(entries=MIN_ENTRIES, wrong=MIN_ENTRIES).factor == MAX_FACTOR
    adapted = adapt_preset(DEFAULT, [feedback(wrong=30), feedback("tool_calls")], max_tokens=100_000)
    assert SummarizeOldest(recent=8) in adapted.strategies and SummarizeToolCalls() in adapted.strategies
    assert adapt_preset(DEFAULT, [feedback()], max_tokens=100_000) == DEFAULT


@pytest.mark.parametrize("max_tokens", [0, 50, 100, 700, 100_000])
def test_an_adapted_preset_can_always_fire(max_tokens: int) -> None:
    # S003-F3: what is adapted is valid wherever the preset is
    worst = [feedback(strategy.name, wrong=100) for strategy in DEFAULT.strategies]
    adapted = adapt_preset(DEFAULT, worst, max_tokens=max_tokens)
    assert adapted == DEFAULT or find_problem(adapted, max_tokens=max_tokens) is None


def test_a_model_that_costs_more_than_it_saves_is_left_out() -> None:
    # S003-F3, S003-20
    assert StrategyFeedback("threshold", 100, 0, 9, 100, 9_000).is_model_worthwhile, "too few runs"
    assert StrategyFeedback("threshold", 100, 0, 10, 9_000, 100).is_model_worthwhile
    assert not StrategyFeedback("threshold", 100, 0, 10, 100, 9_000).is_model_worthwhile
