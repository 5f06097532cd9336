"""Inputs of tools that read and write sessions."""

from pydantic import Field

from newton.agent.field_types import Ref
from newton.agent.inputs import ToolInput


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


class ReadMessagesInput(ToolInput):
    """Read messages of a session verbatim, in the order in which they were said, from a given position on."""

    session: Ref = Field(description="The name of the session.")
    first: int = Field(
        0, ge=0, le=1_000_000_000, description="The position of the first message to return, counted from 0."
    )
    limit: int = Field(20, ge=1, le=100, description="Maximum number of messages.")
