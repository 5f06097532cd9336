"""A turn of a conversation as Newton itself holds it, and what a person answers in one."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import Field

from newton.content.frames import get_frame
from newton.dialogue import sessions
from newton.dialogue.compaction.progress_events import CompactionEvent, to_payload
from newton.errors import NewtonError
from newton.memory.hygiene import clean_ref, clean_text
from newton.runtime.access.tokens import TokenScope
from newton.runtime.api import problems
from newton.runtime.api.auth import ReadAccess, WriteAccess
from newton.runtime.api.idempotency import AdminAction, WriteAction
from newton.runtime.api.routes.memories import ORIGIN
from newton.runtime.api.schemas import RequestModel, ResponseModel
from newton.runtime.api.turn_stream import TurnStream
from newton.runtime.chat_backend.local import LocalAgent, find_proposals
from newton.runtime.chat_backend.view_models import ExplanationView, ProposalView, TurnView, to_explanation_view
from newton.runtime.transfer.schema import Name, Timestamp
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1", tags=["talk"])

PERSON_ORIGIN = "chat"  # who is trusted to forget and erase is a person, or speaks for one

STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `piece` with the `text` of each piece of the reply as it comes,"
        " `compaction` while the conversation is made shorter, and at the end `answer` or `problem`. An answer has"
        " `text`, `degraded` (why no model answered to the end), `quoted`, `failed`, `caveat`, `proposed` (what waits"
        " for a yes), `how` and `because` (whether the context was made for this) and `contents` (what is in it).",
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "object",
                    "description": "One event of the stream.",
                    "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": {"type": "string"}},
                    "required": ["data"],
                },
                "example": 'event: piece\ndata: {"text": "It is "}\n\nevent: piece\ndata: {"text": "Artemis."}\n\n',
            }
        },
    }
}


class TokenInfo(ResponseModel):
    """For whom the token speaks and how far it reaches, and the model that answers; null when none is set."""

    agent: str
    scope: TokenScope
    model: str | None


class TurnRequest(RequestModel):
    """What a person says."""

    text: str = Field(examples=["What is the ferry called?"])
    frame: Name | None = Field(None, description="The frame to look at it in; without it, it is chosen.")
    whole: bool = Field(default=False, description="Answer with the whole context, too.")


class CloseSessionResponse(ResponseModel):
    session_id: UUID


class AcceptProposalResponse(ResponseModel):
    """The line that stands, and those whose place it took."""

    tenet_id: UUID
    instead_of: list[UUID]


class RejectProposalResponse(ResponseModel):
    tenet_id: UUID


class ProcessPendingRequest(RequestModel):
    since: Timestamp = Field(description="The time of what was written, as it was answered.")


class ChangedMemory(ResponseModel):
    """A step of a memory's life that was taken, and its words in short."""

    memory_id: UUID
    event: str
    before: str
    after: str
    because: str
    micro: str


@router.get("/agent")
async def get_token_info(request: Request, caller: ReadAccess) -> TokenInfo:
    """For whom the token speaks."""
    settings = caller.newton.settings
    model = settings.openai_model if request.app.state.agents.model else None
    return TokenInfo(agent=settings.agent, scope=caller.scope, model=model)


@router.post(
    "/sessions/{session:path}/turns", response_class=StreamingResponse, responses=STREAM_RESPONSES, tags=["sessions"]
)
async def run_turn(session: str, body: TurnRequest, request: Request, caller: WriteAccess) -> StreamingResponse:
    """Say something in a session, and be answered as it comes. Who leaves before the end stops the answer; what was
    said until then is kept."""
    name, text = clean_ref(session, what="session"), clean_text(body.text, what="message")
    if body.frame:
        get_frame(caller.newton.frames, body.frame)
    model, taking = request.app.state.agents.model, TurnStream[str | TurnView | CompactionEvent]()
    partner = LocalAgent(
        newton=caller.newton,
        turn_runner=caller.newton.turn_runner(model, origin=ORIGIN, on_event=taking.put),
        origin=ORIGIN,
    )
    pieces = partner.run_turn(name, text, frame=body.frame, include_context=body.whole)
    return StreamingResponse(_stream(taking.read_pieces(pieces, caller, request)), media_type="text/event-stream")


