"""Chat completions with memory."""

from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from newton.memory import hygiene
from newton.runtime.api import problems
from newton.runtime.api.auth import WriteAccess
from newton.runtime.api.chat_completions.model_choice import choose_model
from newton.runtime.api.chat_completions.request_models import ChatCompletionRequest
from newton.runtime.api.chat_completions.response_writer import ResponseWriter, TurnPiece
from newton.runtime.api.chat_completions.turn_request import default_session_name, to_turn_input
from newton.runtime.api.turn_stream import TurnStream

ORIGIN = "http"
CLIENT_CLOSED_REQUEST = 499  # for the log: the client has disconnected

router = APIRouter(
    prefix="/v1",
    tags=["openai"],
    responses={"default": {"model": problems.OpenAIErrorResponse, "description": "An error in the format of OpenAI."}},
)


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
    ref = hygiene.clean_ref(session, what="session") if session else default_session_name(request)
    match = await newton.history_matcher(ORIGIN).match(
        body.incoming_messages, session_ref=ref, explicit_ref=session is not None
    )
    turns = newton.turn_runner(model, origin=ORIGIN)
    pieces = TurnStream[TurnPiece]().read_pieces(turns.run(to_turn_input(body, match)), caller, request)
    writer = ResponseWriter(body, created_at=newton.scope.now(), debug=bool(debug))
    if body.stream:
        # an error before the first piece still has an HTTP status; None means that the client has disconnected
        first = await anext((piece async for piece in pieces if piece is not None), None)
        return StreamingResponse(writer.stream_chunks(first, pieces), media_type="text/event-stream")
    response = await writer.build_response(pieces)
    return JSONResponse(response) if response else Response(status_code=CLIENT_CLOSED_REQUEST)
