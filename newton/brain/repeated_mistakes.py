"""Search for decisions that repeat a known failure for the same reason. Pure.

A decision repeats a failure if it is about the same, gives only kinds of reasons that the failed decision gave as well,
and no like decision had succeeded with such reasons. It does not count if it succeeded itself, mentions the failure, or
was shown the failure when it was made.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from newton.brain.draft import NEAR_COSINE, ReasonKind
from newton.brain.outcomes import Verdict

# Measured on freely worded decisions of several authors: the same mistake on another subject has a similarity of 0.3 to
# 0.4, and a decision that learnt from the failure up to 0.6. So the kinds of reasons tell them apart, and similarity
# only says that both are about the same. Decisions of two categories must be similar by wording.
NEAR_COSINE_SHARED = 0.3
DEFAULT_KIND: ReasonKind = "analysis"  # of reasons whose kind nobody stated, so that sharing it says little
NEAR_COSINE_DEFAULT_KIND = 0.5
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
    reason_kinds: frozenset[ReasonKind]
    vector: Vector | None


class _Columns(NamedTuple):
    """Decisions as arrays with one element for each: times in seconds, categories as numbers, reason kinds as bits.

    For a decision without an outcome, `reviewed` is infinite.
    """

    vector: Vector
    decided: FloatArray
    reviewed: FloatArray
    category: IndexArray
    kinds: IndexArray


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
    answered: bool
    shown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatReport:
    """The counts of decisions compared, without a vector, near a known failure, and with an answer to that failure.

    A decision that succeeded is near a failure only if it answers it. `repeated` holds the nearest failure of each
    decision that is near a failure, but neither answers nor was shown one.
    """

    compared: int
    missing: int
    near: int
    answered: int
    repeated: tuple[AssessedPair, ...]


def find_near_failures(decisions: Sequence[DecisionVector], *, since: datetime) -> list[FailurePair]:
    """Return like decisions that were known to have failed when a decision was made, nearest first.

    Only decisions made since `since` are compared, each with at most MAX_NEAREST failures. A decision that was like one
    with a known success has none: then the outcome does not follow from the reasons.
    """
    new = [one for one in decisions if one.vector is not None and one.decided_at >= since]
    failed = [one for one in decisions if one.vector is not None and one.outcome == "failure"]
    succeeded = [one for one in decisions if one.vector is not None and one.outcome == "success"]
    if not new or not failed:
        return []
    codes = _Codes.of((*new, *failed, *succeeded))
    failures = codes.to_columns(failed)
    successes = codes.to_columns(succeeded) if succeeded else None
    found: list[FailurePair] = []
    for start in range(0, len(new), BLOCK_SIZE):
        block = new[start : start + BLOCK_SIZE]
        later = codes.to_columns(block)
        cosines, near = _compare(later, failures)
        if successes is not None:
            near &= ~_compare(later, successes)[1].any(axis=1, keepdims=True)
        for one, cosine, is_near in zip(block, cosines, near, strict=True):
            nearest = _nearest_indices(cosine, is_near)
            found += [FailurePair(one.decision_id, failed[n].decision_id, float(cosine[n])) for n in nearest]
    return found


def summarize_repeats(decisions: Iterable[DecisionVector], assessed_pairs: Iterable[AssessedPair]) -> RepeatReport:
    """Count how many of the decisions repeat an earlier one that failed.

    Each assessed pair joins a decision to an earlier one; the pairs of one decision must follow one another.
    """
    own = list(decisions)
    compared = {one.decision_id for one in own if one.vector is not None}
    pairs = [pair for pair in assessed_pairs if pair.pair.decision_id in compared]
    groups = [list(group) for _, group in groupby(pairs, key=lambda pair: pair.pair.decision_id)]
    answered = sum(any(pair.answered for pair in group) for group in groups)
    ignoring = [
        group for group in groups if group[0].outcome in (None, "failure") and not any(pair.answered for pair in group)
    ]
    repeated = [group[0] for group in ignoring if not any(pair.shown for pair in group)]
    return RepeatReport(
        compared=len(compared),
        missing=len(own) - len(compared),
        near=answered + len(ignoring),
        answered=answered,
        repeated=tuple(sorted(repeated, key=lambda pair: pair.decided_at)),
    )


class _Codes(NamedTuple):
    """The numbers of categories, and the bits of kinds of reasons."""

    categories: Mapping[str, int]
    kinds: Mapping[ReasonKind, int]

    @classmethod
    def of(cls, decisions: Sequence[DecisionVector]) -> "_Codes":
        """Number the categories and kinds of decisions; the bit 1 is that of DEFAULT_KIND."""
        categories = {category: number for number, category in enumerate({one.category for one in decisions})}
        kinds = frozenset[ReasonKind]().union(*(one.reason_kinds for one in decisions)) - {DEFAULT_KIND}
        return cls(categories, {kind: 1 << number for number, kind in enumerate((DEFAULT_KIND, *sorted(kinds)))})

    def to_columns(self, decisions: Sequence[DecisionVector]) -> _Columns:
        return _Columns(
            vector=np.stack([one.vector for one in decisions if one.vector is not None]),
            decided=np.array([one.decided_at.timestamp() for one in decisions]),
            reviewed=np.array([one.reviewed_at.timestamp() if one.reviewed_at else np.inf for one in decisions]),
            category=np.array([self.categories[one.category] for one in decisions]),
            kinds=np.array([sum(self.kinds[kind] for kind in one.reason_kinds) for one in decisions]),
        )


def _compare(new: _Columns, reviewed: _Columns) -> tuple[Vector, BoolArray]:
    """Return the cosine similarities, and which of the reviewed decisions were known and like each of the new ones."""
    cosines = new.vector @ reviewed.vector.T
    is_known = (reviewed.reviewed <= new.decided[:, None]) & (reviewed.decided < new.decided[:, None])
    kinds = new.kinds[:, None]
    same_reasons = (kinds > 0) & ((kinds & ~reviewed.kinds) == 0)
    least = np.where(new.kinds == 1, NEAR_COSINE_DEFAULT_KIND, NEAR_COSINE_SHARED)[:, None]
    same_category = new.category[:, None] == reviewed.category
    return cosines, is_known & same_reasons & ((cosines >= NEAR_COSINE) | ((cosines >= least) & same_category))


def _nearest_indices(cosines: Vector, near: BoolArray) -> list[int]:
    """Return the indices of the failures that are `near`, at most MAX_NEAREST, the most similar first."""
    indices = np.flatnonzero(near)
    if len(indices) > MAX_NEAREST:
        indices = indices[np.argpartition(-cosines[indices], MAX_NEAREST - 1)[:MAX_NEAREST]]
    nearest: list[int] = indices[np.argsort(-cosines[indices], kind="stable")].tolist()
    return nearest
