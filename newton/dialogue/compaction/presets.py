"""Compaction presets: named lists of strategies, their validation, and their adaptation to feedback. Pure.

A cut (a compaction entry) counts as wrong if its messages are restored, or one of them is read in full again.
"""

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from newton.dialogue.compaction.strategies import (
    MIN_GAIN_SHARE,
    MIN_SUMMARY_TOKENS,
    BatchTurns,
    CompactionStrategy,
    MaskOutputs,
    MergeSummaries,
    SummarizeOldest,
    SummarizeToolCalls,
)
from newton.dialogue.view import MESSAGE_TOKENS
from newton.errors import InputError

MIN_TURN_TOKENS = MESSAGE_TOKENS + 1  # of a turn: one message of one token
MIN_SHARE = 0.6  # of the limit, below which nothing is shortened: each change sends what follows it anew


@dataclass(frozen=True, slots=True)
class CompactionPreset:
    """Compaction strategies (rules that select messages to shorten), in the order in which they run.

    `max_tokens` is the maximum of the conversation unless the setting `conversation_tokens` gives another.
    """

    strategies: tuple[CompactionStrategy, ...]
    max_tokens: int = 100_000

    @property
    def min_share(self) -> float:
        """Return the share of the token limit below which nothing is shortened: at most MIN_SHARE."""
        shares = (one.share for one in self.strategies if isinstance(one, MaskOutputs | SummarizeOldest))
        return min([MIN_SHARE, *shares])


# Specific strategies come first, broad ones last.
PRESETS: Mapping[str, CompactionPreset] = {
    "default": CompactionPreset(
        (MaskOutputs(), SummarizeToolCalls(), SummarizeOldest(), BatchTurns(), MergeSummaries())
    ),
    "long": CompactionPreset(
        (MaskOutputs(), SummarizeToolCalls(age=5), SummarizeOldest(share=0.75), BatchTurns(), MergeSummaries()), 150_000
    ),
    "conservative": CompactionPreset(
        (MaskOutputs(share=0.8), SummarizeToolCalls(age=20), SummarizeOldest(share=0.9), BatchTurns(), MergeSummaries())
    ),
    "none": CompactionPreset(()),
}
STRATEGIES: Mapping[str, type[MaskOutputs | SummarizeToolCalls | SummarizeOldest | BatchTurns | MergeSummaries]] = {
    "mask_outputs": MaskOutputs,
    "tool_calls": SummarizeToolCalls,
    "threshold": SummarizeOldest,
    "goal_batch": BatchTurns,
    "goal_merge": MergeSummaries,
}
_STRATEGY_PATTERN = re.compile(r"\s*(\w+)\s*(?:\(([^)]*)\))?\s*")


class PresetProblem(NamedTuple):
    """A reason why a strategy can never fire or never ends, and the remedy."""

    reason: str
    remedy: str


def parse_preset(text: str) -> CompactionPreset:
    """Parse the name of a preset, or a list of strategies, such as `tool_calls(age=5), threshold(share=0.7)`.

    Raises InputError for an unknown name or setting.
    """
    if text in PRESETS:
        return PRESETS[text]
    parts = re.split(r",(?![^(]*\))", text)
    return CompactionPreset(strategies=tuple(_parse_strategy(part) for part in parts))


def parse_request_preset(text: str) -> CompactionPreset:
    """Parse a preset that a request or a command names, for a conversation of any size.

    Raises InputError for an unknown name or setting, and for a strategy that can never fire or never ends.
    """
    preset = parse_preset(text)
    if problem := find_problem(preset, max_tokens=sys.maxsize):
        raise InputError(f"{problem.reason}.", hint=problem.remedy)
    return preset


def find_problem(preset: CompactionPreset, *, max_tokens: int) -> PresetProblem | None:
    """Return why a strategy can never fire or never ends in a conversation of at most `max_tokens`; else None.

    >>> find_problem(parse_preset("threshold(share=2)"), max_tokens=100_000)
    PresetProblem(reason='threshold(share=2) never fires: ...', remedy='Set share to at most 1.')
    """
    problems = (
        problem for strategy in preset.strategies for problem in _list_problems(strategy, preset.strategies, max_tokens)
    )
    return next(problems, None)


def _list_problems(
    strategy: CompactionStrategy, others: Sequence[CompactionStrategy], max_tokens: int
) -> Iterator[PresetProblem]:
    """Yield why a strategy can never fire, or never ends, beside the `others`."""
    match strategy:
        case MaskOutputs():
            yield from _check_share("mask_outputs", strategy.share)
            if strategy.least >= max_tokens:
                reason = f"mask_outputs(least={strategy.least}) never fires: no such output fits into the conversation"
                yield PresetProblem(reason, f"Set least below {max_tokens:,}.")
        case SummarizeToolCalls():
            yield from _check_turns("tool_calls", "age", strategy.age, max_tokens)
        case SummarizeOldest():
            yield from _check_oldest(strategy, max_tokens)
        case BatchTurns():
            yield from _check_batch(strategy, others, max_tokens)
        case MergeSummaries():
            yield from _check_merge(strategy, others, max_tokens)
        case _:
            pass


def _check_share(name: str, share: float) -> Iterator[PresetProblem]:
    if share > 1:
        reason = f"{name}(share={share:g}) never fires: a conversation never has {share:g} times its limit"
        yield PresetProblem(reason, "Set share to at most 1.")


