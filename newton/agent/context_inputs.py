"""Inputs on contexts, sessions and tasks, shared by the HTTP API, MCP and the tools of the model."""

from typing import Literal

from pydantic import Field

from newton.agent.field_types import CleanText, Name, Ref, Timestamp
from newton.agent.inputs import ToolInput
from newton.cognition.request import MAX_CONTEXT_TOKENS, NO_OVERRIDES, ContextOverrides
from newton.memory.memory import Kind

MAX_POSITION = 1_000_000_000


class ConversationInput(ToolInput):
    """The name of the session to which a call belongs."""

    session: Ref | None = Field(
        None,
        description="The conversation to which this belongs, so that its working memory has it. Default: that of the"
        " connection.",
    )


class ContextInput(ToolInput):
    """Build the context for an input: the relevant memories, selected and ordered within a token budget, with the
    constraints first. Call it before you answer or begin work."""

    input: CleanText = Field(description="The message of the person, or the task, for which the context is built.")
    max_tokens: int | None = Field(
        None,
        ge=1,
        le=MAX_CONTEXT_TOKENS,
        description="Maximum tokens of the context. Default: a size that suits the input. Only relevant memories are"
        " included.",
    )
    frame: Name | None = Field(
        None, description="The kind of task (frame), e.g. debug or planning. If omitted, it is chosen from the input."
    )
    fill: bool = Field(
        default=False,
        description="Whether to use all of `max_tokens`: less relevant memories fill the tokens that are left.",
    )


class FilteredContextInput(ContextInput):
    """The input for which to build a context, and filters on the memories in it."""

    session: Ref | None = Field(
        None,
        description="The session to which the input belongs. The folder of a session is its name up to the first slash;"
        " memories from sessions of the same folder are preferred.",
        examples=["planning"],
    )
    omit_session_messages: bool = Field(
        default=False, description="Leave out the messages of the session, for a caller that has them already."
    )
    task: int | Literal["current"] | None = Field(
        None,
        description="Only memories of this task of the session and of its subtasks: its number, or `current`. Default:"
        " memories of the current task are preferred.",
        examples=["current"],
    )
    profile: Name | None = Field(None, description="The name of the profile that scores the memories.")
    overrides: ContextOverrides = Field(
        NO_OVERRIDES,
        description="Values that replace those of the profile (`weights`, `reach`) and of the frame (`budget`) for this"
        " context. What is left out stays.",
        examples=[{"weights": {"recency": 0.4}, "reach": {"depth": 3, "failures": False}}],
    )
    as_of: Timestamp | None = Field(None, description="Build the context as of this time in the past.")
    since: Timestamp | None = Field(None, description="Only memories of what occurred at or after this time.")
    until: Timestamp | None = Field(None, description="Only memories of what occurred before this time.")
    kinds: list[Kind] = Field([], description="Include only memories of these kinds.", examples=[["fact", "decision"]])
    event_types: list[Name] = Field([], description="Of the events, include only those of these types.")
    entity_types: list[Name] = Field([], description="Of the people and things, include only those of these types.")
    exclude: list[str] = Field([], max_length=200, description="The ids of memories to leave out.")
    additional: CleanText | None = Field(None, description="Additional text to include in the context.")


class HostContextInput(FilteredContextInput):
    """Build the context for an input: the relevant memories, selected and ordered within a token budget, with the
    constraints first. Call it before you answer or begin work, and name the conversation to which the input belongs."""

    session: Ref | None = Field(
        None,
        description="The conversation, named as in `note_exchange`. Its task and last messages help select memories."
        " Default: that of the connection.",
    )
