"""OpenAI-compatible routes: chat completions with memory."""

import hashlib
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from newton.agent.loop.history_match import HistoryMatch, IncomingMessage, fingerprint
from newton.agent.loop.turn import CallerOptions, TurnInput, TurnResult
from newton.cognition.bundles.debug import format_debug_lines
from newton.errors import InputError, NewtonError, NotFoundError
from newton.ids import new_id
from newton.memory import hygiene
from newton.memory.hygiene import MAX_MESSAGE_CHARACTERS
from newton.providers.chat import RequestOptions, ToolCall, ToolDefinition
from newton.runtime.api import problems
from newton.runtime.api.auth import ReadAccess, WriteAccess
from newton.runtime.api.turn_stream import TurnStream
from newton.runtime.wiring import AgentServices

ORIGIN = "http"
OWN_MODEL = "newton"
SESSION_PREFIX = "openai"  # prefix of default session names, before a part of the token's hash
# Unsupported options, with the values that are accepted because they are the defaults.
UNSUPPORTED: Mapping[str, tuple[object, ...]] = {
    "n": (None, 1),
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "logit_bias": (None, {}),
    "response_format": (None, {"type": "text"}),
    "modalities": (None, ["text"]),
    "audio": (None,),
    "prediction": (None,),
    "functions": (None, []),
    "function_call": (None, "none"),
    "web_search_options": (None,),
}
CLIENT_CLOSED_REQUEST = 499  # for the log: the client has disconnected

router = APIRouter(
    prefix="/v1",
    tags=["openai"],
    responses={"default": {"model": problems.OpenAIErrorResponse, "description": "An error in the format of OpenAI."}},
)


class OpenAIRequestModel(BaseModel):
    """Base of request models; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ContentPartParam(OpenAIRequestModel):
    type: str = "text"
    text: str | None = None


class FunctionCallParam(OpenAIRequestModel):
    name: str = Field(min_length=1, max_length=200)
    arguments: str = Field("{}", max_length=MAX_MESSAGE_CHARACTERS)


class ToolCallParam(OpenAIRequestModel):
    id: str = Field(min_length=1, max_length=200)
    function: FunctionCallParam


class ChatMessageParam(OpenAIRequestModel):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | tuple[ContentPartParam, ...] | None = None
    name: str | None = Field(None, max_length=200)
    tool_calls: tuple[ToolCallParam, ...] | None = None
    tool_call_id: str | None = Field(None, max_length=200)

    @property
    def text(self) -> str:
        """Return the joined text parts. Raises InputError for images and files."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        if any(part.type not in ("text", "refusal") for part in self.content):
            raise InputError("Images and files are not supported.", hint="Send only text parts.")
        return "\n".join(part.text or "" for part in self.content)


