"""Sessions: what was said in them, what a model is shown of it, and where they branch."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from newton.agent.loop.prompt import to_chat_messages as sent
from newton.agent.services.sessions import SessionService
from newton.cognition.assembly.budget import MAX_CONTEXT_TOKENS
from newton.dialogue.branches import BranchSummary
from newton.dialogue.compaction.entry_store import EntryStatus
from newton.dialogue.messages import Message, Role, StoredMessage
from newton.memory import hygiene
from newton.providers.chat import to_openai_message
from newton.runtime.api import pagination
from newton.runtime.api.auth import ReadAccess, WriteAccess
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.api.routes.memories import ORIGIN
from newton.runtime.api.schemas import Cursor, CursorPage, Limit, RequestModel, ResponseModel
from newton.runtime.transfer.schema import MessageContent, Name, Ref, Timestamp, ToolCallInput, find_message_error
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


class CreateSessionRequest(RequestModel):
    """A session by the name that you give it."""

    session: Ref = Field(examples=["planning"])


class CreateSessionResponse(ResponseModel):
    session_id: UUID


class SessionInfo(ResponseModel):
    """A session, and where it leaves its parent when it has one."""

    session_id: UUID
    session: str
    created_at: datetime
    parent: str | None
    parent_position: int | None


class MessageInput(RequestModel):
    """A line of dialogue. `ref` is your own id of it: a line that the session has is left out."""

    role: Role
    content: MessageContent = Field("", examples=["The staging server is restarted every Monday."])
    name: Name | None = Field(None, examples=["Ana"])
    ref: Ref | None = Field(None, examples=["m1"])
    at: Timestamp | None = Field(None, description="When it was said, with a zone; without it, now.")
    calls: list[ToolCallInput] = Field([], description="What an assistant has tools do.")
    answers: Ref | None = Field(None, description="The id of the call that a tool's words answer.")

    @model_validator(mode="after")
    def _check_content(self) -> Self:
        if fault := find_message_error(self):
            raise PydanticCustomError("refused", "{fault}", {"fault": fault})
        return self

    def to_message(self, *, now: datetime) -> Message:
        own = {name: getattr(self, name) for name in ("role", "content", "name", "ref")}
        calls = tuple(call.tool_call for call in self.calls)
        return Message(**own, tool_call_id=self.answers, said_at=self.at or now, calls=calls)


class AppendMessagesRequest(RequestModel):
    messages: list[MessageInput] = Field(min_length=1, max_length=1_000)


class AppendMessagesResponse(ResponseModel):
    """The places of the lines that are new."""

    positions: list[int]


class MessageInfo(ResponseModel):
    """A line at its place."""

    position: int
    role: Role
    name: str | None
    content: str
    ref: str | None
    at: datetime
    tokens: int
    calls: list[dict[str, str]]
    answers: str | None


class SessionViewResponse(ResponseModel):
    """What a model is shown: messages of the chat protocol, what they cost, and what all lines behind them cost."""

    tokens: int
    logged: int
    messages: list[dict[str, Any]]


class CompactRequest(RequestModel):
    most: int | None = Field(
        None, ge=1, le=MAX_CONTEXT_TOKENS, description="Without it, the room there is.", examples=[8000]
    )


class CompactResponse(ResponseModel):
    """What it cost to be shown, and what it costs now, in tokens; what all its lines cost."""

    before: int
    after: int
    logged: int


class CompactionInfo(ResponseModel):
    """Words that stand in the place of older lines."""

    entry_id: UUID
    kind: str
    first: int
    last: int
    text: str
    tokens: int
    before: int
    strategy: str
    model: str | None
    made_at: datetime
    restored_at: datetime | None


class RestoreCompactionRequest(RequestModel):
    entry_id: UUID


class RestoreCompactionResponse(ResponseModel):
    """How many entries were dropped."""

    dropped: int


class CreateCheckpointRequest(RequestModel):
    name: Ref = Field(examples=["before-redis"])


class CheckpointInfo(ResponseModel):
    """A place with a name: behind that line."""

    name: str
    position: int
    at: datetime


class CheckpointPosition(ResponseModel):
    position: int


class CreateBranchRequest(RequestModel):
    session: Ref = Field(description="What the new one is called.", examples=["planning-with-redis"])
    at: str | None = Field(None, description="A checkpoint or the number of a line; without it, the end.")


@router.get("")
async def list_sessions(caller: ReadAccess, limit: Limit = 50, cursor: Cursor = None) -> CursorPage[SessionInfo]:
    """The sessions, the latest last."""
    after = pagination.decode_id_cursor(cursor)
    known = await _session_service(caller.newton).list_sessions()
    ids = [one.session_id for one in known]
    start = ids.index(after) + 1 if after and after in ids else 0
    return pagination.build_page(known[start : start + limit + 1], limit, _to_session_info, lambda one: one.session_id)


@router.post("", status_code=201, response_model=CreateSessionResponse)
async def create_session(body: CreateSessionRequest, act: WriteAction) -> Response:
    """Begin a session; one that there is goes on."""

    async def work(newton: AgentServices) -> CreateSessionResponse:
        session_id = await newton.sessions(ORIGIN).begin(body.session)
        return CreateSessionResponse(session_id=session_id)

    return await act.run_once(work)


@router.post("/{session:path}/messages", status_code=201, response_model=AppendMessagesResponse)
async def append_messages(session: str, body: AppendMessagesRequest, act: WriteAction) -> Response:
    """Add lines; a session that is new begins with them."""

    async def work(newton: AgentServices) -> AppendMessagesResponse:
        lines = [one.to_message(now=newton.scope.now()) for one in body.messages]
        placed = await _session_service(newton).append(hygiene.clean_ref(session, what="session"), lines)
        return AppendMessagesResponse(positions=[one.position for one in placed])

    return await act.run_once(work)


@router.get("/{session:path}/messages")
async def list_messages(
    session: str, caller: ReadAccess, limit: Limit = 100, cursor: Cursor = None
) -> CursorPage[MessageInfo]:
    """Every line, whole and as it was said."""
    first = pagination.decode_number_cursor(cursor)
    placed = await _session_service(caller.newton).read_log(session, first=first, last=first + limit)
    return pagination.build_page(placed, limit, _to_message_info, lambda one: one.position + 1)


@router.get("/{session:path}/view")
async def get_session_view(
    session: str,
    caller: ReadAccess,
    most: Annotated[
        int | None,
        Query(ge=1, le=MAX_CONTEXT_TOKENS, description="In so many tokens; without it, in the room there is."),
    ] = None,
) -> SessionViewResponse:
    """What a model would be sent of it now: lines, and accounts in the place of older ones. Nothing is changed."""
    seen = await _session_service(caller.newton).preview(session, max_tokens=most)
    return SessionViewResponse(
        tokens=seen.tokens, logged=seen.logged, messages=[to_openai_message(one) for one in sent(seen.view)]
    )


@router.post("/{session:path}/compact")
async def compact_session(session: str, body: CompactRequest, caller: WriteAccess) -> CompactResponse:
    """Make it shorter where that is due. What is due once is not due again."""
    before, after = await _session_service(caller.newton).compact(session, max_tokens=body.most)
    return CompactResponse(before=before.tokens, after=after.tokens, logged=after.logged)


@router.get("/{session:path}/entries")
async def list_compactions(session: str, caller: ReadAccess) -> list[CompactionInfo]:
    """What stands, or stood, in the place of older lines."""
    return [_to_compaction_info(one) for one in await _session_service(caller.newton).list_entries(session)]


@router.post("/{session:path}/restore", response_model=RestoreCompactionResponse)
async def restore_compaction(session: str, body: RestoreCompactionRequest, act: WriteAction) -> Response:
    """Bring back what an entry stands for."""

    async def work(newton: AgentServices) -> RestoreCompactionResponse:
        dropped = await _session_service(newton).restore(session, body.entry_id.hex)
        return RestoreCompactionResponse(dropped=dropped)

    return await act.run_once(work)


@router.get("/{session:path}/checkpoints")
async def list_checkpoints(session: str, caller: ReadAccess) -> list[CheckpointInfo]:
    """The places that have names."""
    known = await _session_service(caller.newton).list_checkpoints(session)
    return [CheckpointInfo(**one._asdict()) for one in known]


@router.post("/{session:path}/checkpoint", status_code=201, response_model=CheckpointPosition)
async def create_checkpoint(session: str, body: CreateCheckpointRequest, act: WriteAction) -> Response:
    """Name the place behind the last line."""

    async def work(newton: AgentServices) -> CheckpointPosition:
        made = await _session_service(newton).create_checkpoint(session, body.name)
        return CheckpointPosition(position=made.position)

    return await act.run_once(work)


@router.post("/{session:path}/branch", status_code=201, response_model=CreateSessionResponse)
async def create_branch(session: str, body: CreateBranchRequest, act: WriteAction) -> Response:
    """Begin a session that goes on from this one, which stays as it is."""

    async def work(newton: AgentServices) -> CreateSessionResponse:
        session_id = await _session_service(newton).create_branch(session, body.session, at=body.at)
        return CreateSessionResponse(session_id=session_id)

    return await act.run_once(work)


def _session_service(newton: AgentServices) -> SessionService:
    return newton.sessions(ORIGIN)


def _to_session_info(branch: BranchSummary) -> SessionInfo:
    return SessionInfo(**{name: value for name, value in branch._asdict().items() if name != "ref"}, session=branch.ref)


def _to_message_info(stored: StoredMessage) -> MessageInfo:
    line = stored.message
    return MessageInfo(
        position=stored.position,
        role=line.role,
        name=line.name,
        content=line.content,
        ref=line.ref,
        at=line.said_at,
        tokens=stored.tokens,
        calls=[call._asdict() for call in line.calls],
        answers=line.tool_call_id,
    )


def _to_compaction_info(status: EntryStatus) -> CompactionInfo:
    own = {name: getattr(status.entry, name) for name in CompactionInfo.model_fields if name != "restored_at"}
    return CompactionInfo(**own, restored_at=status.restored_at)
