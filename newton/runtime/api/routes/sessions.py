"""Endpoints of sessions: messages, the view (the messages that a model is sent), compaction and branches."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.field_types import Ref, Strategy
from newton.agent.loop.prompt import to_chat_messages
from newton.agent.services.sessions import number_duplicates
from newton.agent.session_data.user_rules import hear_messages
from newton.cognition.request import MAX_CONTEXT_TOKENS
from newton.dialogue import sessions
from newton.memory import hygiene
from newton.memory.redaction.tally import count_redactions
from newton.providers.chat import to_openai_message
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, RequestModel, ResponseModel
from newton.runtime.api.idempotency import WriteAction
from newton.runtime.api.session_messages import AppendMessagesRequest, AppendMessagesResponse, store_valid
from newton.runtime.jobs import queue
from newton.runtime.jobs.memories import EXTRACT
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


ViewTokens = Annotated[
    int | None,
    Field(
        ge=1,
        le=MAX_CONTEXT_TOKENS,
        description="Maximum tokens of the messages. Default: as many as fit into the context window.",
    ),
]


RequestStrategy = Annotated[
    Strategy | None,
    Field(
        description="The compaction preset (default, long, conservative, none) or list of strategies for this request."
        " Default: the setting `compaction`."
    ),
]


class CreateSessionRequest(RequestModel):
    """The name of the session to create."""

    session: Ref = Field(examples=["planning"])


class CreateSessionResponse(ResponseModel):
    session_id: UUID


class SessionViewResponse(ResponseModel):
    """The messages that a model would be sent. `tokens` counts these, `log_tokens` all messages of the session."""

    tokens: int
    log_tokens: int
    messages: list[dict[str, Any]]


class CloseSessionResponse(ResponseModel):
    session_id: UUID


@router.post("", status_code=201, response_model=CreateSessionResponse)
async def create_session(body: CreateSessionRequest, act: WriteAction) -> Response:
    """Create a session. An existing session is not changed."""

    async def work(newton: AgentServices) -> CreateSessionResponse:
        session_id = await newton.sessions(ORIGIN).begin(body.session)
        return CreateSessionResponse(session_id=session_id)

    return await act.run_once(work)


@router.post("/{session:path}/messages", status_code=201, response_model=AppendMessagesResponse)
async def append_messages(session: str, body: AppendMessagesRequest, act: WriteAction) -> Response:
    """Append messages and events to a session. A session that does not exist is created."""

    async def work(newton: AgentServices) -> AppendMessagesResponse:
        now, service, name = newton.scope.now(), newton.sessions(ORIGIN), hygiene.clean_ref(session, what="session")
        skips_invalid = body.on_invalid == "skip"
        messages = number_duplicates([one.to_message(ref=one.ref, said_at=one.at or now) for one in body.messages])
        parts, errors = await store_valid(
            messages, lambda items: service.append(name, items), skips_invalid=skips_invalid
        )
        counts, event_errors = await store_valid(
            body.events,
            lambda items: service.record_events(name, [one.to_event(now=now) for one in items]),
            skips_invalid=skips_invalid,
        )
        stored = [one for part in parts for one in part]
        await hear_messages(newton.scope.at(ORIGIN), stored)
        refused = [body.refuse("messages", index, error) for index, error in errors.items()]
        refused += [body.refuse("events", index, error) for index, error in event_errors.items()]
        return AppendMessagesResponse(
            positions=[one.position for one in stored],
            events=sum(counts),
            redacted=count_redactions(*(one.message.content for one in stored)),
            refused=[*body.refused, *refused],
        )

    response = await act.run_once(work)
    await act.caller.newton.process_written(ORIGIN)
    return response


@router.get("/{session:path}/view")
async def get_session_view(
    session: str,
    caller: ReadAccess,
    max_tokens: Annotated[ViewTokens, Query()] = None,
    strategy: Annotated[RequestStrategy, Query()] = None,
) -> SessionViewResponse:
    """Return the messages that a model would be sent now, with summaries in place of older ones. Changes nothing.

    Tool calls and their results go only to a client of the OpenAI protocol; a turn of this API has the results that
    matter in its context.
    """
    view = await caller.newton.sessions(ORIGIN).preview(session, max_tokens=max_tokens, strategy=strategy)
    messages = [to_openai_message(one) for one in to_chat_messages(view.view)]
    return SessionViewResponse(tokens=view.tokens, log_tokens=view.logged, messages=messages)


@router.post("/{session:path}/close", response_model=CloseSessionResponse)
async def close_session(session: str, act: WriteAction) -> Response:
    """Store the conversation as an episode; a job extracts facts from it. The session can still be continued."""

    async def work(newton: AgentServices) -> CloseSessionResponse:
        async with newton.scope.transaction() as tx:
            session_id = await sessions.get_session_id(tx, agent_id=newton.scope.agent_id, ref=session)
            await newton.sessions(ORIGIN).close(session_id)
            await queue.enqueue_if_idle(tx, EXTRACT, agent_id=newton.scope.agent_id)
        return CloseSessionResponse(session_id=session_id)

    return await act.run_once(work)
