"""A decision as it is stated, before it is recorded; and what is known of it once its outcome is in. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

ReasonKind = Literal["analysis", "empirical", "analogy", "authority", "intuition", "elimination"]
Stakes = Literal["low", "medium", "high", "critical"]
Verdict = Literal["success", "partial", "failure"]

# What an outcome counts as, where shares and scores are computed.
OUTCOME_SCORES: dict[Verdict, float] = {"success": 1.0, "partial": 0.5, "failure": 0.0}

NEAR_COSINE = 0.7  # cosine from which on two decisions are near each other


@dataclass(frozen=True, slots=True)
class DecisionReason:
    """Why. Kinds are independent when they differ: two analyses are one kind of reason."""

    kind: ReasonKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionDraft:
    """What was chosen and why, as it is stated. `confidence` runs from 0 to 1 and is kept as stated.

    `look_again_at` is when its outcome should be known; `reviewed_by` is who else has looked at it before it was made.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedDecision:
    """A decision whose outcome is known: all that calibration is computed from. It holds no free text."""

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
    """The record of the agent at the moment of a choice. Rates are None while nothing was judged.

    `category_…` is about the decisions of the choice's own category; `overdue` counts those whose date to look again
    has passed without an outcome.
    """

    decisions: int = 0
    judged: int = 0
    open: int = 0
    overdue: int = 0
    success_rate: float | None = None
    brier: float | None = None
    category_judged: int = 0
    category_success_rate: float | None = None
