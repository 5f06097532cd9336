"""Figures of the leaderboard, computed from receipts: evidence with confidence intervals, tokens and latency. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.dataset import DatasetConversation
from bench.leaderboard.public_sets import PublicDataset, Split
from bench.leaderboard.receipts import ContextReceipt, ReceiptHeader
from bench.leaderboard.systems import DEFAULT, FULL, FULL_SHORT, VARIANT_TITLES
from bench.scoring import mean, percentile

SEED = 7
RESAMPLES = 2_000
CONFIDENCE = 0.95
REFERENCE = "newton"

Floats = NDArray[np.float64]


class BudgetScore(NamedTuple):
    """The results of one system at one budget: means over questions, with a confidence interval of the evidence.

    `verbatim` is the evidence of which the context has the words. `difference` is the paired difference to Newton with
    the same selection and its confidence interval; None for Newton itself.
    """

    evidence: float
    interval: tuple[float, float]
    verbatim: float
    tokens: float
    items: float
    difference: tuple[float, float, float] | None = None

    @property
    def beats_newton(self) -> bool:
        return self.difference is not None and self.difference[0] > 0

    @property
    def clearly_beats_newton(self) -> bool:
        """Return whether the confidence interval of the difference is above zero."""
        return self.difference is not None and self.difference[1] > 0


class ContextLatency(NamedTuple):
    """Medians over contexts: milliseconds, multiples of embedding the question, and the latter relative to Newton's."""

    ms: float
    embeddings: float
    to_newton: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRow:
    """The results of a system in one variant on the questions of one split.

    `incomplete` is the number of contexts that lack a source of memories; None if the system has no sources.
    """

    system: str
    variant: str
    title: str
    budgets: dict[int, BudgetScore]
    types: dict[str, dict[int, BudgetScore]]
    latency: ContextLatency
    incomplete: int | None

    @property
    def is_default(self) -> bool:
        return self.variant == DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitResults:
    """The results of all systems on one split of a data set."""

    dataset: PublicDataset
    split: Split
    conversations: list[str]
    questions: int
    types: dict[str, int]
    rows: list[SystemRow]


class MeasuredRows(NamedTuple):
    """The receipts of one system on one split, in the same order of questions for all systems."""

    system: str
    title: str
    receipts: Sequence[ContextReceipt]
    headers: Sequence[ReceiptHeader]


def summarize_split(
    dataset: PublicDataset, split: Split, conversations: Sequence[DatasetConversation], measured: Sequence[MeasuredRows]
) -> SplitResults:
    """Return the results of a split. Newton, if measured, is what the others are compared with."""
    ordered = sorted(measured, key=lambda one: one.system != REFERENCE)
    types = _count_types(ordered[0].receipts)
    rows, references = list[SystemRow](), dict[bool, _Variant]()
    for system in ordered:
        for name in dict.fromkeys(receipt.variant for receipt in system.receipts):
            variant = _Variant([one for one in system.receipts if one.variant == name])
            if system.system == REFERENCE:
                references[name == DEFAULT] = variant
            reference = None if system.system == REFERENCE else references.get(name == DEFAULT)
            baseline = references.get(False)
            rows.append(_make_row(system, name, variant, reference, baseline))
    questions = sum(types.values())
    return SplitResults(
        dataset=dataset,
        split=split,
        conversations=[one.name for one in conversations],
        questions=questions,
        types=types,
        rows=rows,
    )


class _Variant:
    """The receipts of one system in one variant, by budget, in the order of the questions."""

    def __init__(self, receipts: Sequence[ContextReceipt]) -> None:
        self.receipts = receipts
        self.budgets = {
            budget: [one for one in receipts if one.budget == budget]
            for budget in sorted({one.budget for one in receipts})
        }

    def select(self, budget: int, kind: str | None) -> list[ContextReceipt]:
        return [one for one in self.budgets[budget] if kind in (None, one.type)]

    @property
    def embeddings(self) -> float:
        return percentile([one.ms / one.embed_ms for one in self.receipts if one.embed_ms], 0.5)


