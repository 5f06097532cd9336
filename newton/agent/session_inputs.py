"""Inputs of the tools on sessions: prompts and compactions."""

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
