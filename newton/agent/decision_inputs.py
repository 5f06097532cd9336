"""Inputs on decisions and guardrails, shared by the HTTP API, MCP and the tools of the model."""

from datetime import datetime

from pydantic import Field

from newton.agent.field_types import CleanText, Name
from newton.agent.inputs import ToolInput
from newton.brain.draft import DecisionDraft, DecisionReason, ReasonKind, Stakes
from newton.brain.outcomes import Verdict


class ReasonInput(ToolInput):
    """One reason for a decision."""

    kind: ReasonKind = "analysis"
    text: CleanText


class DecisionInput(ToolInput):
    """Record a decision before you act on it. Guardrails and censors may block it; then change it or do something
    else. The result lists similar decisions and their outcomes."""

    description: CleanText = Field(description="The decision, in one sentence.")
    confidence: float = Field(ge=0, le=1, description="Probability that it succeeds, from 0 to 1.")
    stakes: Stakes = Field("medium", description="How much depends on it.")
    category: Name = Field("process", description="The kind of decision, e.g. architecture.")
    reasons: tuple[ReasonInput, ...] = Field(
        (), max_length=50, description="The reasons. Reasons of different kinds improve its quality score."
    )
    alternatives: tuple[CleanText, ...] = Field((), max_length=50, description="The other options considered.")
    expected: CleanText | None = Field(None, description="The expected result.")
    context: CleanText | None = Field(None, description="The situation in which it is made.")

    def to_draft(self, now: datetime) -> DecisionDraft:
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
    """The outcome of a decision."""

    outcome: Verdict = Field(description="How it turned out.")
    lesson: CleanText | None = Field(None, description="A lesson for similar decisions.")


class ReviewInput(OutcomeInput):
    """Record the outcome of a decision once it is known. It can be recorded only once."""

    decision_id: str = Field(description="The id of the decision, or its last letters.")


class ThoughtInput(ToolInput):
    """A thought on a decision."""

    text: CleanText = Field(description="The thought, in one or a few sentences.")


class ThinkInput(ThoughtInput):
    """Record a thought on an open decision: a step of the deliberation, a doubt, or what has come to light since."""

    decision_id: str = Field(description="The id of the decision, or its last letters.")


class ShowDecisionInput(ToolInput):
    """Show one decision in full: its reasons, alternatives, thoughts, amendments, links and its outcome."""

    decision_id: str = Field(description="The id of the decision, or its last letters.")


class ListDecisionsInput(ToolInput):
    """List the recorded decisions, newest first: all, only open ones, or only those whose review is due."""

    due: bool = Field(default=False, description="Only open decisions whose review is due, by due date.")
    open: bool = Field(default=False, description="Only decisions without an outcome.")
    category: Name | None = Field(None, description="Only decisions of this category.")
    limit: int = Field(20, ge=1, le=100, description="Maximum number of decisions.")


class ListOutcomesInput(ToolInput):
    """List the reviewed decisions with their outcomes and lessons, latest review first, to learn from them."""

    category: Name | None = Field(None, description="Only decisions of this category.")
    outcome: Verdict | None = Field(None, description="Only decisions with this outcome.")
    limit: int = Field(20, ge=1, le=100, description="Maximum number of decisions.")


class PreviewDecisionInput(DecisionInput):
    """Check a decision without recording it: similar decisions, base rate, censors, guardrails and its quality."""


class CalibrationInput(ToolInput):
    """Report how well the stated confidence of decisions matches their outcomes: Brier score, bias, reliability, and
    the corrected confidence to state."""

    category: str | None = Field(None, description="Only decisions of this category.")


class ListGuardrailsInput(ToolInput):
    """List the guardrails: the rules that a decision must satisfy before it is recorded, and their messages."""
