"""Adaptation of compaction to feedback: a strategy whose cuts turn out wrong waits longer. Pure.

A cut is wrong if a person restores its messages, or somebody reads one of them in full again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from newton.dialogue.compaction.presets import CompactionPreset, find_problem
from newton.dialogue.compaction.strategies import (
    BatchTurns,
    CompactionStrategy,
    MaskOutputs,
    MergeSummaries,
    SummarizeOldest,
    SummarizeToolCalls,
)

MIN_ENTRIES = 20  # of a strategy; fewer say nothing about it
USUAL_WRONG_SHARE = 0.02  # of the entries; up to it, nothing is adapted
HIGH_WRONG_SHARE = 0.2  # from it on, the factor is the highest
MAX_FACTOR = 2.0  # by which a strategy spares more turns than the preset says; it never spares fewer
MIN_MODEL_RUNS = 10  # of a strategy with a model, before its costs count


class StrategyFeedback(NamedTuple):
    """The counts of one strategy: its entries, those with a wrong cut, runs with a model, and what these cost."""

    strategy: str
    entries: int
    wrong: int
    model_runs: int
    model_saved: int
    model_spent: int

    @property
    def factor(self) -> float:
        """Return by how much the strategy waits longer than its preset says, from 1 to MAX_FACTOR.

        >>> [StrategyFeedback("threshold", 100, wrong, 0, 0, 0).factor for wrong in (1, 11, 50)]
        [1.0, 1.5, 2.0]
        """
        if self.entries < MIN_ENTRIES:
            return 1.0
        excess = (self.wrong / self.entries - USUAL_WRONG_SHARE) / (HIGH_WRONG_SHARE - USUAL_WRONG_SHARE)
        return round(1 + (MAX_FACTOR - 1) * min(max(excess, 0.0), 1.0), 2)

    @property
    def is_model_worthwhile(self) -> bool:
        """Return whether summaries by a model save more tokens than they cost; True as long as that is unknown."""
        return self.model_runs < MIN_MODEL_RUNS or self.model_spent < self.model_saved


def adapt_preset(
    preset: CompactionPreset, feedback: Sequence[StrategyFeedback], *, max_tokens: int
) -> CompactionPreset:
    """Return the preset in which strategies with wrong cuts spare more turns; the preset itself if none has.

    The preset is also kept if the adapted one could never fire in a conversation of `max_tokens`.
    """
    factors: Mapping[str, float] = {one.strategy: one.factor for one in feedback}
    strategies = tuple(_scale(strategy, factors.get(strategy.name, 1.0)) for strategy in preset.strategies)
    adapted = replace(preset, strategies=strategies)
    return preset if max_tokens < 1 or find_problem(adapted, max_tokens=max_tokens) else adapted


def list_without_model(feedback: Sequence[StrategyFeedback]) -> frozenset[str]:
    """Return the strategies whose summaries by a model cost more tokens than they save."""
    return frozenset(one.strategy for one in feedback if not one.is_model_worthwhile)


def _scale(strategy: CompactionStrategy, factor: float) -> CompactionStrategy:
    match strategy:
        case MaskOutputs(turns=turns):
            return replace(strategy, turns=round(turns * factor))
        case SummarizeToolCalls(age=age):
            return replace(strategy, age=round(age * factor))
        case SummarizeOldest(recent=recent):
            return replace(strategy, recent=round(recent * factor))
        case BatchTurns(back=back):
            return replace(strategy, back=round(back * factor))
        case MergeSummaries(keep=keep, held=held):
            return replace(strategy, keep=round(keep * factor), held=round(held * factor))
        case _:
            return strategy
