"""JSON formats of the responses that the client returns, and the events of its streams."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict
from urllib.parse import quote
from uuid import UUID

IdLike = UUID | str
JsonDict = dict[str, Any]


def encode_segment(name: str) -> str:
    """Percent-encode a name as one segment of a URL path."""
    return quote(name, safe="")


Outcome = Literal["success", "partial", "failure"]


class RefusedItemDict(TypedDict):
    """A message or event that is not stored. `item` is its place in the request, such as "messages[3]"."""

    item: str
    detail: str


class AppendMessagesDict(TypedDict):
    """Response to appending messages and events to a session.

    `positions` are those of the new messages, from 0; `events` is the number of new events, `redacted` counts the
    secrets removed from the messages by kind. `refused` are the invalid items, if the request says to skip them.
    """

    positions: list[int]
    events: int
    redacted: dict[str, int]
    refused: list[RefusedItemDict]


class MessageDict(TypedDict, total=False):
    """A message of a session; `role` and `content` are required.

    `ref` is an id of the caller's own, `calls` are the tool calls of an assistant, and `answers` is the id of the call
    that a tool message answers.
    """

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


class StreamedEvent(NamedTuple):
    """A numbered event of an agent. `Client.events(after=event_id)` streams the events after it."""

    event_id: int
    type: str
    data: Mapping[str, Any]


class TurnEvent(NamedTuple):
    """An event of a turn: a `status` (what it waits for), a `compaction` of old messages, a `delta` (next `text` of the
    reply), or the `result`.

    With `include_context`, `debug` comes before the reply: `lines` that say what the model is sent.
    """

    type: str
    data: dict[str, Any]


class TokenInfoDict(TypedDict):
    """The agent and the scope of a token, and the chat model; None if no model is configured."""

    agent: str
    scope: Literal["read", "write", "admin"]
    model: str | None