class ToolFunction(BaseModel):
    """The definition of a tool, which is passed to the model unchanged."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,100}$")


class ToolParam(OpenAIRequestModel):
    type: Literal["function"] = "function"
    function: ToolFunction


class StreamOptions(OpenAIRequestModel):
    include_usage: bool = False


class SamplingOptions(OpenAIRequestModel):
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    stop: str | tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    parallel_tool_calls: bool | None = None


class ChatCompletionRequest(SamplingOptions):
    """A conversation, whose last message is answered. Unsupported options are rejected."""

    model_config = ConfigDict(extra="allow")

    messages: tuple[ChatMessageParam, ...] = Field(
        min_length=1, max_length=10_000, examples=[[{"role": "user", "content": "Who reviews my migration?"}]]
    )
    model: str = Field(OWN_MODEL, examples=[OWN_MODEL])
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    tools: tuple[ToolParam, ...] | None = Field(None, max_length=128)
    tool_choice: str | dict[str, Any] | None = None

    def require_supported_options(self) -> None:
        """Raise InputError for unsupported options."""
        for name, defaults in UNSUPPORTED.items():
            if (self.model_extra or {}).get(name) not in defaults:
                raise InputError(f"{name} is not supported.", hint=f"Omit {name}.")

    @property
    def request_options(self) -> RequestOptions:
        tools = tuple(ToolDefinition(one.function.name, one.function.model_dump()) for one in self.tools or ())
        options = self.model_dump(include=set(SamplingOptions.model_fields), exclude_none=True)
        if tools and self.tool_choice is not None:
            options["tool_choice"] = self.tool_choice
        if not tools:
            options.pop("parallel_tool_calls", None)
        return RequestOptions(tools=tools, extra_body=options)

    @property
    def instructions(self) -> str:
        return "\n\n".join(one.text for one in self.messages if one.role in ("system", "developer"))

    @property
    def incoming_messages(self) -> list[IncomingMessage]:
        return [_to_incoming_message(one) for one in self.messages if one.role not in ("system", "developer")]


@router.get("/models")
async def list_models(caller: ReadAccess) -> dict[str, object]:
    """List the accepted values of `model`."""
    common = {"object": "model", "created": 0, "owned_by": OWN_MODEL}
    return {"object": "list", "data": [{"id": name, **common} for name in _model_names(caller.newton)]}


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
    newton = caller.newton
    body.require_supported_options()
    if body.model not in (names := _model_names(newton)):
        raise NotFoundError(f"There is no model {body.model!r}.", hint=f"There are: {', '.join(names)}.")
    ref = hygiene.clean_ref(session, what="session") if session else _default_session_name(request)
    match = await newton.history_matcher(ORIGIN).match(
        body.incoming_messages, session_ref=ref, explicit_ref=session is not None
    )
    turns = newton.turn_runner(request.app.state.agents.chat_model, origin=ORIGIN)
    pieces = TurnStream[str | TurnResult]().read_pieces(turns.run(_to_turn_input(body, match)), caller, request)
    writer = ResponseWriter(body, created_at=newton.scope.now(), debug=bool(debug))
    if body.stream:
        # an error before the first piece still has an HTTP status; None means that the client has disconnected
        first = await anext((piece async for piece in pieces if piece is not None), None)
        return StreamingResponse(writer.stream_chunks(first, pieces), media_type="text/event-stream")
    response = await writer.build_response(pieces)
    return JSONResponse(response) if response else Response(status_code=CLIENT_CLOSED_REQUEST)


class ResponseWriter:
    """Writes one reply in OpenAI's format."""

    def __init__(self, body: ChatCompletionRequest, *, created_at: datetime, debug: bool) -> None:
        self._body, self._debug = body, debug
        self._id, self._created = f"chatcmpl-{new_id().hex}", int(created_at.timestamp())

    async def build_response(self, pieces: AsyncGenerator[str | TurnResult | None]) -> dict[str, object] | None:
        """Return the whole reply as one response; None when the client has disconnected."""
        result: str | TurnResult | None = None
        async with aclosing(pieces):
            async for piece in pieces:
                result = piece or result
        if not isinstance(result, TurnResult):
            return None
        message: dict[str, object] = {"role": "assistant", "content": result.text or None}
        if result.calls:
            message["tool_calls"] = [_tool_call_object(call) for call in result.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(result)}
        extra = {"usage": _usage_object(result), "newton": _newton_object(result)}
        return {**self._common_fields("chat.completion"), "choices": [choice], **extra}

    async def stream_chunks(
        self, first: str | TurnResult | None, pieces: AsyncGenerator[str | TurnResult | None]
    ) -> AsyncGenerator[str]:
        yield self._format_chunk({"role": "assistant", "content": ""})
        async with aclosing(pieces):
            try:
                for line in self._format_piece(first):
                    yield line
                async for piece in pieces:
                    for line in self._format_piece(piece):
                        yield line
            except NewtonError as error:  # the HTTP status has already been sent
                problem = problems.to_openai_error(f"{error.what} {error.hint}", error.code, 500)
                yield f"data: {problem.model_dump_json()}\n\n"
        yield "data: [DONE]\n\n"

    def _format_piece(self, piece: str | TurnResult | None) -> list[str]:
        if piece is None:
            return []
        if isinstance(piece, str):
            return [self._format_chunk({"content": piece})]
        lines = [f"{line}\n\n" for line in format_debug_lines(piece.bundle)] if self._debug else []
        if piece.calls:
            calls = [{"index": index, **_tool_call_object(call)} for index, call in enumerate(piece.calls)]
            lines.append(self._format_chunk({"tool_calls": calls}))
        lines.append(self._format_chunk({}, finish=_finish_reason(piece), newton=_newton_object(piece)))
        if self._body.stream_options and self._body.stream_options.include_usage:
            lines.append(self._format_event({"choices": [], "usage": _usage_object(piece)}))
        return lines

    def _format_chunk(self, delta: dict[str, object], *, finish: str | None = None, **more: object) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._format_event({"choices": [choice], **more})

    def _format_event(self, fields: dict[str, object]) -> str:
        event = {**self._common_fields("chat.completion.chunk"), **fields}
        return f"data: {json.dumps(event, ensure_ascii=False)}\n\n"

    def _common_fields(self, kind: str) -> dict[str, object]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._body.model}


