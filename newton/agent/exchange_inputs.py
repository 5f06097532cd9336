"""Inputs that store an exchange of another program: what was said, and what its tools returned."""

from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue

from newton.agent.field_types import MessageContent, Name, Ref
from newton.agent.inputs import ToolInput
from newton.heart.events.tool_results import cut_output
from newton.memory.hygiene import MAX_MESSAGE_CHARACTERS


class ToolRunInput(ToolInput):
    """A tool that you ran, and what it returned."""

    tool: Name = Field(description="The name of the tool, such as bash or read_file.")
    input: dict[str, JsonValue] = Field({}, description='What you gave to it, such as {"command": "make test"}.')
    output: Annotated[str, AfterValidator(cut_output)] = Field(
        "", max_length=MAX_MESSAGE_CHARACTERS, description="What it returned, verbatim."
    )
    is_error: bool = Field(default=False, description="Whether the call failed.")


class NoteExchangeInput(ToolInput):
    """Store what was said: the user's message and your reply, verbatim. Both become messages of a session. When the
    session is idle, it becomes an episode, and facts are extracted from what the user said. Add the tools that you ran
    for the reply: later contexts show their results as data, such as the last error."""

    user: MessageContent = Field(description="The message of the user, in their words.", min_length=1)
    assistant: MessageContent | None = Field(None, description="Your reply.", min_length=1)
    tools: list[ToolRunInput] = Field([], max_length=100, description="The tools that you ran, in this order.")
    session: Ref | None = Field(
        None,
        description="The name of the conversation. Use the same name for all of its messages. Default: the session of"
        " the connection, else `mcp`.",
    )
