"""Decisions as values, before they are recorded and after they are reviewed. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from newton.brain.outcomes import Verdict

ReasonKind = Literal["analysis", "empirical", "analogy", "authority", "intuition", "elimination"]
Stakes = Literal["low", "medium", "high", "critical"]

NEAR_COSINE = 0.7  # minimum cosine similarity of decisions that are near each other


@dataclass(frozen=True, slots=True)
class DecisionReason:
    """A reason for a decision. Reasons of different kinds count as independent."""

    kind: ReasonKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionDraft:
    """A decision before it is recorded. `confidence` is between 0 and 1.

    `look_again_at` is the time at which the outcome should be known, `reviewed_by` the person who approved the draft.
    """

    description: str
    confidence: float
    at: datetime
    context: str | None = None
    alternatives: tuple[str, ...] = ()
    reasons: tuple[DecisionReason, ...] = ()
    tags: tuple[str, ...] = ()
    category: str = "process"
    stakes: Stakes = "medium"
    frame: str | None = None
    expected: str | None = None
    look_again_at: datetime | None = None
    reviewed_by: str | None = None
    ref: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewedDecision:
    """A decision with its outcome, as input of the calibration. It contains no free text."""

    decision_id: UUID
    decided_at: datetime
    reviewed_at: datetime
    confidence: float
    outcome: Verdict
    category: str
    stakes: Stakes
    frame: str | None
    reason_kinds: tuple[ReasonKind, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackRecord:
    """Counts and rates of an agent's earlier decisions at the time of a new one. Rates are None without reviews.

    `judged` counts reviewed decisions and `overdue` open ones whose review date has passed. `category_…` fields cover
    the decisions of the same category.
    """

    decisions: int = 0
    judged: int = 0
    open: int = 0
    overdue: int = 0
    success_rate: float | None = None
    brier: float | None = None
    category_judged: int = 0
    category_success_rate: float | None = None
