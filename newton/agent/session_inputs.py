"""Inputs of the tools on sessions: their messages, prompts and compactions."""

from pydantic import Field

from newton.agent.field_types import Ref
from newton.agent.inputs import ToolInput
from newton.cognition.request import MAX_CONTEXT_TOKENS


class ShowPromptInput(ToolInput):
    """Show exactly what the model received in a turn: the messages and tools of each call; which messages of the
    conversation were left out or summarized, and why; and whether the request is reproduced byte for byte."""

    turn: str = Field(
        "latest",
        min_length=1,
        max_length=64,
        description="The turn: `latest`, `previous`, the position of one of its messages, or the id of a prompt.",
    )
    session: Ref | None = Field(None, description="The name of the session. Default: that of the latest prompt.")


class ListSessionsInput(ToolInput):
    """List the sessions, last used first, each with the count of its messages and, for a branch, where it begins."""

    limit: int = Field(20, ge=1, le=100, description="Maximum number of sessions.")


class CompactSessionInput(ToolInput):
    """Replace older messages of a conversation by summaries in what a model receives of it, down to `max_tokens` if
    possible. The stored messages do not change. The result says what keeps the conversation above the limit."""

    session: Ref = Field(description="The name of the conversation.")
    max_tokens: int | None = Field(
        None, ge=1, le=MAX_CONTEXT_TOKENS, description="Maximum tokens. Default: as many as fit into the window."
    )


class ReadMessagesInput(ToolInput):
    """Read messages of a session verbatim, in the order in which they were said, from a given position on."""

    session: Ref = Field(description="The name of the session.")
    first: int = Field(
        0, ge=0, le=1_000_000_000, description="The position of the first message to return, counted from 0."
    )
    limit: int = Field(20, ge=1, le=100, description="Maximum number of messages.")
