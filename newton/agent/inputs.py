"""Inputs shared by the HTTP API, MCP and the tools of the model: one pydantic model per action.

The docstring of a model is the description of its tool. HTTP requests add fields that only programs may set, such as
times and references.
"""

from collections.abc import Iterator
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from newton.agent.field_types import CleanText, MessageContent, Name
from newton.brain.draft import DecisionDraft, DecisionReason, ReasonKind, Stakes, Verdict
from newton.cognition.assembly.budget import MAX_CONTEXT_TOKENS
from newton.heart.facts.conflicts import Settlement


class ToolInput(BaseModel):
    """Base class of all inputs. Unknown fields are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def all_text(self) -> str:
        """Return all strings of the input, one per line, for the censor check."""
        return "\n".join(self.iter_texts())

    def iter_texts(self) -> Iterator[str]:
        return _iter_texts(self.model_dump(mode="json"))


class RememberInput(ToolInput):
    """Store a fact permanently: something you learned about a person, a thing or the work, as one sentence that is
    clear without context. Do not store facts that the context already contains, and never store secrets."""

    content: CleanText = Field(description="One statement, e.g. 'Ana reviews every migration.'")
    subject: Name | None = Field(None, description="The person or thing that it is about, e.g. 'Ana'.")
    attribute: Name | None = Field(None, description="The property of the subject that it states, e.g. 'home'.")
    confidence: float | None = Field(None, ge=0, le=1, description="Probability that it is true, from 0 to 1.")


class RecallInput(ToolInput):
    """Search the memory: conversations, facts, episodes, procedures, documents, decisions. Use it for information
    that is missing in the context. Each result has an id for `expand`."""

    query: CleanText = Field(description="The question or topic, in plain words.")
    limit: int = Field(8, ge=1, le=30, description="Maximum number of results.")


class ExpandInput(ToolInput):
    """Read one memory in full by its id, with its state, source, date and trust."""

    memory_id: str = Field(description="The id that a result shows, or its last letters.")


class ContextInput(ToolInput):
    """Build the context for an input: the relevant memories, selected and ordered within a token budget, with the
    constraints first. Call it before you answer or begin work."""

    input: CleanText = Field(description="The message of the person, or the task.")
    tokens: int | None = Field(
        None,
        ge=1,
        le=MAX_CONTEXT_TOKENS,
        description="Maximum tokens; if omitted, the size adapts to the input. Only relevant memories are included.",
    )
    frame: Name | None = Field(None, description="The frame, e.g. debug or planning; selected if omitted.")
    fill: bool = Field(
        default=False, description="Use the whole budget: include less relevant memories as far as they fit."
    )


class ForgetInput(ToolInput):
    """Permanently delete one memory. If a fact has changed, call `remember` with the new fact instead; it supersedes
    the old one."""

    memory_id: str = Field(description="The id that a result shows, or its last letters.")
    reason: str = Field(max_length=1_000, description="Why it is deleted. Only this reason is kept.")


class ConflictsInput(ToolInput):
    """List pairs of known facts that may exclude each other, the newer one first. Ask the person which is true, then
    call `settle_conflict`."""


class SettlementInput(ToolInput):
    """How a conflict is settled."""

    keep: Settlement = Field(
        description="newer: it replaces the older fact; older: the newer fact is wrong; both: both are true; "
        "same: both say the same."
    )


class SettleConflictInput(SettlementInput):
    """Settle the conflicts of one fact as the person decided. Only the person can replace a confirmed, core or
    safety-related fact."""

    memory_id: str = Field(description="The id of one of the two facts, or its last letters.")


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

    outcome: Verdict
    lesson: CleanText | None = Field(None, description="A lesson for similar decisions.")


class ReviewInput(OutcomeInput):
    """Record the outcome of a decision once it is known. It can be recorded only once."""

    decision_id: str = Field(description="The id of the decision, or its last letters.")


class CalibrationInput(ToolInput):
    """Report how well the stated confidence of decisions matches their outcomes: Brier score, bias, reliability, and
    the corrected confidence to state."""

    category: str | None = Field(None, description="Only decisions of this category.")


class PushTaskInput(ToolInput):
    """Start a task inside the current one, so that the goal stays in the context."""

    goal: CleanText


class PopTaskInput(ToolInput):
    """Finish the current task and record its result. Its messages are replaced by a one-line summary."""

    result: MessageContent


class LessonInput(ToolInput):
    """Store a lesson for later work: an action to take or to avoid, and when."""

    lesson: CleanText = Field(description="One sentence that is clear without context.")
    subject: Name = Field("lessons", description="The topic, e.g. 'deployments'.")


def _iter_texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict() | list() | tuple():
            for item in value.values() if isinstance(value, dict) else value:  # pyright: ignore[reportUnknownVariableType]  # JSON
                yield from _iter_texts(item)  # pyright: ignore[reportUnknownArgumentType]  # JSON
        case _:
            return