def _check_turns(name: str, setting: str, turns: int, max_tokens: int) -> Iterator[PresetProblem]:
    if turns * MIN_TURN_TOKENS >= max_tokens:
        reason = f"{name}({setting}={turns}) never fires: so many turns do not fit into {max_tokens:,} tokens"
        yield PresetProblem(reason, f"Set {setting} below {max_tokens // MIN_TURN_TOKENS:,}.")


def _check_oldest(strategy: SummarizeOldest, max_tokens: int) -> Iterator[PresetProblem]:
    share, target = strategy.share, strategy.target
    yield from _check_share("threshold", share)
    if target > share - MIN_GAIN_SHARE:
        reason = f"threshold(share={share:g}, target={target:g}) never ends: it would run again at the next turn"
        remedy = f"Set target to at most {max(share - MIN_GAIN_SHARE, 0):g}, or share to a higher value."
        yield PresetProblem(reason, remedy)
    yield from _check_turns("threshold", "recent", strategy.recent, max_tokens)


def _check_batch(
    strategy: BatchTurns, others: Sequence[CompactionStrategy], max_tokens: int
) -> Iterator[PresetProblem]:
    fewest, most_turns = strategy.fewest, strategy.most_turns
    if fewest > most_turns:
        reason = f"goal_batch(fewest={fewest}, most_turns={most_turns}) never fires: a batch has too few turns"
        yield PresetProblem(reason, f"Set most_turns to at least {fewest}.")
    if not any(isinstance(one, SummarizeToolCalls | SummarizeOldest) for one in others):
        reason = "goal_batch never fires alone: it batches the summaries of other strategies"
        yield PresetProblem(reason, "Add tool_calls or threshold.")
    yield from _check_turns("goal_batch", "back", strategy.back, max_tokens)


def _check_merge(
    strategy: MergeSummaries, others: Sequence[CompactionStrategy], max_tokens: int
) -> Iterator[PresetProblem]:
    if strategy.held * MIN_SUMMARY_TOKENS >= max_tokens:
        reason = f"goal_merge(held={strategy.held}) never fires: so many summaries do not fit into the conversation"
        yield PresetProblem(reason, f"Set held below {max_tokens // MIN_SUMMARY_TOKENS:,}.")
    target = min((one.target for one in others if isinstance(one, SummarizeOldest)), default=1.0)
    if strategy.share >= target:
        reason = f"goal_merge(share={strategy.share:g}) never ends: one summary may fill the conversation"
        yield PresetProblem(reason, f"Set share below {target:g}.")


def _parse_strategy(text: str) -> CompactionStrategy:
    """Parse one strategy with its settings, such as `tool_calls(age=5)`. Raises InputError for an unknown one."""
    named = _STRATEGY_PATTERN.fullmatch(text)
    kind = STRATEGIES.get(named[1]) if named else None
    if named and named[1] in PRESETS:
        raise InputError(
            f"{named[1]!r} is a preset: it cannot be combined with strategies or settings.",
            hint=f"Give the preset alone, or strategies: {', '.join(STRATEGIES)}.",
        )
    if named is None or kind is None:
        known = ", ".join((*PRESETS, *STRATEGIES))
        raise InputError(f"{text.strip()!r} is not a compaction strategy.", hint=f"Use one of: {known}.")
    defaults: dict[str, float] = {key: value for key, value in asdict(kind()).items() if key != "name"}
    given: dict[str, Any] = {}
    for setting in filter(None, (part.strip() for part in (named[2] or "").split(","))):
        name, _, value = setting.partition("=")
        try:
            given[name.strip()] = _parse_number(value, type(defaults[name.strip()]))
        except (KeyError, ValueError):
            settings = ", ".join(f"{key}={value}" for key, value in defaults.items())
            hint = f"The settings of the strategy, with their defaults, are {settings}."
            raise InputError(f"{setting!r} is not a valid setting of {named[1]}.", hint=hint) from None
    return kind(**given)


def _parse_number(text: str, kind: type[float]) -> float:
    number = kind(text)
    if not 0 <= number < math.inf:
        raise ValueError(text)
    return number


MIN_ENTRIES = 20  # of a strategy; fewer say nothing about it
USUAL_WRONG_SHARE = 0.02  # of the entries; up to it, nothing is adapted
HIGH_WRONG_SHARE = 0.2  # from it on, the factor is the highest
MAX_FACTOR = 2.0  # by which a strategy spares more turns than the preset says; it never spares fewer
MIN_MODEL_RUNS = 10  # of a strategy with a model, before its costs count


class StrategyFeedback(NamedTuple):
    """The counts of one strategy: its entries (cuts), the wrong ones, its runs with a model, and their tokens.

    A cut is wrong if its messages were restored, or one of them was read in full again.
    """

    strategy: str
    entries: int
    wrong: int
    model_runs: int
    model_saved: int
    model_spent: int

    @property
    def factor(self) -> float:
        """Return the factor, from 1 to MAX_FACTOR, by which the strategy waits longer because of wrong cuts.

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
    """Return the preset in which strategies with wrong cuts spare more recent turns; the preset itself if none has.

    A cut is wrong if its messages were restored or read again. The preset is also kept if the adapted one could never
    fire in a conversation of `max_tokens`.
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
