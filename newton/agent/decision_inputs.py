"""Inputs about decisions and guardrails, shared by the HTTP API, MCP and the tools of the model."""

from datetime import datetime
from typing import get_args

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from newton.agent.field_types import CleanText, Name
from newton.agent.inputs import ToolInput
from newton.brain.drafts import DecisionDraft, DecisionReason, ReasonKind, Stakes, Verdict
from newton.content.yaml_files import did_you_mean

REASON_KINDS: tuple[str, ...] = get_args(ReasonKind)


class ReasonInput(ToolInput):
    """A reason for a decision: its kind and its text."""

    kind: ReasonKind = "analysis"
    text: CleanText

    @model_validator(mode="before")
    @classmethod
    def _parse(cls, value: object) -> object:
        """Read a reason that is written as KIND:TEXT."""
        if not isinstance(value, str):
            return value
        kind, colon, text = map(str.strip, value.partition(":"))
        if not colon or kind not in REASON_KINDS or not text:
            remedy = did_you_mean(kind, REASON_KINDS) or "Write KIND:TEXT."
            hint = f"{remedy} The kinds are: {', '.join(REASON_KINDS)}"
            raise PydanticCustomError(
                "reason", "{value} is not a valid reason. {hint}", {"value": repr(value), "hint": hint}
            )
        return {"kind": kind, "text": text}


class DecisionInput(ToolInput):
    """Record a decision before you act on it. If a guardrail or a censor blocks it, change the decision or choose
    another option. The result lists similar decisions with their outcomes."""

    description: CleanText = Field(description="The decision, in one sentence.")
    confidence: float = Field(ge=0, le=1, description="Probability that the decision succeeds, from 0 to 1.")
    stakes: Stakes = Field("medium", description="How much depends on the decision.")
    category: Name = Field("process", description="The kind of decision, e.g. architecture.")
    reasons: tuple[ReasonInput, ...] = Field(
        (), max_length=50, description="The reasons. Reasons of different kinds raise the decision's quality score."
    )
    alternatives: tuple[CleanText, ...] = Field((), max_length=50, description="The other options considered.")
    expected: CleanText | None = Field(None, description="The expected result.")
    context: CleanText | None = Field(None, description="The situation in which the decision is made.")

    def to_draft(self, now: datetime) -> DecisionDraft:
        """Return the input as the draft of a decision made at `now`."""
        return DecisionDraft(
            description=self.description,
            confidence=self.confidence,
            at=now,
            context=self.context,
            alternatives=self.alternatives,
            reasons=tuple(DecisionReason(reason.kind, reason.text) for reason in self.reasons),
            category=self.category,
            stakes=self.stakes,
            expected=self.expected,
        )


class OutcomeInput(ToolInput):
    """The outcome of a decision, and the lesson from it."""

    outcome: Verdict = Field(description="How the decision turned out: success, partial or failure.")
    lesson: CleanText | None = Field(None, description="A lesson for similar decisions.")


class ReviewInput(OutcomeInput):
    """Record the outcome of a decision once it is known. It can be recorded only once."""

    decision_id: str = Field(description="The id of the decision, or the last characters of the id.")
