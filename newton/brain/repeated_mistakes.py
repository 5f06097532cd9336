"""Search for decisions that repeat a known failure. Pure.

A decision does not count if it mentions the failure, or if the failure was shown when it was made.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from newton.brain.draft import NEAR_COSINE
from newton.brain.outcomes import Verdict

# Measured on freely worded decisions: the same choice has a similarity of 0.7 and more, the same mistake in other words
# 0.57 ("skip the review", "merge without one"), the opposite choice up to 0.64. So below NEAR_COSINE a category and a
# tag must be shared too.
NEAR_COSINE_SHARED = 0.5
# As many as the preview of a decision shows: answering one of them shows that the mistake is known.
MAX_NEAREST = 5
BLOCK_SIZE = 256  # decisions compared at once, to bound the memory

Vector = NDArray[np.float32]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecisionVector:
    """A decision to compare with others. `vector` is None until its text is embedded, and after the text is erased."""

    decision_id: UUID
    decided_at: datetime
    reviewed_at: datetime | None
    outcome: Verdict | None
    category: str
    vector: Vector | None


class _Columns(NamedTuple):
    """Decisions as arrays with one element for each: times in seconds, and categories as numbers.

    For a decision without an outcome, `reviewed` is infinite.
    """

    vector: Vector
    decided: FloatArray
    reviewed: FloatArray
    category: IndexArray


class FailurePair(NamedTuple):
    """A decision, and a similar one that was known to have failed when the first was made."""

    decision_id: UUID
    failed_id: UUID
    cosine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AssessedPair:
    """A decision and a similar failure, with evidence on whether the failure was known when the decision was made.

    `answered` means that both are linked by hand, or that the decision or its thoughts contain the id of the failure.
    `shown` means that they were linked automatically.
    """

    pair: FailurePair
    decided_at: datetime
    outcome: Verdict | None
    description: str | None
    failed_description: str | None
    shares_tag: bool
    answered: bool
    shown: bool

    @property
    def is_close(self) -> bool:
        return self.pair.cosine >= NEAR_COSINE or self.shares_tag


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatReport:
    """The counts of decisions compared, without a vector, near a known failure, and with an answer to that failure.

    `repeated` holds the nearest failure of each decision that is near a failure, but neither answers nor was shown one.
    """

    compared: int
    missing: int
    near: int
    answered: int
    repeated: tuple[AssessedPair, ...]


def find_near_failures(decisions: Sequence[DecisionVector], *, since: datetime) -> list[FailurePair]:
    """Return similar decisions that were known to have failed when a decision was made, nearest first.

    Only decisions made since `since` are compared, each with at most MAX_NEAREST failures. A failure in another
    category must have a cosine similarity of at least NEAR_COSINE.
    """
    new = [one for one in decisions if one.vector is not None and one.decided_at >= since]
    failed = [one for one in decisions if one.vector is not None and one.outcome == "failure"]
    if not new or not failed:
        return []
    numbers = {category: number for number, category in enumerate({one.category for one in (*new, *failed)})}
    later, earlier = _to_columns(new, numbers), _to_columns(failed, numbers)
    found: list[FailurePair] = []
    for start in range(0, len(new), BLOCK_SIZE):
        part = slice(start, start + BLOCK_SIZE)
        cosines = later.vector[part] @ earlier.vector.T
        alike = _is_near(cosines, later.category[part], earlier.category)
        alike &= _failed_before(later.decided[part], earlier)
        for one, cosine, near in zip(new[part], cosines, alike, strict=True):
            nearest = _nearest_indices(cosine, near)
            found += [FailurePair(one.decision_id, failed[n].decision_id, float(cosine[n])) for n in nearest]
    return found


def summarize_repeats(decisions: Iterable[DecisionVector], assessed_pairs: Iterable[AssessedPair]) -> RepeatReport:
    """Count how many of the decisions resemble an earlier one that failed.

    Each assessed pair joins a decision to an earlier one; the pairs of one decision must follow one another.
    """
    own = list(decisions)
    compared = {one.decision_id for one in own if one.vector is not None}
    pairs = [pair for pair in assessed_pairs if pair.pair.decision_id in compared and pair.is_close]
    groups = [list(group) for _, group in groupby(pairs, key=lambda pair: pair.pair.decision_id)]
    repeated = [group[0] for group in groups if not any(pair.answered or pair.shown for pair in group)]
    return RepeatReport(
        compared=len(compared),
        missing=len(own) - len(compared),
        near=len(groups),
        answered=sum(any(pair.answered for pair in group) for group in groups),
        repeated=tuple(sorted(repeated, key=lambda pair: pair.decided_at)),
    )


def _to_columns(decisions: Sequence[DecisionVector], category_numbers: Mapping[str, int]) -> _Columns:
    return _Columns(
        vector=np.stack([one.vector for one in decisions if one.vector is not None]),
        decided=np.array([one.decided_at.timestamp() for one in decisions]),
        reviewed=np.array([one.reviewed_at.timestamp() if one.reviewed_at else np.inf for one in decisions]),
        category=np.array([category_numbers[one.category] for one in decisions]),
    )


def _failed_before(decided: FloatArray, failed: _Columns) -> BoolArray:
    return (failed.reviewed <= decided[:, None]) & (failed.decided < decided[:, None])


def _is_near(cosines: Vector, categories: IndexArray, failed_categories: IndexArray) -> BoolArray:
    return (cosines >= NEAR_COSINE) | ((cosines >= NEAR_COSINE_SHARED) & (categories[:, None] == failed_categories))


def _nearest_indices(cosines: Vector, near: BoolArray) -> list[int]:
    """Return the indices of the failures that are `near`, at most MAX_NEAREST, the most similar first."""
    indices = np.flatnonzero(near)
    if len(indices) > MAX_NEAREST:
        indices = indices[np.argpartition(-cosines[indices], MAX_NEAREST - 1)[:MAX_NEAREST]]
    nearest: list[int] = indices[np.argsort(-cosines[indices], kind="stable")].tolist()
    return nearest