@router.post("/sessions/{session:path}/close", response_model=CloseSessionResponse, tags=["sessions"])
async def close_session(session: str, act: WriteAction) -> Response:
    """Say that the conversation is over: what was said in it becomes an episode. It may go on all the same."""

    async def work(newton: AgentServices) -> CloseSessionResponse:
        async with newton.scope.transaction() as tx:
            session_id = await sessions.get_session_id(tx, agent_id=newton.scope.agent_id, ref=session)
        await newton.sessions(ORIGIN).close(session_id)
        return CloseSessionResponse(session_id=session_id)

    return await act.run_once(work)


@router.post("/memories/settle", tags=["memories"])
async def process_memories(body: ProcessPendingRequest, caller: WriteAccess) -> list[ChangedMemory]:
    """See to what was written at once: names, vectors, and what facts are to each other; it is done soon anyway.
    Answers what changed in memories since then."""
    await caller.newton.maintenance(ORIGIN).process_pending()
    changed = await caller.newton.curation(ORIGIN).list_changes(body.since)
    return [
        ChangedMemory(
            memory_id=step.memory_id,
            event=step.event,
            before=step.from_state,
            after=step.to_state,
            because=step.reason,
            micro=micro,
        )
        for step, micro in changed
    ]


@router.get("/bundles/{bundle_id}/why", tags=["context"])
async def explain_bundle(
    bundle_id: UUID,
    caller: ReadAccess,
    item: Annotated[
        str, Query(max_length=1_000, description="Its number in the context, its id, its ref, or words of its text.")
    ],
) -> ExplanationView:
    """Why a memory is in a context, or is not."""
    account = await caller.newton.bundles().explain(bundle_id.hex)
    return to_explanation_view(account, account.find_item(item))


@router.get("/identity/proposals", tags=["identity"])
async def list_identity_proposals(caller: ReadAccess) -> list[ProposalView]:
    """What people seem to want always; it waits for a person's yes."""
    return list(await find_proposals(caller.newton.identity(ORIGIN)))


@router.post("/identity/proposals/{tenet_id}/accept", response_model=AcceptProposalResponse, tags=["identity"])
async def accept_identity_proposal(tenet_id: UUID, act: AdminAction) -> Response:
    """Say yes to it, as a person: it holds from now on, in the place of what goes against it."""

    async def work(newton: AgentServices) -> AcceptProposalResponse:
        tenet, standing = await newton.identity(PERSON_ORIGIN).accept(tenet_id.hex)
        return AcceptProposalResponse(tenet_id=tenet.tenet_id, instead_of=[one.tenet_id for one in standing])

    return await act.run_once(work)


@router.post("/identity/proposals/{tenet_id}/reject", response_model=RejectProposalResponse, tags=["identity"])
async def reject_identity_proposal(tenet_id: UUID, act: AdminAction) -> Response:
    """Say no to it."""

    async def work(newton: AgentServices) -> RejectProposalResponse:
        tenet = await newton.identity(PERSON_ORIGIN).reject(tenet_id.hex)
        return RejectProposalResponse(tenet_id=tenet.tenet_id)

    return await act.run_once(work)


async def _stream(pieces: AsyncGenerator[str | TurnView | CompactionEvent | None]) -> AsyncGenerator[str]:
    yield ": newton\n\n"
    async with aclosing(pieces):
        try:
            async for said in pieces:
                yield ": beat\n\n" if said is None else _format_piece(said)
        except NewtonError as error:
            yield _format_event("problem", problems.to_problem(error).model_dump())


def _format_piece(piece: str | TurnView | CompactionEvent) -> str:
    match piece:
        case str():
            return _format_event("piece", {"text": piece})
        case TurnView():
            return _format_event("answer", piece.model_dump(mode="json"))
        case _:
            return _format_event("compaction", to_payload(piece))


def _format_event(type_: str, data: Mapping[str, object]) -> str:
    return f"event: {type_}\ndata: {json.dumps(data)}\n\n"  # ASCII: some readers end a line where Unicode does
