"""JSON models of lists and records, shared by HTTP responses and the results of tools."""

from datetime import datetime
from typing import Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from newton.dialogue.branches import BranchSummary
from newton.dialogue.messages import Role, StoredMessage


class ViewModel(BaseModel):
    """The base class of the models of this module, of the chat, and of HTTP response bodies."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def from_source(cls, source: object, **fields: object) -> Self:
        """Return a model with `fields`.

        All other fields are copied from the attributes of `source` with the same names.
        """
        names = (name for name in cls.model_fields if name not in fields and hasattr(source, name))
        return cls.model_validate({name: getattr(source, name) for name in names} | fields)


class BundleInfo(ViewModel):
    """A bundle (a stored context) in a list."""

    bundle_id: UUID
    created_at: datetime
    as_of: datetime | None
    session: str | None
    frame: str
    tokens: int
    budget: int
    input: str


class SessionInfo(ViewModel):
    """A session. If it is a branch, the parent fields name the session and the position at which it began."""

    session_id: UUID
    session: str
    created_at: datetime
    parent_session: str | None
    parent_position: int | None


class MessageInfo(ViewModel):
    """A stored message of a session."""

    position: int
    role: Role
    name: str | None
    content: str
    ref: str | None
    at: datetime
    tokens: int
    calls: list[dict[str, str]]
    answers: str | None


class WorkingMemoryItem(ViewModel):
    """A memory of the working memory. `detail` is null if it was left out of the context; `reason` says why."""

    memory_id: UUID
    kind: str
    detail: str | None
    score: float
    tokens: int
    text: str
    reason: str


class WorkingMemoryResponse(ViewModel):
    """A context built from the working memory, with the memories in it and those left out."""

    profile: str
    text: str
    tokens: int
    limit: int
    items: list[WorkingMemoryItem]
    omitted: list[WorkingMemoryItem]


def to_session_info(branch: BranchSummary) -> SessionInfo:
    return SessionInfo.from_source(branch, session=branch.ref, parent_session=branch.parent)


def to_message_info(stored: StoredMessage) -> MessageInfo:
    message = stored.message
    return MessageInfo.from_source(
        message,
        position=stored.position,
        at=message.said_at,
        tokens=stored.tokens,
        calls=[call._asdict() for call in message.calls],
        answers=message.tool_call_id,
    )
