"""Drafts of decisions, their outcomes and quality, and the results of checking one before it is recorded. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, PlainSerializer, computed_field

Verdict = Literal["success", "partial", "failure"]

# The value of each outcome in shares and scores.
OUTCOME_SCORES: dict[Verdict, float] = {"success": 1.0, "partial": 0.5, "failure": 0.0}


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
    """A decision before it is recorded. `confidence` is the stated probability of success, from 0 to 1.

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

    `judged` counts reviewed decisions and `overdue` open ones whose review date has passed. `category_…` fields count
    only the decisions of the same category.
    """

    decisions: int = 0
    judged: int = 0
    open: int = 0
    overdue: int = 0
    success_rate: float | None = None
    brier: float | None = None
    category_judged: int = 0
    category_success_rate: float | None = None


MIN_WORDS = 3
MAX_CHARS = 200  # of a one-line description

# The weight of each part, and its score from 0 to 1. The weights add up to 1.
QUALITY_PARTS: Mapping[str, tuple[float, Callable[[DecisionDraft], float]]] = {
    "described": (0.15, lambda c: float(len(c.description.split()) >= MIN_WORDS and _is_single_line(c.description))),
    "reasoned": (0.20, lambda c: float(bool(c.reasons))),
    "independent reasons": (0.15, lambda c: float(len({reason.kind for reason in c.reasons}) >= 2)),
    "alternatives": (0.20, lambda c: min(len(c.alternatives), 2) / 2),
    "context": (0.10, lambda c: float(c.context is not None)),
    "expected": (0.10, lambda c: float(c.expected is not None)),
    "review date": (0.10, lambda c: float(c.look_again_at is not None)),
}

# what a draft lacks if its part has less than the full score; other parts are called by their names
PART_LABELS = {
    "described": f"a description of one line and at least {MIN_WORDS} words",
    "reasoned": "a reason",
    "independent reasons": "reasons of two kinds",
    "alternatives": "two alternatives",
    "expected": "expected outcome",
}


def score_parts(draft: DecisionDraft) -> dict[str, float]:
    """Return the score of each criterion of a draft's quality, by name. Their sum is the quality, in [0, 1]."""
    return {name: round(worth * share(draft), 4) for name, (worth, share) in QUALITY_PARTS.items()}


def format_quality(parts: Mapping[str, float]) -> str:
    """Return a sentence with the quality score, and one with what the draft lacks.

    `parts` are those of `score_parts`.
    """
    missing = [PART_LABELS.get(name, name) for name, score in parts.items() if score < QUALITY_PARTS[name][0]]
    return f"Quality {total_score(parts):.2f}." + (f" Missing: {', '.join(missing)}." if missing else "")


def total_score(parts: Mapping[str, float]) -> float:
    """Return the quality of a draft, the sum of its parts."""
    return round(sum(parts.values()), 4)


def _is_single_line(text: str) -> bool:
    return len(text) <= MAX_CHARS and "\n" not in text


GuardrailOutcome = Literal["passed", "warned", "blocked", "not_evaluated"]
# Text of a person is no part of the response to a request that writes, because that response is stored.
HiddenText = Annotated[str, Field(exclude=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailResult:
    """The result of evaluating one guardrail; `error` is the reason if it could not be evaluated.

    `message` is the text for the caller; "" if the decision passed the guardrail.
    """

    name: str
    verdict: GuardrailOutcome
    message: str = ""
    error: str | None = None

    @computed_field
    @property
    def blocks(self) -> bool:
        """True if the guardrail blocks the decision. A guardrail that could not be evaluated always blocks."""
        return self.verdict in ("blocked", "not_evaluated")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailCheck:
    """The results of all guardrails in force for a decision. `blocked` is true if one of them blocks it."""

    guardrails: Sequence[GuardrailResult]

    @computed_field
    @property
    def blocked(self) -> bool:
        return any(one.blocks for one in self.guardrails)

    @property
    def exit_status(self) -> int:
        """The exit status of the command that checks the decision: 1 if it is blocked, else 0."""
        return int(self.blocked)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastDecision:
    """A similar past decision, and its outcome if it was reviewed."""

    decision_id: UUID
    outcome: str | None
    cosine: Annotated[float, PlainSerializer(lambda cosine: round(cosine, 6))]
    text: HiddenText = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarDecision(PastDecision):
    """A similar past decision with its text, and its outcome if it was reviewed."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CensorMatch:
    """A censor that matches the decision, and whether it blocks or only warns."""

    memory_id: UUID
    blocks: bool
    text: HiddenText = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingCensor(CensorMatch):
    """A censor that matches the decision with its text, and whether it blocks or only warns."""

    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRate:
    """The success rate of reviewed decisions in the category. `success_rate` is null if none is reviewed."""

    category: str
    reviewed: int
    success_rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionCheck:
    """The results of checking a decision. `missing` maps each check that could not be made to the reason.

    `quality_parts` are the contributions of the criteria to `quality`. `overdue` is the number of all decisions whose
    review is overdue.
    """

    blocked: bool
    quality_parts: Mapping[str, float]
    precedents: Sequence[PastDecision]
    base_rate: BaseRate
    overdue: int
    censors: Sequence[CensorMatch]
    guardrails: Sequence[GuardrailResult]
    missing: Mapping[str, str]

    @computed_field
    @property
    def quality(self) -> float:
        return total_score(self.quality_parts)

    @property
    def exit_status(self) -> int:
        """The exit status of the command that checks the decision: 1 if it is blocked, else 0."""
        return int(self.blocked)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionPreview(DecisionCheck):
    """The results of checking a decision, with the texts of similar decisions and of censors."""

    precedents: Sequence[SimilarDecision]
    censors: Sequence[MatchingCensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedDecision(DecisionCheck):
    """A recorded decision and the results of its checks. `is_new` is false if an equal one was recorded before."""

    decision_id: UUID
    is_new: bool
