"""Inputs of the tools of the agent's own model. Their definitions are part of each request, so they are short."""

from datetime import datetime
from typing import Literal, cast, get_args

from pydantic import ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from newton.agent.field_types import CleanText, Name
from newton.agent.inputs import ToolInput
from newton.brain.drafts import DecisionDraft, DecisionReason, ReasonKind, Stakes, Verdict

MAX_STEPS = 20


class LookUpInput(ToolInput):
    """Search memory for what the context lacks, or read one item."""

    query: CleanText | None = None
    id: str | None = Field(None, description="#id")
    offset: SkipJsonSchema[int] = Field(0, ge=0)  # results name the next one


class CorrectInput(ToolInput):
    """Replace an item by what the user says, or end it."""

    id: str = Field(description="#id or its words")
    statement: CleanText | None = Field(None, description="none ends it")


class ForgetItemInput(ToolInput):
    """The user wants an item or words not kept."""

    id: str


class RuleInput(ToolInput):
    """The user's lasting rules and wishes: add (text), change (id, text), lift (id)."""

    text: CleanText | None = None
    id: str | None = Field(None, description="or its words")


class ReadPartInput(ToolInput):
    """Read or search a long text of this conversation. No arguments: list them."""

    name: Name | None = None
    lines: str | None = Field(None, max_length=50, description="'120-180' or '-50'")
    search: CleanText | None = Field(None, max_length=1_000, description="2 or 3 words")
    offset: SkipJsonSchema[int] = Field(0, ge=0, le=1_000)


class TaskInput(ToolInput):
    """Keep a plan for work of several steps; finish each with its result."""

    action: Literal["start", "finish", "block", "fail", "resume"]
    text: CleanText | None = Field(None, description="goal, result or reason")
    steps: list[CleanText] = Field([], max_length=MAX_STEPS)
    number: int | None = Field(None, ge=1, le=1_000_000_000)


class DecideInput(ToolInput):
    """Record a decision before acting on it; returns similar ones."""

    description: CleanText
    confidence: float = Field(ge=0, le=1)
    stakes: Stakes = "medium"
    reasons: list[CleanText] = Field([], max_length=50, description="'empirical: it worked'")

    def to_draft(self, now: datetime) -> DecisionDraft:
        return DecisionDraft(
            description=self.description,
            confidence=self.confidence,
            at=now,
            stakes=self.stakes,
            reasons=tuple(map(_to_reason, self.reasons)),
        )


class OutcomeOfDecisionInput(ToolInput):
    """Record how a decision turned out."""

    decision_id: str
    outcome: Verdict
    lesson: CleanText | None = None


class AnyInput(ToolInput):
    """Any arguments, for a tool that answers the same to all."""

    model_config = ConfigDict(extra="ignore")


def _to_reason(text: str) -> DecisionReason:
    """Return a reason from a text that may begin with its kind."""
    kind, colon, rest = text.partition(":")
    if colon and rest.strip() and kind.strip().lower() in get_args(ReasonKind):
        return DecisionReason(cast("ReasonKind", kind.strip().lower()), rest.strip())
    return DecisionReason("analysis", text)
