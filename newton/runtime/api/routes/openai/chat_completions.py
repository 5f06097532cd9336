"""The endpoint of chat completions in OpenAI's format, with memory."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response

from newton.runtime.api import problems
from newton.runtime.api.auth import WriteAccess
from newton.runtime.api.chat_completions.request_models import ChatCompletionRequest
from newton.runtime.api.chat_completions.response_writer import JSON_OR_STREAM, ResponseWriter, respond
from newton.runtime.api.chat_completions.turn_request import (
    TurnOptions,
    check_request,
    find_task,
    get_turn_options,
    is_remembered,
    mark_feedback,
    match_history,
    select_target,
    to_private_input,
    to_turn_input,
)

router = APIRouter(
    prefix="/v1",
    tags=["openai"],
    responses=problems.OPENAI_ERRORS,
)


@router.post("/chat/completions", response_model=None, responses=JSON_OR_STREAM)
async def create_chat_completion(
    body: ChatCompletionRequest,
    request: Request,
    caller: WriteAccess,
    options: Annotated[TurnOptions, Depends(get_turn_options)],
    session: Annotated[
        str | None,
        Header(
            alias="X-Newton-Session",
            description="The name of the session. Default: a session of the token and the user.",
        ),
    ] = None,
    debug: Annotated[
        bool | None,
        Header(
            alias="X-Newton-Debug",
            description="Say in comment lines before the reply what the model is sent: the frame, the tasks, the"
            " memories in the context, and how the conversation was shortened. For streams only.",
        ),
    ] = None,
) -> Response:
    """Answer a conversation with the help of the memory, and store the new messages."""
    target = await select_target(body, caller, request, strategy=options.strategy)
    newton, task = target.newton, find_task(body, request, options.remember)
    check_request(body, target, task=task)
    if task or not is_remembered(body, options.remember):
        turn_input = to_private_input(body, newton, task=task)
    else:
        history = await match_history(body, target, request, session=session)
        turn_input = to_turn_input(body, mark_feedback(history, request.app.state.agents.ui_tasks), newton)
    writer = ResponseWriter(body, created_at=newton.scope.now())
    if debug:
        turn_input = replace(turn_input, on_debug=writer.add_debug_lines)
    return await respond(writer, turn_input, target, request, is_streamed=bool(body.stream))
