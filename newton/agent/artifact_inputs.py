"""Inputs on artifacts, shared by the HTTP API, MCP and the tools of the model."""

from pydantic import Field

from newton.agent.field_types import CleanText, Name, Ref
from newton.agent.inputs import ToolInput

SESSION_DESCRIPTION = "The name of the session. Default: the one in which an artifact was stored last."
MAX_UPLOAD_CHARS = 10_000_000  # of one text; `newton.memory.hygiene` allows as many for one message


class ReadArtifactInput(ToolInput):
    """Read a long tool output, pasted text or file of this conversation again: some of its lines, or the lines that a
    search finds. The prompt names such an artifact where it shows only a part. Without a name, `search` covers all
    artifacts of the conversation; without a name and a search, the artifacts are listed."""

    name: Name | None = Field(None, description="The name of the artifact, as the prompt gives it.")
    lines: str | None = Field(
        None, max_length=50, description="Lines to read, such as '120-180', '120-' or '-50' (the last 50)."
    )
    search: CleanText | None = Field(
        None,
        max_length=1_000,
        description="Two or three content words of what you look for. Other forms are found too.",
    )
    version: int | None = Field(None, ge=1, description="The number of the version. Default: the latest.")
    offset: int = Field(
        0,
        ge=0,
        le=1_000,
        description="Number of found passages to skip; `next_offset` of a result gives the next page.",
    )


class SessionArtifactsInput(ToolInput):
    """List the artifacts of a session: long tool outputs, pasted texts and files, with their versions and sizes. The
    artifact stored last comes first."""

    session: Ref | None = Field(None, description=SESSION_DESCRIPTION)


class ReadSessionArtifactInput(ReadArtifactInput):
    """Read an artifact of a session (a long tool output, a pasted text or a file): some of its lines, or the lines that
    a search finds. Without a name, `search` covers all artifacts of the session; without a name and a search, the
    artifacts are listed."""

    session: Ref | None = Field(None, description=SESSION_DESCRIPTION)


class DiffArtifactInput(ToolInput):
    """Show the differences between two versions of an artifact of a session, as a unified diff."""

    session: Ref | None = Field(None, description=SESSION_DESCRIPTION)
    name: Name = Field(description="The name of the artifact.")
    old: int | None = Field(None, ge=1, description="The number of the old version. Default: the one before `new`.")
    new: int | None = Field(None, ge=1, description="The number of the new version. Default: the latest.")


class SaveArtifactInput(ToolInput):
    """Store a text as an artifact of a session, so that its lines can be read and searched later. A text under a
    known name becomes its next version."""

    session: Ref = Field(description="The name of the session, which is created if it does not exist.")
    name: Name = Field(description="The name, such as a file name.")
    content: str = Field(description="The text.")