def _to_turn_input(body: ChatCompletionRequest, history: HistoryMatch) -> TurnInput:
    """Return the last user message and the tool results after it."""
    sent = body.incoming_messages
    new = list(history.new_messages)
    ends_with_user = bool(new) and sent[-1].role == "user"

    def sign_reply(reply: str, calls: Sequence[ToolCall]) -> str:
        return fingerprint(history.fingerprint, IncomingMessage("assistant", reply, tuple(calls)))

    return TurnInput(
        session_id=history.session_id,
        text=next(one.text for one in reversed(sent) if one.role == "user"),
        ref=history.fingerprint if ends_with_user else None,
        earlier=new[:-1] if ends_with_user else new,
        already_stored=not ends_with_user,
        caller_options=CallerOptions(
            request_options=body.request_options,
            instructions=body.instructions,
            max_reply_tokens=body.max_completion_tokens or body.max_tokens,
            fingerprint=sign_reply,
        ),
    )


def _default_session_name(request: Request) -> str:
    authorization = request.headers.get("Authorization", "")
    return f"{SESSION_PREFIX}-{hashlib.sha256(authorization.encode()).hexdigest()[:12]}"


def _to_incoming_message(message: ChatMessageParam) -> IncomingMessage:
    calls = tuple(ToolCall(one.id, one.function.name, one.function.arguments) for one in message.tool_calls or ())
    if message.role == "assistant":
        return IncomingMessage("assistant", message.text, calls)
    if message.role == "tool":
        if not message.tool_call_id:
            raise InputError("A tool message has no tool_call_id.", hint="Send the id of the tool call.")
        return IncomingMessage("tool", message.text, tool_call_id=message.tool_call_id)
    return IncomingMessage("user", message.text)


def _model_names(newton: AgentServices) -> list[str]:
    settings = newton.settings
    has_model = settings.openai_api_key is not None or settings.openai_base_url is not None
    return [OWN_MODEL, settings.openai_model] if has_model else [OWN_MODEL]


def _tool_call_object(call: ToolCall) -> dict[str, object]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _finish_reason(answer: TurnResult) -> str:
    if answer.forbidden:
        return "content_filter"
    if answer.calls:
        return "tool_calls"
    return "stop" if answer.finish == "stop" or answer.quoted else "length"


def _usage_object(answer: TurnResult) -> dict[str, int]:
    read, written = answer.tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _newton_object(answer: TurnResult) -> dict[str, object]:
    """Return the field with which Newton extends OpenAI's response."""
    return {
        "degraded": answer.degraded,
        "from_memory": answer.quoted,
        "bundle_id": str(answer.bundle.bundle_id),
        "context_tokens": answer.bundle.tokens,
    }
