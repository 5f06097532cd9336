"""OpenAI-compatible routes: models, and chat completions with memory."""

import hashlib
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from newton.agent.loop.history_match import HistoryMatch, IncomingMessage, fingerprint
from newton.agent.loop.turn_types import CallerOptions, TurnInput
from newton.memory import hygiene
from newton.providers.chat import ToolCall
from newton.runtime.api import problems
from newton.runtime.api.auth import ReadAccess, WriteAccess
from newton.runtime.api.chat_completions.model_choice import choose_model, list_model_names
from newton.runtime.api.chat_completions.request_models import OWN_MODEL, ChatCompletionRequest, to_message_parts
from newton.runtime.api.chat_completions.response_writer import ResponseWriter, TurnPiece
from newton.runtime.api.turn_stream import TurnStream

ORIGIN = "http"
SESSION_PREFIX = "openai"  # prefix of default session names, before a part of the token's hash
CLIENT_CLOSED_REQUEST = 499  # for the log: the client has disconnected

router = APIRouter(
    prefix="/v1",
    tags=["openai"],
    responses={"default": {"model": problems.OpenAIErrorResponse, "description": "An error in the format of OpenAI."}},
)


@router.get("/models")
async def list_models(request: Request, caller: ReadAccess) -> dict[str, object]:
    """List the accepted values of `model`: `newton`, the agents of the token, and the models of the model's server."""
    names = await list_model_names(caller, request.app.state.agents)
    return {"object": "list", "data": [_model_object(name) for name in names]}


@router.get("/models/{model:path}")
async def get_model(model: str, request: Request, caller: ReadAccess) -> dict[str, object]:
    """Return one accepted value of `model`."""
    await choose_model(model, caller, request.app.state.agents)
    return _model_object(model)


@router.post("/chat/completions", response_model=None)
async def create_chat_completion(
    body: ChatCompletionRequest,
    request: Request,
    caller: WriteAccess,
    session: Annotated[
        str | None,
        Header(alias="X-Newton-Session", description="The session; omitted, the default session of the token."),
    ] = None,
    debug: Annotated[
        bool | None,
        Header(alias="X-Newton-Debug", description="List the injected memories in comment lines of the stream."),
    ] = None,
) -> Response:
    """Answer a conversation with the help of the memory, and store the new messages."""
    newton, model = await choose_model(body.model, caller, request.app.state.agents)
    request.state.agent_id = newton.scope.agent_id  # for the request log
    caller = caller.for_agent(newton)
    ref = hygiene.clean_ref(session, what="session") if session else _default_session_name(request)
    match = await newton.history_matcher(ORIGIN).match(
        body.incoming_messages, session_ref=ref, explicit_ref=session is not None
    )
    turns = newton.turn_runner(model, origin=ORIGIN)
    pieces = TurnStream[TurnPiece]().read_pieces(turns.run(_to_turn_input(body, match)), caller, request)
    writer = ResponseWriter(body, created_at=newton.scope.now(), debug=bool(debug))
    if body.stream:
        # an error before the first piece still has an HTTP status; None means that the client has disconnected
        first = await anext((piece async for piece in pieces if piece is not None), None)
        return StreamingResponse(writer.stream_chunks(first, pieces), media_type="text/event-stream")
    response = await writer.build_response(pieces)
    return JSONResponse(response) if response else Response(status_code=CLIENT_CLOSED_REQUEST)


def _to_turn_input(body: ChatCompletionRequest, history: HistoryMatch) -> TurnInput:
    """Return the last user message and the tool results after it."""
    sent = body.incoming_messages
    new = list(history.new_messages)
    ends_with_user = bool(new) and sent[-1].role == "user"
    last_user = next(one for one in reversed(sent) if one.role == "user")

    def sign_reply(reply: str, calls: Sequence[ToolCall]) -> str:
        return fingerprint(history.fingerprint, IncomingMessage("assistant", reply, tuple(calls)))

    parts_by_ref = {ref: to_message_parts(one) for ref, one in zip(history.fingerprints, sent, strict=True)}
    return TurnInput(
        session_id=history.session_id,
        text=last_user.text,
        ref=history.fingerprint if ends_with_user else None,
        earlier=new[:-1] if ends_with_user else new,
        already_stored=not ends_with_user,
        caller_options=CallerOptions(
            request_options=body.request_options,
            instructions=body.instructions,
            max_reply_tokens=body.max_reply_tokens,
            fingerprint=sign_reply,
            offers_own_tools=body.wants_plain_text,
            accepts_quotes=body.wants_plain_text and not body.tools,
            attachments={ref: parts for ref, parts in parts_by_ref.items() if parts},
            input_parts=to_message_parts(last_user),
        ),
    )


def _default_session_name(request: Request) -> str:
    authorization = request.headers.get("Authorization", "")
    return f"{SESSION_PREFIX}-{hashlib.sha256(authorization.encode()).hexdigest()[:12]}"


def _model_object(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": OWN_MODEL}