def _make_row(
    system: MeasuredRows, name: str, variant: _Variant, reference: _Variant | None, baseline: _Variant | None
) -> SystemRow:
    def score(budget: int, kind: str | None = None) -> BudgetScore:
        return _score(variant.select(budget, kind), reference.select(budget, kind) if reference else None)

    kinds = _count_types(system.receipts)
    own, complete = variant.embeddings, [one.is_complete for one in variant.receipts]
    to_newton = own / baseline.embeddings if baseline and baseline.embeddings else None
    return SystemRow(
        system=system.system,
        variant=name,
        title=system.title + VARIANT_TITLES.get(name, f", {name}"),
        budgets={budget: score(budget) for budget in variant.budgets},
        types={kind: {budget: score(budget, kind) for budget in variant.budgets} for kind in kinds},
        latency=ContextLatency(percentile([one.ms for one in variant.receipts], 0.5), own, to_newton),
        incomplete=None if None in complete else complete.count(False),
    )


def _score(receipts: Sequence[ContextReceipt], reference: Sequence[ContextReceipt] | None) -> BudgetScore:
    evidence = np.array([one.evidence for one in receipts])
    difference = None
    if reference is not None:
        paired = evidence - np.array([one.evidence for one in reference])
        difference = (float(paired.mean()), *bootstrap_interval(paired))
    return BudgetScore(
        float(evidence.mean()),
        bootstrap_interval(evidence),
        mean([one.verbatim_evidence for one in receipts]),
        mean([float(one.tokens) for one in receipts]),
        mean([float(one.items) for one in receipts]),
        difference,
    )


def bootstrap_interval(values: Floats) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the mean, from RESAMPLES samples of the questions with SEED.

    >>> bootstrap_interval(np.array([1.0, 1.0, 1.0]))
    (1.0, 1.0)
    """
    chosen = np.random.default_rng(SEED).integers(len(values), size=(RESAMPLES, len(values)))
    means = values[chosen].mean(axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def _count_types(receipts: Sequence[ContextReceipt]) -> dict[str, int]:
    """Return the number of questions of each type, by name."""
    first = receipts[0]
    kinds = [one.type for one in receipts if (one.variant, one.budget) == (first.variant, first.budget)]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}


class BetterRival(NamedTuple):
    """A figure at which another system is better than Newton with the same selection."""

    title: str
    where: str
    budget: int
    difference: tuple[float, float, float]


def list_better(results: SplitResults) -> list[BetterRival]:
    """Return all figures, over all questions and by type, at which another system is better than Newton."""
    better = list[BetterRival]()
    for row in visible_rows(results):
        groups: Mapping[str, Mapping[int, BudgetScore]] = {"all questions": row.budgets, **row.types}
        for where, scores in groups.items():
            better += [
                BetterRival(row.title, where, budget, score.difference)
                for budget, score in scores.items()
                if score.beats_newton and score.difference
            ]
    return better


def visible_rows(results: SplitResults) -> list[SystemRow]:
    """Return the rows of the tables: without those of shortened messages where shortening changes no figure."""
    whole = {row.system: row.budgets for row in results.rows if row.variant == FULL}
    return [row for row in results.rows if row.variant != FULL_SHORT or not _is_equal(row.budgets, whole[row.system])]


def _is_equal(scores: Mapping[int, BudgetScore], others: Mapping[int, BudgetScore]) -> bool:
    return all(scores[budget].evidence == others[budget].evidence for budget in scores)


def find_middle(budgets: Sequence[int]) -> int:
    """Return the budget of the tables by type: the middle one."""
    return sorted(budgets)[len(budgets) // 2]


def best_titles(rows: Sequence[SystemRow], budget: int) -> set[str]:
    """Return the titles of the rows with the most evidence at a budget."""
    best = max((row.budgets[budget].evidence for row in rows), default=0.0)
    return {row.title for row in rows if row.budgets[budget].evidence == best}
