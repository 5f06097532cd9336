"""The endpoint of turns: it sends a message of the user and streams the reply."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Literal, TypeAlias

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import Field
from pydantic_core import to_jsonable_python

from newton.agent.field_types import Name, Strategy
from newton.agent.loop.turn_status import ProgressEvent, TasksChanged, TurnStatus
from newton.content.frames import get_frame
from newton.dialogue.compaction.progress_events import to_payload
from newton.errors import NewtonError
from newton.memory.hygiene import clean_ref, clean_text
from newton.operations.conversations.task_records import TaskList, to_task_infos
from newton.runtime.api import problems
from newton.runtime.api.auth import WriteAccess
from newton.runtime.api.base_models import ORIGIN, RequestModel, describe_event_stream
from newton.runtime.api.turn_stream import TurnStream
from newton.runtime.chat_backend.local import LocalAgent
from newton.runtime.chat_backend.protocol import DebugLines, ImageInput, ImagePart, PrivateMessage
from newton.runtime.chat_backend.view_models import TurnView

TurnPiece: TypeAlias = str | DebugLines | TurnView | ProgressEvent

router = APIRouter(prefix="/v1", tags=["sessions"])

STREAM_RESPONSES = describe_event_stream(
    "Server-sent events: `status` with the `stage` of a turn whose reply has not begun (`retrieving`, `waiting`,"
    " `slow`, `retrying`, `tool`) and a `text` for the user, `tasks` with the `items` of the session's task tree when"
    " the model makes a plan or a step of it begins or ends, `compaction` while the conversation is compacted, with"
    " `include_context` before the reply `debug` with `lines` that say what the model is sent, `delta` with the"
    " next `text` of the reply, and at the end `result` or `problem`. A result has `text`, `degraded` (the reason why"
    " no model completed the reply), `from_memory`, `failed`, `warning`, `proposals` (identity lines that wait for"
    " approval), `context_source` and `context_reason` (how the context was built) and `context_summary`.",
    example='event: delta\ndata: {"text": "It is "}\n\nevent: delta\ndata: {"text": "Artemis."}\n\n',
)


class PrivateMessageInput(RequestModel):
    """An earlier message of a private conversation, which is not stored."""

    role: Literal["user", "assistant"]
    text: str


class TurnImage(RequestModel):
    """An image that is sent to the model with the input. Only its name is stored, in the input."""

    name: Name
    url: str = Field(pattern=r"^data:image/[a-z]+;base64,", description="The content as a data URL.")


class TurnRequest(RequestModel):
    """The message of the user, and options of the reply."""

    input: str = Field(examples=["What is the ferry called?"])
    frame: Name | None = Field(
        None, description="The name of the frame (kind of input). Default: the best match for the input."
    )
    model: Name | None = Field(
        None, description="The name of a model server or of a model. Default: the agent's model."
    )
    strategy: Strategy | None = Field(
        None,
        description="The compaction preset (default, long, conservative, none) or list of strategies for this turn."
        " Default: the setting `compaction`.",
        examples=["mask_outputs(share=0.5), threshold(share=0.7)"],
    )
    include_context: bool = Field(
        default=False, description="Send an event `debug` before the reply, and include the full context in the result."
    )
    private: list[PrivateMessageInput] | None = Field(
        None,
        max_length=1_000,
        description="If given, nothing of this turn is stored. The list contains the earlier private messages of the"
        " conversation, oldest first; the caller must keep them.",
    )
    images: list[TurnImage] | None = Field(
        None, max_length=8, description="Images for a model that takes them. They are not stored."
    )


@router.post("/sessions/{session:path}/turns", response_class=StreamingResponse, responses=STREAM_RESPONSES)
async def run_turn(session: str, body: TurnRequest, request: Request, caller: WriteAccess) -> StreamingResponse:
    """Send a message in a session and stream the reply.

    If the client disconnects, the turn stops, and the reply so far is stored.
    """
    name, text = clean_ref(session, what="session"), clean_text(body.input, what="message")
    if body.frame:
        get_frame(caller.newton.frames, body.frame)
    default = caller.newton.chat_model
    model = await caller.newton.models.select(default, body.model) if body.model else default
    turn = TurnStream[TurnPiece]()
    turn_runner = caller.newton.turn_runner(model, origin=ORIGIN, on_event=turn.put)
    agent = LocalAgent(newton=caller.newton, turn_runner=turn_runner, origin=ORIGIN, deadline=caller.turn_deadline)
    private = None if body.private is None else [PrivateMessage(one.role, one.text) for one in body.private]
    images = [ImagePart(one.name, one.url) for one in body.images or ()]
    pieces = agent.run_turn(
        name,
        ImageInput(text, images) if images else text,
        frame=body.frame,
        strategy=body.strategy,
        include_context=body.include_context,
        private=private,
    )
    read = turn.read_pieces(pieces, caller, request, is_private=private is not None)
    return StreamingResponse(_stream(read), media_type="text/event-stream")


async def _stream(pieces: AsyncGenerator[TurnPiece | None]) -> AsyncGenerator[str]:
    yield ": newton\n\n"
    async with aclosing(pieces):
        try:
            async for piece in pieces:
                yield ": beat\n\n" if piece is None else _format_piece(piece)
        except NewtonError as error:
            yield _format_event("problem", problems.to_problem(error).model_dump())


def _format_piece(piece: TurnPiece) -> str:
    match piece:
        case str():
            return _format_event("delta", {"text": piece})
        case DebugLines():
            return _format_event("debug", {"lines": list(piece.lines)})
        case TurnView():
            return _format_event("result", piece.model_dump(mode="json"))
        case TurnStatus():
            return _format_event("status", {"stage": piece.stage, "text": piece.text})
        case TasksChanged():
            return _format_event("tasks", to_jsonable_python(TaskList(items=to_task_infos(piece.tree))))
        case _:
            return _format_event("compaction", to_payload(piece))


def _format_event(type_: str, data: Mapping[str, object]) -> str:
    return f"event: {type_}\ndata: {json.dumps(data)}\n\n"  # ASCII: some clients split lines at Unicode line separators
