"""Chat completions with memory."""

from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from newton.runtime.api import problems
from newton.runtime.api.auth import WriteAccess
from newton.runtime.api.chat_completions.request_models import ChatCompletionRequest
from newton.runtime.api.chat_completions.response_writer import JSON_OR_STREAM, ResponseWriter, TurnPiece
from newton.runtime.api.chat_completions.turn_request import (
    ORIGIN,
    RememberHeader,
    find_task,
    is_remembered,
    mark_feedback,
    match_history,
    select_target,
    to_private_input,
    to_turn_input,
)
from newton.runtime.api.turn_stream import TurnStream

CLIENT_CLOSED_REQUEST = 499  # for the log: the client has disconnected

router = APIRouter(
    prefix="/v1",
    tags=["openai"],
    responses={"default": {"model": problems.OpenAIErrorResponse, "description": "An error in the format of OpenAI."}},
)


@router.post("/chat/completions", response_model=None, responses=JSON_OR_STREAM)
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
    remember: RememberHeader = None,
) -> Response:
    """Answer a conversation with the help of the memory, and store the new messages."""
    target = await select_target(body, caller, request)
    newton, task = target.newton, find_task(body, request, remember)
    if task or not is_remembered(body, remember):
        turn_input = to_private_input(body, newton, task=task)
    else:
        history = await match_history(body, target, request, session=session)
        turn_input = to_turn_input(body, mark_feedback(history, request.app.state.agents.ui_tasks))
    turns = newton.turn_runner(target.model, origin=ORIGIN).run(turn_input)
    pieces = TurnStream[TurnPiece]().read_pieces(
        turns, target.caller, request, is_private=turn_input.private is not None
    )
    writer = ResponseWriter(body, created_at=newton.scope.now(), debug=bool(debug))
    if body.stream:
        # an error before the first piece still has an HTTP status; None means that the client has disconnected
        first = await anext((piece async for piece in pieces if piece is not None), None)
        return StreamingResponse(writer.stream_chunks(first, pieces), media_type="text/event-stream")
    response = await writer.build_response(pieces)
    return JSONResponse(response) if response else Response(status_code=CLIENT_CLOSED_REQUEST)
