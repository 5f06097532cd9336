"""Types of the parameters of operations: each has its check, its limits, its description and an example."""

from typing import Annotated, Any, NamedTuple

from pydantic import Field

from newton.agent.field_types import Ref, Strategy
from newton.cognition.request import MAX_CONTEXT_TOKENS
from newton.memory.lookup import MIN_ID_DIGITS

MAX_ID_CHARS = 64
MAX_PAGE_SIZE = 200


class CommandOption(NamedTuple):
    """Another name of a parameter, for its option of the command; for a list, the name of one item."""

    name: str


def describe_id(noun: str, more: str = "") -> Any:
    """Return the limits and the description of a parameter that is the id of something."""
    text = f"The id of the {noun}, or at least its last {MIN_ID_DIGITS} digits{more}."
    return Field(min_length=1, max_length=MAX_ID_CHARS, description=text, examples=["3f9c2a71"])


CensorRef = Annotated[str, describe_id("censor")]
DecisionRef = Annotated[str, describe_id("decision")]
MemoryRef = Annotated[str, describe_id("memory", "; or its number in a context")]
CitedLine = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=MAX_ID_CHARS,
        description="The id of the person's message that says this. A model needs it to change what a person said.",
    ),
]
SessionName = Annotated[Ref, Field(description="The name of the session.", examples=["default"])]
# The session of the caller: doors that know it fill it in.
OwnSession = Annotated[
    Ref | None,
    Field(
        description="The name of the session. Default: that of the connection or the chat, else the session of the last"
        " started task.",
        examples=["planning"],
    ),
]
# The session in whose working memory the memories of a call are; it is that of the connection or the chat, else none.
ConversationSession = Annotated[
    Ref | None,
    Field(
        description="The conversation to which this belongs, so that its working memory has it. Default: that of the"
        " connection or the chat.",
        examples=["planning"],
    ),
]
# The session with an artifact.
ArtifactSession = Annotated[
    Ref | None,
    Field(
        description="The name of the session. Default: that of the connection or the chat, else the one in which an"
        " artifact was stored last.",
        examples=["planning"],
    ),
]
# The session with a working memory.
WorkingSession = Annotated[
    Ref | None,
    Field(
        description="The name of the session. Default: that of the connection or the chat, else the last active one.",
        examples=["planning"],
    ),
]
# The session with the record of a prompt.
PromptSession = Annotated[
    Ref | None,
    Field(
        description="The name of the session. Default: that of the connection or the chat, else that of the latest"
        " prompt.",
        examples=["planning"],
    ),
]
# Each is that of the caller, if the door knows it and the caller names none.
CALLER_SESSIONS = (OwnSession, ConversationSession, ArtifactSession, WorkingSession, PromptSession)
RequestStrategy = Annotated[
    Strategy | None,
    Field(
        description="The compaction preset (default, long, conservative, none) or list of strategies."
        " Default: the setting `compaction`."
    ),
]
ViewTokens = Annotated[
    int | None,
    Field(
        ge=1,
        le=MAX_CONTEXT_TOKENS,
        description="Maximum tokens of the messages. Default: as many as fit into the context window.",
    ),
]
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE_SIZE, description="Maximum number of items.")]
PlanToken = Annotated[
    str | None,
    Field(max_length=100, description="The token of the preview; without it, nothing is changed."),
]
Cursor = Annotated[
    str | None,
    Field(max_length=500, description="The cursor of the page: `next` of the previous page. Default: the first page."),
]
