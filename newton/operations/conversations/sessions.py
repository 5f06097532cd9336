"""Operations on sessions (conversations): their list, their messages, and branches of them."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from pydantic import Field

from newton.agent.field_types import Ref
from newton.dialogue.branches import SessionInfo
from newton.dialogue.messages import Message, Role, StoredMessage
from newton.memory.memory import PERSON_TIERS, Trust
from newton.memory.representations import one_line
from newton.operations.cursors import decode_cursor, decode_number_cursor, invalid_cursor_error
from newton.operations.declaration import operation
from newton.operations.fields import CommandOption, Cursor, Limit, SessionName
from newton.operations.results import CursorPage, build_page
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

MAX_TITLE_CHARS = 60
MAX_POSITION = 1_000_000_000
MESSAGES_FOR_PERSONS, MESSAGES_FOR_MODELS = 100, 20
Position = Annotated[int, Field(ge=0, le=MAX_POSITION)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageInfo:
    """A stored message of a session. `calls` are the tool calls of an assistant, and `answers` is the id of a call.

    `trust` is that of its role or, if it is lower, of what its author had read.

    A notice (`is_notice`) is a text of Newton itself, which no model is sent.
    """

    position: int
    role: Role
    name: str | None
    content: str
    ref: str | None
    at: datetime
    tokens: int
    calls: Sequence[Mapping[str, str]]
    answers: str | None
    is_notice: bool
    trust: Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedBranch:
    """The id of a new session."""

    session_id: UUID
    # only for the person at the command line: the response of a request is stored, without text of a person
    text: Annotated[str, Field(exclude=True)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChange:
    """The id of a session that was created or closed."""

    session_id: UUID


def _to_message_info(stored: StoredMessage) -> MessageInfo:
    message = stored.message
    return MessageInfo(
        position=stored.position,
        role=message.role,
        name=message.name,
        content=message.content,
        ref=message.ref,
        at=message.said_at,
        tokens=stored.tokens,
        calls=[call._asdict() for call in message.calls],
        answers=message.tool_call_id,
        is_notice=message.is_notice,
        trust=message.trust,
    )


def _format_session(one: SessionInfo) -> str:
    parent = f" (continues {one.parent_session} from message {one.parent_position})" if one.parent_session else ""
    title = one_line(one.first_input or "")
    first = f"  {title if len(title) <= MAX_TITLE_CHARS else title[:MAX_TITLE_CHARS].rstrip() + ' …'}" if title else ""
    return f"{one.last_used_at:%Y-%m-%d %H:%M}  {pluralize(one.messages, 'message'):>14}  {one.session}{parent}{first}"


def _format_message(one: MessageInfo) -> str:
    speaker = Message(role=one.role, name=one.name, content=one.content, said_at=one.at).speaker
    calls = "".join(f" → {call['name']} {call['arguments']}" for call in one.calls)
    notice = "  (notice of Newton; not sent to a model)" if one.is_notice else ""
    return f"{one.position:>5}  {one.at:%Y-%m-%d %H:%M}  {speaker}: {one.content}{calls}{notice}"


def _decode_place(cursor: str) -> tuple[datetime, UUID]:
    try:
        used_at, session_id = decode_cursor(cursor).split(" ")
        return datetime.fromisoformat(used_at).astimezone(UTC), UUID(session_id)
    except (ValueError, OverflowError):
        raise invalid_cursor_error() from None


@operation(
    "GET /v1/sessions",
    "reads",
    name="sessions",
    command="sessions list",
    text=_format_session,
    empty="No sessions yet. `newton chat` starts one.",
)
async def list_sessions(
    caller: "OperationCaller", *, limit: Limit = 50, cursor: Cursor = None
) -> CursorPage[SessionInfo]:
    """List the sessions (conversations), last used first, each with the number of its messages and the first input.

    Example: newton sessions
    """
    found = await caller.sessions.list_sessions()
    if cursor is not None:
        place = _decode_place(cursor)
        found = [one for one in found if (one.last_used_at, one.session_id) < place]
    return build_page(found, limit, lambda one: one, lambda one: f"{one.last_used_at.isoformat()} {one.session_id}")


@operation(
    "GET /v1/sessions/{session:path}/messages", "reads", name="messages", command="sessions log", text=_format_message
)
async def list_messages(
    caller: "OperationCaller",
    session: SessionName,
    *,
    first: Annotated[Position, Field(description="The position of the first message, counted from 0.")] = 0,
    limit: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000,
            description="Maximum number of messages."
            f" Default: {MESSAGES_FOR_PERSONS}, for a model {MESSAGES_FOR_MODELS}.",
        ),
    ] = None,
    cursor: Cursor = None,
) -> CursorPage[MessageInfo]:
    """Read messages of a session in full, in the order in which they were said, from a position or a cursor on.

    Example: newton sessions log s
    """
    limit = limit or (MESSAGES_FOR_PERSONS if caller.trust in PERSON_TIERS else MESSAGES_FOR_MODELS)
    start = first if cursor is None else decode_number_cursor(cursor)
    stored = await caller.sessions.read_log(session, first=start, last=start + limit)
    return build_page(stored, limit, _to_message_info, lambda one: one.position + 1)


@operation(
    "POST /v1/sessions/{session:path}/branches",
    "adds",
    act="work",
    command="sessions branch",
    text=attrgetter("text"),
    absent={
        "mcp": "A model does not need this: Newton does it by itself, or a person does it.",
        "chat": "`/branch` does it, and continues in the new session.",
    },
)
async def create_branch(
    caller: "OperationCaller",
    session: SessionName,
    branch: Annotated[Ref, Field(description="The name of the new session.", examples=["planning-with-redis"])],
    *,
    from_position: Annotated[
        Position | None,
        CommandOption("at"),
        Field(description="The number of the message to continue from. Default: the last one."),
    ] = None,
) -> CreatedBranch:
    """Create a session that continues from a position in an existing one, which does not change.

    Example: newton sessions branch s planning-with-redis --at 0
    """
    session_id = await caller.sessions.create_branch(session, branch, at=from_position)
    opening = f"`newton chat --session {shlex.quote(branch)}`"
    return CreatedBranch(session_id=session_id, text=f"{branch} continues from {session}. Open it with {opening}.")


@operation(
    "POST /v1/sessions",
    "adds",
    act="work",
    is_idempotent=True,
    absent={
        "cli": "`chat --session NAME` creates it.",
        "mcp": "`push_task` creates the session that it names.",
        "chat": "`/switch` and `/branch` do it.",
    },
)
async def create_session(caller: "OperationCaller", session: SessionName) -> SessionChange:
    """Create a session. An existing session is not changed.

    Example: {"session": "planning"}
    """
    return SessionChange(session_id=await caller.sessions.begin(session))


@operation(
    "POST /v1/sessions/{session:path}/close",
    "changes",
    act="work",
    is_idempotent=True,
    job="extract",
    absent={
        "cli": "`chat` and `ask` do it when they end.",
        "mcp": "A model does not need this: Newton does it by itself, or a person does it.",
        "chat": "`/quit` and `/switch` do it.",
    },
)
async def close_session(caller: "OperationCaller", session: SessionName) -> SessionChange:
    """Store the conversation as an episode; a job extracts facts from it. The session can still be continued.

    Example: {"session": "s"}
    """
    session_id = await caller.find_session(session)
    await caller.sessions.close(session_id)
    return SessionChange(session_id=session_id)
