"""The chat protocol of OpenAI: whoever speaks it talks to an agent that remembers."""

import hashlib
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from newton.agent.following import Followed, Sent, sign
from newton.agent.turn import Answer, Said, Terms
from newton.cognition.debug import debug_lines
from newton.errors import InputError, NewtonError, NotFoundError
from newton.ids import new_id
from newton.memory import hygiene
from newton.memory.hygiene import MAX_MESSAGE
from newton.providers.chat import Call, Manner, Tool
from newton.runtime.api import problems
from newton.runtime.api.caller import Reader, Writer
from newton.runtime.api.taking import Taking
from newton.runtime.wiring import Newton

ORIGIN = "http"
OWN_MODEL = "newton"
SESSION = "openai"  # how the session of a token is called, with a part of its hash
# What is not done, with what may be said of it all the same: it asks for nothing.
UNDONE: Mapping[str, tuple[object, ...]] = {
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
LEFT = 499  # in the log: who asked has left, and is answered nothing
WISHES = ("temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty", "parallel_tool_calls")


router = APIRouter(
    prefix="/v1",
    tags=["openai"],
    responses={"default": {"model": problems.Failure, "description": "A failure, as OpenAI tells of one."}},
)


class Wire(BaseModel):
    """What clients send: what is not used here is theirs."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Part(Wire):
    type: str = "text"
    text: str | None = None


class Function(Wire):
    name: str = Field(min_length=1, max_length=200)
    arguments: str = Field("{}", max_length=MAX_MESSAGE)


class ToolCall(Wire):
    id: str = Field(min_length=1, max_length=200)
    function: Function


class Message(Wire):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | tuple[Part, ...] | None = None
    name: str | None = Field(None, max_length=200)
    tool_calls: tuple[ToolCall, ...] | None = None
    tool_call_id: str | None = Field(None, max_length=200)

    @property
    def text(self) -> str:
        """Raises InputError for what is no text."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        if any(part.type not in ("text", "refusal") for part in self.content):
            raise InputError("A message holds what is no text.", hint="Send text alone: Newton reads nothing else.")
        return "\n".join(part.text or "" for part in self.content)


class Described(BaseModel):
    """A tool as it is passed on."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,100}$")


class Offered(Wire):
    type: Literal["function"] = "function"
    function: Described


class StreamOptions(Wire):
    include_usage: bool = False


class ChatRequest(Wire):
    """A whole conversation; the answer is to its last message. What would ask for more than Newton does is refused."""

    model_config = ConfigDict(extra="allow")

    messages: tuple[Message, ...] = Field(
        min_length=1, max_length=10_000, examples=[[{"role": "user", "content": "Who reviews my migration?"}]]
    )
    model: str = Field(OWN_MODEL, examples=[OWN_MODEL])
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    tools: tuple[Offered, ...] | None = Field(None, max_length=128)
    tool_choice: str | dict[str, Any] | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    stop: str | tuple[str, ...] | None = None
    seed: int | None = None
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    parallel_tool_calls: bool | None = None

    def check(self) -> None:
        """Raises InputError for what cannot be done as it is wished."""
        for name, plain in UNDONE.items():
            if (self.model_extra or {}).get(name) not in plain:
                raise InputError(f"{name} is not supported.", hint="Leave it out.")

    @property
    def manner(self) -> Manner:
        tools = tuple(Tool(one.function.name, one.function.model_dump()) for one in self.tools or ())
        wished = {name: getattr(self, name) for name in WISHES if getattr(self, name) is not None}
        if tools and self.tool_choice is not None:
            wished["tool_choice"] = self.tool_choice
        if not tools:
            wished.pop("parallel_tool_calls", None)
        return Manner(tools=tools, wishes=wished)

    @property
    def instructions(self) -> str:
        return "\n\n".join(one.text for one in self.messages if one.role in ("system", "developer"))

    @property
    def sent(self) -> list[Sent]:
        return [_sent(one) for one in self.messages if one.role not in ("system", "developer")]


@router.get("/models")
async def models(caller: Reader) -> dict[str, object]:
    """The names that `model` may have."""
    return {"object": "list", "data": [_model(name) for name in _names(caller.newton)]}


@router.post("/chat/completions", response_model=None)
async def complete(
    asked: ChatRequest,
    request: Request,
    caller: Writer,
    session: Annotated[
        str | None, Header(alias="X-Newton-Session", description="Which conversation; else one of the token's own.")
    ] = None,
    debug: Annotated[
        bool | None, Header(alias="X-Newton-Debug", description="Say in comment lines of the stream what was injected.")
    ] = None,
) -> Response:
    """Answer a conversation as OpenAI does, with the memory added; what is new in it is remembered."""
    newton = caller.newton
    asked.check()
    if asked.model not in _names(newton):
        raise NotFoundError(f"There is no model {asked.model!r}.", hint=f"There are: {', '.join(_names(newton))}.")
    ref = hygiene.ref(session, what="session") if session else _session_of(request)
    following = newton.following(ORIGIN)
    followed = await following.place(asked.sent, ref=ref, named=session is not None)
    turns = newton.turns(request.app.state.minds.model, origin=ORIGIN)
    pieces = Taking[str | Answer]().told(turns.take(_said(asked, followed)), caller, request)
    telling = Telling(asked, at=newton.scope.now(), debug=bool(debug))
    if asked.stream:
        first = await _first(pieces)  # what can be refused is refused by now
        return StreamingResponse(telling.stream(first, pieces), media_type="text/event-stream")
    told = await telling.whole(pieces)
    return JSONResponse(told) if told else Response(status_code=LEFT)


async def _first(pieces: AsyncGenerator[str | Answer | None]) -> str | Answer | None:
    """The first thing that is said; None when nobody reads it any more."""
    async for piece in pieces:
        if piece is not None:
            return piece
    return None


class Telling:
    """How one answer is told."""

    def __init__(self, asked: ChatRequest, *, at: datetime, debug: bool) -> None:
        self._asked, self._debug = asked, debug
        self._id, self._created = f"chatcmpl-{new_id().hex}", int(at.timestamp())

    async def whole(self, pieces: AsyncGenerator[str | Answer | None]) -> dict[str, object] | None:
        """None when who asked has left before its end."""
        answer: str | Answer | None = None
        async with aclosing(pieces):
            async for piece in pieces:
                answer = piece or answer
        if not isinstance(answer, Answer):
            return None
        message: dict[str, object] = {"role": "assistant", "content": answer.text or None}
        if answer.calls:
            message["tool_calls"] = [_call(call) for call in answer.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": _usage(answer),
            "newton": _newton(answer),
        }

    async def stream(
        self, first: str | Answer | None, pieces: AsyncGenerator[str | Answer | None]
    ) -> AsyncGenerator[str]:
        yield self._chunk({"role": "assistant", "content": ""})
        async with aclosing(pieces):
            try:
                for line in self._told(first):
                    yield line
                async for piece in pieces:
                    for line in self._told(piece):
                        yield line
            except NewtonError as error:  # the status is said already
                yield f"data: {_failure(error)}\n\n"
        yield "data: [DONE]\n\n"

    def _told(self, piece: str | Answer | None) -> list[str]:
        if piece is None:
            return []
        if isinstance(piece, str):
            return [self._chunk({"content": piece})]
        said = [f"{line}\n\n" for line in debug_lines(piece.bundle)] if self._debug else []
        if piece.calls:
            calls = [{"index": place, **_call(call)} for place, call in enumerate(piece.calls)]
            said.append(self._chunk({"tool_calls": calls}))
        said.append(self._chunk({}, finish=_finish(piece), newton=_newton(piece)))
        if self._asked.stream_options and self._asked.stream_options.include_usage:
            said.append(self._event({"choices": [], "usage": _usage(piece)}))
        return said

    def _chunk(self, delta: dict[str, object], *, finish: str | None = None, **more: object) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self._event({"choices": [choice], **more})

    def _event(self, fields: dict[str, object]) -> str:
        plain = {**self._head("chat.completion.chunk"), **fields}
        return f"data: {json.dumps(plain, ensure_ascii=False)}\n\n"

    def _head(self, kind: str) -> dict[str, object]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._asked.model}


def _failure(error: NewtonError) -> str:
    return problems.fault(f"{error.what} {error.hint}", error.code, 500).model_dump_json()


def _said(asked: ChatRequest, followed: Followed) -> Said:
    """The last thing that a person said is answered, with what tools have answered since."""
    sent = asked.sent
    fresh = list(followed.fresh)
    heard = bool(fresh) and sent[-1].role == "user"
    text = next(one.text for one in reversed(sent) if one.role == "user")

    def signed(words: str, calls: Sequence[Call]) -> str:
        return sign(followed.sign, Sent("assistant", words, tuple(calls)))

    return Said(
        session_id=followed.session_id,
        text=text,
        ref=followed.sign if heard else None,
        earlier=fresh[:-1] if heard else fresh,
        kept=not heard,
        terms=Terms(
            manner=asked.manner,
            instructions=asked.instructions,
            reply=asked.max_completion_tokens or asked.max_tokens,
            sign=signed,
        ),
    )


def _session_of(request: Request) -> str:
    given = request.headers.get("Authorization", "")
    return f"{SESSION}-{hashlib.sha256(given.encode()).hexdigest()[:12]}"


def _sent(message: Message) -> Sent:
    calls = tuple(Call(one.id, one.function.name, one.function.arguments) for one in message.tool_calls or ())
    if message.role == "assistant":
        return Sent("assistant", message.text, calls)
    if message.role == "tool":
        if not message.tool_call_id:
            raise InputError("A tool's message names no call.", hint="Set tool_call_id.")
        return Sent("tool", message.text, answers=message.tool_call_id)
    return Sent("user", message.text)


def _names(newton: Newton) -> list[str]:
    settings = newton.settings
    set_ = settings.openai_api_key is not None or settings.openai_base_url is not None
    return [OWN_MODEL, settings.openai_model] if set_ else [OWN_MODEL]


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": OWN_MODEL}


def _call(call: Call) -> dict[str, object]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _finish(answer: Answer) -> str:
    if answer.forbidden:
        return "content_filter"
    if answer.calls:
        return "tool_calls"
    return "stop" if answer.finish == "stop" or answer.quoted else "length"


def _usage(answer: Answer) -> dict[str, int]:
    read, written = answer.tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _newton(answer: Answer) -> dict[str, object]:
    """What is to be known of an answer that the protocol has no place for."""
    return {
        "degraded": answer.degraded,
        "quoted": answer.quoted,
        "bundle_id": str(answer.bundle.bundle_id),
        "context_tokens": answer.bundle.tokens,
    }
