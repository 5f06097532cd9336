"""The results of checking a draft decision: similar decisions, track record, censors, guardrails and quality."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, PlainSerializer, computed_field

from newton.brain.quality import total_score

GuardrailOutcome = Literal["passed", "warned", "blocked", "not_evaluated"]
# Text of a person is no part of the response to a request that writes, because that response is stored.
HiddenText = Annotated[str, Field(exclude=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailResult:
    """The result of evaluating one guardrail; `error` is the reason if it could not be evaluated.

    `message` is that for the caller; it is empty if the decision passed the guardrail.
    """

    name: str
    verdict: GuardrailOutcome
    message: str = ""
    error: str | None = None

    @computed_field
    @property
    def blocks(self) -> bool:
        """True if the guardrail blocks the decision. One that could not be evaluated always blocks."""
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
        """The exit status of the command."""
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
        """The exit status of the command."""
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
