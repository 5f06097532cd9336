"""The JSON format of the responses of the client, and the events of its streams."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

Outcome = Literal["success", "partial", "failure"]


class MemoryMentionDict(TypedDict):
    """A memory that a result names."""

    memory_id: str
    text: str


class RememberDict(TypedDict):
    """The id and the status of a stored fact, the facts that it superseded, and current ones that may exclude it."""

    memory_id: str
    status: Literal["new", "confirmed", "unchanged"]
    started_at: str
    replaced: list[MemoryMentionDict]
    contested: list[MemoryMentionDict]
    redacted: int
    warning: str | None


class RecallItemDict(TypedDict):
    """A search result and its score."""

    memory_id: str
    kind: str
    state: str
    text: str
    evidence: float
    relevance: float
    cosine: float
    lexical: float
    occurred_at: str
    trust: str
    ref: str | None


class RecallDict(TypedDict):
    items: list[RecallItemDict]
    missing: dict[str, str]


class DecisionDict(TypedDict):
    """A recorded decision with its precedents and guardrail results."""

    decision_id: str
    is_new: bool
    blocked: bool
    quality: float
    precedents: list[dict[str, Any]]
    guardrails: list[dict[str, str]]


class MessageDict(TypedDict, total=False):
    """A message; role and content are required."""

    role: Literal["user", "assistant", "system", "tool"]
    content: str
    name: str
    ref: str
    at: str
    calls: list[dict[str, str]]
    answers: str


class EventDict(TypedDict):
    """Something that an agent did, such as `shell_exec` with `{"command": "make test", "exit_code": 0}`."""

    ref: str
    event_type: str
    payload: dict[str, Any]
    at: NotRequired[str]


class TaskChangeDict(TypedDict):
    """The changed task, and the number of the current one."""

    task_id: str
    number: int
    depth: int
    status: Literal["active", "blocked", "complete", "failed"]
    current_number: int | None


class StreamedEvent(NamedTuple):
    """An event of an agent. `Client.events(after=event_id)` continues after it."""

    event_id: int
    type: str
    data: Mapping[str, Any]


class TurnEvent(NamedTuple):
    """A part of a turn: a `delta` with the next `text` of the reply, a `compaction`, or the final `result`."""

    type: str
    data: dict[str, Any]


class TokenInfoDict(TypedDict):
    """The agent and the scope of a token, and the chat model, if one is configured."""

    agent: str
    scope: Literal["read", "write", "admin"]
    model: str | None


class ChangedMemoryDict(TypedDict):
    """A state transition, and the short text of the memory."""

    memory_id: str
    event: str
    from_state: str
    to_state: str
    reason: str
    micro: str
