"""Inputs shared by the HTTP API, MCP and the tools of the model: one pydantic model per action.

The docstring of a model is the description of its tool. HTTP requests add fields that only programs may set, such as
times and references.
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from newton.agent.field_types import CleanText, MessageContent, Name, Ref
from newton.brain.outcomes import Verdict
from newton.cognition.request import MAX_CONTEXT_TOKENS
from newton.heart.censors import CensorAction, MatchMode
from newton.heart.facts.conflicts import Settlement
from newton.heart.identity.tenets import IdentityPart
from newton.memory.lookup import MAX_PAGE_CHARS, PAGE_CHARS


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
    source: Literal["own", "tool", "web"] = Field(
        "own",
        description="Where it comes from: own (the person or yourself), tool (a tool or a file), web (a page). What a "
        "tool or a page says is only used after a person or other sources confirm it.",
    )


class HostRememberInput(RememberInput):
    """Store a fact permanently: something you learned about a person, a thing or the work, as one sentence that is
    clear without context. Say where it comes from: what is not marked as `own` is not used before a person or other
    sources confirm it. Do not store facts that the context already contains, and never store secrets."""

    source: Literal["own", "tool", "web"] = Field(
        "tool",
        description="Where it comes from: own (the user said it, or you concluded it from what the user said), tool "
        "(the default: a tool, a file or anything else that you read) or web (a page).",
    )


class RecallInput(ToolInput):
    """Search the memory: conversations, facts, episodes, procedures, documents, decisions. Use it for information
    that is missing in the context. Each result has an id for `expand`."""

    query: CleanText = Field(description="The question or topic, in plain words.")
    limit: int = Field(8, ge=1, le=30, description="Maximum number of results.")


class MemoryIdInput(ToolInput):
    """The id of one memory."""

    memory_id: str = Field(description="The number after `#` in a context, the id of a result, or its last letters.")


class ExpandInput(MemoryIdInput):
    """Read one memory in full by its id, with its state, source, date and trust. A long text comes in pages: the
    result names the number of characters that are left and the offset of the next page."""

    offset: int = Field(0, ge=0, description="The position of the first character to return.")
    limit: int = Field(PAGE_CHARS, ge=1, le=MAX_PAGE_CHARS, description="Maximum characters of the page.")


class ContextInput(ToolInput):
    """Build the context for an input: the relevant memories, selected and ordered within a token budget, with the
    constraints first. Call it before you answer or begin work."""

    input: CleanText = Field(description="The message of the person, or the task.")
    max_tokens: int | None = Field(
        None,
        ge=1,
        le=MAX_CONTEXT_TOKENS,
        description="Maximum tokens; if omitted, the size adapts to the input. Only relevant memories are included.",
    )
    frame: Name | None = Field(None, description="The frame, e.g. debug or planning; selected if omitted.")
    fill: bool = Field(
        default=False, description="Use the whole budget: include less relevant memories as far as they fit."
    )


class HostContextInput(ContextInput):
    """Build the context for an input: the relevant memories, selected and ordered within a token budget, with the
    constraints first. Call it before you answer or begin work, and name the conversation to which the input belongs."""

    session: Ref | None = Field(
        None, description="The conversation, as in `note_exchange`: its task and its last messages count too."
    )


class ForgetInput(MemoryIdInput):
    """Permanently delete one memory, in two calls: the first answers what would be deleted and a token, the second
    with this token deletes it. If a fact has changed, call `supersede` instead; if it was never true, `retract`."""

    token: str | None = Field(
        None, max_length=100, description="The token of the first call; it confirms the deletion."
    )
    include_derived: bool = Field(default=False, description="Also delete the memories derived from it.")
    reason: CleanText = Field("requested", max_length=1_000, description="Why it is deleted. Only this is kept.")


class ConfirmInput(MemoryIdInput):
    """Confirm that a stored fact is true. Confirmed facts rank higher. One confirmation per day counts."""


class RetractInput(MemoryIdInput):
    """Retract a stored fact that was never true. The fact that it had superseded becomes active again."""


class SupersedeInput(MemoryIdInput):
    """Replace a stored fact that was true until now by a new one of the same subject and attribute."""

    content: CleanText = Field(description="The fact that is true now, as one sentence.")


class ConflictsInput(ToolInput):
    """List pairs of known facts that may exclude each other, the newer one first. Ask the person which is true, then
    call `settle_conflict`."""


class SettlementInput(ToolInput):
    """The settlement of a conflict."""

    keep: Settlement = Field(
        description="newer: it replaces the older fact; older: the newer fact is wrong; both: both are true; "
        "same: both say the same."
    )


class SettleConflictInput(SettlementInput):
    """Settle the conflicts of one fact as the person decided. Only the person can replace a confirmed, core or
    safety-related fact."""

    memory_id: str = Field(description="The id of one of the two facts, or its last letters.")


class EpisodeOutcomeInput(ToolInput):
    """Set how an episode ended, once it is known: whether what was attempted in it succeeded. It can be set again."""

    memory_id: str = Field(description="The id of the episode that a result shows, or its last letters.")
    outcome: Verdict = Field(description="How the episode ended: success, partial or failure.")


class NoteExchangeInput(ToolInput):
    """Hand over what was said: the user's message and your reply, verbatim. They are stored as messages of a session;
    once it is idle, it becomes an episode, and facts are learnt from what the user said."""

    user: MessageContent = Field(description="The message of the user, in their words.", min_length=1)
    assistant: MessageContent | None = Field(None, description="Your reply.", min_length=1)
    session: Ref = Field("mcp", description="The name of the conversation; the same for all its messages.")


class PushTaskInput(ToolInput):
    """Start a task inside the current one, so that the goal stays in the context."""

    goal: CleanText = Field(description="What is to be achieved, as one sentence.")


class PopTaskInput(ToolInput):
    """Finish the current task and record its result. Its messages are replaced by a one-line summary."""

    result: MessageContent = Field(description="What came of it, as one sentence.")


class PopSessionTaskInput(PopTaskInput):
    """Finish the current task of a session and record its result. Its messages are replaced by a one-line summary."""

    session: Ref | None = Field(None, description="The session of the task. Default: that of the last pushed task.")


class DoneInput(ToolInput):
    """Mark a decision as carried out. Its outcome is recorded later with `review`, once it is known."""

    decision_id: str = Field(description="The id of the decision, or its last letters.")


class StartTaskInput(PushTaskInput):
    """Start a task inside the current one, so that its goal stays in the context until `pop_task` finishes it."""

    session: Ref | None = Field(None, description="The session; created if it does not exist. Default: the last one.")


class SessionInput(ToolInput):
    """The name of a session."""

    session: Ref | None = Field(None, description="The session. Default: the one used last.")


class ListTasksInput(SessionInput):
    """List the tasks of a session with their goals, their states and the results of the finished ones."""


class LessonInput(ToolInput):
    """Store a lesson for later work: an action to take or to avoid, and when."""

    lesson: CleanText = Field(description="One sentence that is clear without context.")
    subject: Name = Field("lessons", description="The topic, e.g. 'deployments'.")


class BlockTaskInput(SessionInput):
    """Mark the current task of a session as blocked, with the reason. `resume_task` continues it later."""

    reason: CleanText = Field(description="Why it cannot go on, and what it waits for.")


class FailTaskInput(SessionInput):
    """Mark the current task of a session as failed, with the reason, and start the task that replaces it, if any."""

    reason: CleanText = Field(description="Why it failed.")
    replacement_goal: CleanText | None = Field(None, description="The goal of a task that replaces it.")


class ResumeTaskInput(SessionInput):
    """Resume a blocked task of a session by its number, so that it becomes the current task again."""

    number: int = Field(ge=1, le=1_000_000_000, description="The number of the task, as `tasks` lists it.")


class ProceduresInput(ToolInput):
    """List the procedures with their track records. With a name, show the goals, steps and details of that one."""

    name: Name | None = Field(None, description="The name of a procedure.")


class ProcedureResultInput(ToolInput):
    """The result of a use of a procedure."""

    result: Literal["success", "failure", "neutral"] = Field(description="How the use ended.")


class ProcedureOutcomeInput(ProcedureResultInput):
    """Record how the last use of a procedure ended. The track record decides whether the procedure stays in use."""

    name: Name = Field(description="The name of the procedure.")


class ListCensorsInput(ToolInput):
    """List the censors: what is forbidden, why, whether it warns or blocks, and how often it matched."""


class AddCensorInput(ToolInput):
    """Propose a censor: a prohibition with its reason. A person approves the proposal before it takes effect."""

    trigger: CleanText = Field(description="The phrase, regular expression or description of what is forbidden.")
    reason: CleanText = Field(description="Why it is forbidden.")
    match_mode: MatchMode = Field("phrase", description="How the trigger matches a text.")
    action: CensorAction = Field("warn", description="Whether a match warns or blocks.")
    domain: Name | None = Field(None, description="The domain to which it applies, such as 'operations'.")


class CensorIdInput(ToolInput):
    """The id of a censor."""

    censor_id: str = Field(description="The id of the censor, or its last letters.")


class RetireCensorInput(CensorIdInput):
    """Retire a censor permanently, so that it no longer warns of anything or blocks anything. It stays listed."""


class FalsePositiveInput(CensorIdInput):
    """Report that the last match of a censor was wrong. Too many false positives retire a censor."""


class RelaxCensorInput(CensorIdInput):
    """Make a blocking censor a warning again. Its earlier matches no longer count towards its threshold."""

    reason: CleanText = Field(description="Why the censor need not block; recorded.")


class MetricsInput(ToolInput):
    """Report the quality of the contexts of the last days: relevance, budget use, refreshes, items used, speed."""

    days: int = Field(7, ge=1, le=3_650, description="Length of the period in days.")


class GrowthInput(ToolInput):
    """Report how the agent developed compared with the period before: decisions, repeated mistakes, procedures."""

    weeks: int = Field(1, ge=1, le=520, description="Length of the period in weeks.")


class IdentityInput(ToolInput):
    """Show the identity: its version, its lines, and the proposals that wait for the approval of a person."""


class ProposeIdentityInput(ToolInput):
    """Propose a line for the identity, such as a standing instruction. A person accepts or rejects the proposal."""

    section: IdentityPart = Field(description="The section of the identity.")
    text: CleanText = Field(description="The text of the proposed line, as one sentence.")


class WorkingMemoryInput(SessionInput):
    """Build a context from the working memory of a session: what was said, shown and read in it, without a search."""

    profile: Name = Field("balanced", description="The profile that ranks the memories, such as recent or important.")
    max_tokens: int | None = Field(
        None, ge=1, le=MAX_CONTEXT_TOKENS, description="Maximum tokens. Default: the capacity."
    )


class ListBundlesInput(ToolInput):
    """List the stored contexts (bundles), newest first, with their inputs, frames and numbers of tokens."""

    limit: int = Field(20, ge=1, le=100, description="Maximum number of bundles.")


class ExplainInput(ToolInput):
    """Explain a stored context, or why one memory is in it or not, with its features, weights and score."""

    bundle: str = Field("latest", max_length=100, description="`latest`, `previous`, or the id of a bundle.")
    item: CleanText | None = Field(None, description="A memory: its number in the context, its id, ref or words.")


class ListSessionsInput(ToolInput):
    """List the sessions, the last used first, with the number of their messages and where they branch off."""

    limit: int = Field(20, ge=1, le=100, description="Maximum number of sessions.")


class ReadMessagesInput(ToolInput):
    """Read the stored messages of a session verbatim, from a position on, in the order in which they were said."""

    session: Ref = Field(description="The session.")
    first: int = Field(0, ge=0, le=1_000_000_000, description="The position of the first message.")
    limit: int = Field(20, ge=1, le=100, description="Maximum number of messages.")


class EntitiesInput(ToolInput):
    """List the people and things that are mentioned most, or with a name, the relations of that entity."""

    name: Name | None = Field(None, description="The name of an entity.")
    limit: int = Field(20, ge=1, le=100, description="Maximum number of results.")


def _iter_texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict() | list() | tuple():
            for item in value.values() if isinstance(value, dict) else value:  # pyright: ignore[reportUnknownVariableType]  # JSON
                yield from _iter_texts(item)  # pyright: ignore[reportUnknownArgumentType]  # JSON
        case _:
            return
