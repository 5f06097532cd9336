"""Endpoints of OpenAI's Responses API, with memory. Stored responses can be continued and retrieved by their id."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from newton.agent.loop.history_match import HistoryMatch
from newton.agent.loop.turn_types import TurnResult
from newton.agent.services.responses import ResponseService
from newton.dialogue.response_store import ResponseRecord
from newton.errors import InputError, NewtonError, NotFoundError
from newton.ids import new_id
from newton.runtime.api import problems
from newton.runtime.api.auth import ReadAccess, WriteAccess
from newton.runtime.api.chat_completions.request_models import ChatCompletionRequest
from newton.runtime.api.chat_completions.response_writer import JSON_OR_STREAM, respond
from newton.runtime.api.chat_completions.turn_request import (
    ORIGIN,
    TurnOptions,
    TurnTarget,
    check_request,
    find_task,
    get_turn_options,
    is_remembered,
    mark_feedback,
    match_history,
    select_target,
    sign_reply,
    to_private_input,
    to_turn_input,
)
from newton.runtime.api.responses.chat_translation import to_chat_request
from newton.runtime.api.responses.request_models import ResponseRequest, parse_response_id, resolve_references
from newton.runtime.api.responses.response_events import EventWriter, ResponseHead, build_stored_response

router = APIRouter(
    prefix="/v1/responses",
    tags=["openai"],
    responses=problems.OPENAI_ERRORS,
)


FIELD_NAMES = {"messages": "input", "response_format": "text.format"}  # of chat completions


@router.post("", response_model=None, responses=JSON_OR_STREAM)
async def create_response(
    body: ResponseRequest,
    request: Request,
    caller: WriteAccess,
    options: Annotated[TurnOptions, Depends(get_turn_options)],
    session: Annotated[
        str | None,
        Header(
            alias="X-Newton-Session",
            description="The name of the session. Default: the session of `previous_response_id`, or else a session of"
            " the token and the user.",
        ),
    ] = None,
) -> Response:
    """Answer an input with the help of the memory, and store the new messages."""
    with _name_input_field():
        target = await select_target(body, caller, request, strategy=options.strategy)
        chat = to_chat_request(body, await resolve_references(body.items, target.newton.responses(ORIGIN)))
        task = find_task(chat, request, options.remember)
        check_request(chat, target, task=task, continues_response=body.previous_response_id is not None)
        if task or not is_remembered(body, options.remember):
            return await _run_private_turn(body, chat, target, request, task=task)
        return await _run_turn(body, chat, target, request, session=session)


async def _run_turn(
    body: ResponseRequest, chat: ChatCompletionRequest, target: TurnTarget, request: Request, *, session: str | None
) -> Response:
    newton = target.newton
    responses = newton.responses(ORIGIN)
    is_stored = body.store is not False
    head = ResponseHead(new_id(), newton.scope.now(), _parse_previous_id(body), is_stored=is_stored)
    if head.previous_id:
        response_id = head.response_id if is_stored else None
        history = await responses.continue_from(head.previous_id, chat.incoming_messages, response_id=response_id)
    else:
        history = await match_history(chat, target, request, session=session)
    history = mark_feedback(history, request.app.state.agents.ui_tasks)
    turn_input = to_turn_input(chat, history, newton, is_whole=head.previous_id is None)
    store = partial(_store_response, responses=responses, history=history)
    writer = EventWriter(body=body, head=head, now=newton.scope.now, store=store if is_stored else None)
    return await respond(writer, turn_input, target, request, is_streamed=bool(body.stream))


async def _run_private_turn(
    body: ResponseRequest, chat: ChatCompletionRequest, target: TurnTarget, request: Request, *, task: str | None
) -> Response:
    newton, previous_id = target.newton, _parse_previous_id(body)
    previous = await newton.responses(ORIGIN).find_previous(previous_id) if previous_id else None
    turn_input = to_private_input(chat, newton, task=task, previous=previous)
    head = ResponseHead(new_id(), newton.scope.now(), previous_id, is_stored=False)
    writer = EventWriter(body=body, head=head, now=newton.scope.now)
    return await respond(writer, turn_input, target, request, is_streamed=bool(body.stream))


@router.get("/{response_id}", response_model=None)
async def get_response(
    response_id: str,
    caller: ReadAccess,
    stream: Annotated[bool | None, Query(description="Only `false` is supported.")] = None,
) -> dict[str, Any]:
    """Return a stored response. Its instructions and tools are missing, because they are not stored."""
    if stream:
        raise InputError(
            "A stored response cannot be streamed.", hint="Omit `stream` to retrieve a stored response.", param="stream"
        )
    return build_stored_response(await caller.newton.responses(ORIGIN).get(_parse_id(response_id)))


@router.delete("/{response_id}")
async def delete_response(response_id: str, caller: WriteAccess) -> dict[str, object]:
    """Delete a stored response. Its messages stay in the session and in the memory."""
    await caller.newton.responses(ORIGIN).delete(_parse_id(response_id))
    return {"id": response_id, "object": "response", "deleted": True}


async def _store_response(
    record: ResponseRecord,
    result: TurnResult,
    *,
    responses: ResponseService,
    history: HistoryMatch,
) -> None:
    """Store a response with a link to its reply in the session or, without a reply, to its input."""
    speech = result.replies[-1].speech if result.replies else ""
    refs = [history.fingerprint, sign_reply(history, result.text or speech, result.calls)]
    await responses.store(record, refs, session_id=history.session_id)


@contextmanager
def _name_input_field() -> Generator[None]:
    """Rename the fields of errors of chat completions as the Responses API calls them."""
    try:
        yield
    except NewtonError as error:
        for chat_name, name in FIELD_NAMES.items():
            if error.param and error.param.partition("[")[0] == chat_name:
                error.param = name
            error.what = error.what.replace(f"`{chat_name}`", f"`{name}`")
            error.hint = error.hint.replace(f"`{chat_name}`", f"`{name}`")
        raise


def _parse_previous_id(body: ResponseRequest) -> UUID | None:
    if not body.previous_response_id:
        return None
    previous_id = parse_response_id(body.previous_response_id)
    if previous_id is None:
        hint = "Send the id of a stored response, such as resp_0123456789abcdef0123456789abcdef."
        raise InputError("`previous_response_id` is not the id of a response.", hint=hint, param="previous_response_id")
    return previous_id


def _parse_id(text: str) -> UUID:
    response_id = parse_response_id(text)
    if response_id is None:
        raise NotFoundError(
            f"There is no response {text[:80]!r}.", hint="Send the id of a stored response; it begins with resp_."
        )
    return response_id
