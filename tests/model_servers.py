"""Servers of chat models on loopback, each as strict as the real one: OpenAI, Gemini, Ollama and vLLM."""

import asyncio
import base64
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from newton.agent.prompting.memory_delta import INPUT_HEADER
from tests.endpoint import NOTHING_CHANGES, is_reading
from tests.prompt_server import PromptServer
from tests.support import until

Body: TypeAlias = Any
KEY = "sk-of-the-model-server"
KNOWN = frozenset({*CompletionCreateParamsBase.__annotations__, "stream"})  # from OpenAI's published description
ROLES = {"system", "developer", "user", "assistant", "tool"}
PARTS = {"text", "image_url", "input_audio", "file"}
LOGPROBS = {"content": [{"token": "You", "logprob": -0.25, "bytes": [89], "top_logprobs": []}], "refusal": None}


class RefusalError(Exception):
    def __init__(self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.param, self.code, self.status = message, param, code, status


def words_of(message: Body) -> str:
    """The words of a message, without what was recalled."""
    content = message.get("content") or ""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return "\n".join(part["text"] for part in parts if part["type"] == "text").rpartition(INPUT_HEADER)[2].strip()


def pictures_of(body: Body) -> list[Body]:
    """All parts that are no text."""
    lists = [one["content"] for one in body["messages"] if isinstance(one.get("content"), list)]
    return [part for parts in lists for part in parts if part["type"] != "text"]


@dataclass(slots=True)
class ModelServer:
    """One server: what it was asked, apart from readings of new lines, and its own ways."""

    reasoning_field: ClassVar[str | None] = None
    models: ClassVar[tuple[str, ...]] = ()
    path: ClassVar[str] = "/v1/chat/completions"

    url: str = ""
    asked: list[Body] = field(default_factory=list[Any])

    @property
    def model(self) -> str:
        return self.models[0]

    @property
    def settings(self) -> dict[str, object]:
        """How Newton is told of it."""
        return {"openai_base_url": self.url, "openai_api_key": KEY, "openai_model": self.model}

    @property
    def own_fields(self) -> set[str]:
        """The fields of every request."""
        return {"model", "messages", "stream", "stream_options"}

    def format_of(self, body: Body) -> Body:
        """The schema that a request asks for."""
        return body["response_format"]["json_schema"]["schema"]

    def tool_names(self, body: Body) -> list[str]:
        return [tool["function"]["name"] for tool in body.get("tools") or ()]

    def listing(self) -> Body:
        """What it says of its models."""
        return {"object": "list", "data": [{"id": one, "object": "model", "created": 1} for one in self.models]}

    def check(self, body: Body) -> None:
        """Refuses what the real one refuses."""

    def refuse(self, error: RefusalError) -> Response:
        shape = {"message": error.message, "type": "invalid_request_error", "param": error.param, "code": error.code}
        return JSONResponse({"error": shape}, error.status)

    def choices(self, body: Body) -> int:
        return body.get("n") or 1

    def note(self, body: Body) -> None:
        """Keep a request, except one in the background, which may come at any time."""
        self.asked += [] if is_reading(body) else [body]

    def answer(self, body: Body) -> Body:
        """The message of a reply: it follows from what was asked."""
        if is_reading(body):
            return {"role": "assistant", "content": NOTHING_CHANGES}
        last = body["messages"][-1]
        said = words_of(last)
        message: Body = {"role": "assistant", "content": f"You said: {said}"}
        if self.reasoning_field and body["model"] == self.model:
            message[self.reasoning_field] = "They want to hear it again."
        wanted: Body = body.get("response_format") or {}
        schema: Body = wanted.get("json_schema", {}).get("schema")
        names = self.tool_names(body)
        if schema:
            message["content"] = json.dumps({name: example(one) for name, one in schema["properties"].items()})
        elif "weather" in said and "weather" in names:
            call = {"name": "weather", "arguments": '{"place": "Porto"}'}
            return {**message, "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": call}]}
        elif pictures := pictures_of(body):
            message["content"] = f"I was shown {len(pictures)}: {said}"
        return message

    async def respond(self, request: Request) -> Response:
        body = await request.json()
        self.note(body)
        try:
            self.authorize(request)
            self.check(body)
        except RefusalError as error:
            return self.refuse(error)
        message = self.answer(body)
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        common = {"id": "chatcmpl-1", "created": 1, "model": body["model"], "system_fingerprint": "fp_1"}
        if body.get("stream"):
            kind = {**common, "object": "chat.completion.chunk"}
            return StreamingResponse(self.stream(body, message, finish, kind), media_type="text/event-stream")
        listed = [
            {"index": n, "message": message, "finish_reason": finish, "logprobs": self.logprobs(body)}
            for n in range(self.choices(body))
        ]
        return JSONResponse({**common, "object": "chat.completion", "choices": listed, "usage": self.usage()})

    async def stream(self, body: Body, message: Body, finish: str, common: Body) -> AsyncIterator[str]:
        def event(**fields: Any) -> str:
            return f"data: {json.dumps({**common, **fields})}\n\n"

        for n in range(self.choices(body)):
            for delta in self.deltas(message):
                logprobs = self.logprobs(body) if delta.get("content") else None
                yield event(choices=[{"index": n, "delta": delta, "logprobs": logprobs, "finish_reason": None}])
            yield event(choices=[{"index": n, "delta": {}, "logprobs": None, "finish_reason": finish}])
        options: dict[str, Any] = body.get("stream_options") or {}
        if options.get("include_usage"):
            yield event(choices=[], usage=self.usage())
        yield "data: [DONE]\n\n"

    def deltas(self, message: Body) -> list[Body]:
        texts = [name for name in (self.reasoning_field, "content") if name and message.get(name)]
        calls: list[Body] = message.get("tool_calls") or []
        return [
            {"role": "assistant", "content": ""},
            *({name: piece} for name in texts for piece in message[name].split(" ", 1)[:1]),
            *({name: f" {piece}"} for name in texts for piece in message[name].split(" ", 1)[1:]),
            *({"tool_calls": [{"index": index, **call}]} for index, call in enumerate(calls)),
        ]

    def logprobs(self, body: Body) -> Body | None:
        return LOGPROBS if body.get("logprobs") else None

    def usage(self) -> Body:
        return {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}

    def authorize(self, request: Request) -> None:
        """Local servers need no key."""


class OpenAIServer(ModelServer):
    """As strict as OpenAI. Of its models the first one reasons, and so takes fewer parameters."""

    models = ("gpt-5", "gpt-4o-mini")

    def authorize(self, request: Request) -> None:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            raise RefusalError(f"Incorrect API key provided: {KEY}.", code="invalid_api_key", status=401)

    def check(self, body: Body) -> None:
        if body["model"] not in self.models:
            raise RefusalError(f"The model `{body['model']}` does not exist", code="model_not_found", status=404)
        for name in body:
            if name not in KNOWN:
                raise RefusalError(f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
        self.check_model(body)
        self.check_pairs(body)
        self.check_format(body)
        for place, message in enumerate(body["messages"]):
            self.check_message(body, place, message)

    def check_model(self, body: Body) -> None:
        if body["model"] == "gpt-4o-mini":
            if "reasoning_effort" in body:
                raise RefusalError("Unrecognized request argument supplied: reasoning_effort", param="reasoning_effort")
            return
        if "max_tokens" in body:
            said = "Unsupported parameter: 'max_tokens' is not supported with this model."
            said += " Use 'max_completion_tokens' instead."
            raise RefusalError(said, param="max_tokens", code="unsupported_parameter")
        if body.get("temperature", 1) != 1:
            said = "Unsupported value: 'temperature' does not support this value with this model."
            raise RefusalError(said, param="temperature", code="unsupported_value")
        for name in {"logprobs", "logit_bias", "stop", "presence_penalty", "frequency_penalty"} & body.keys():
            said = f"Unsupported parameter: '{name}' is not supported with this model."
            raise RefusalError(said, param=name, code="unsupported_parameter")

    def check_pairs(self, body: Body) -> None:
        needed = {
            "stream_options": "stream",
            "tool_choice": "tools",
            "parallel_tool_calls": "tools",
            "top_logprobs": "logprobs",
            "metadata": "store",
        }
        for name, other in needed.items():
            if name in body and not body.get(other):
                raise RefusalError(f"'{name}' is only allowed when '{other}' is set.", param=name)

    def check_format(self, body: Body) -> None:
        wanted: Body = body.get("response_format") or {"type": "text"}
        if wanted["type"] == "json_object" and "json" not in json.dumps(body["messages"]).lower():
            said = "'messages' must contain the word 'json' in some form, to use 'response_format' of this type."
            raise RefusalError(said, param="messages")
        described: Body = wanted.get("json_schema", {})
        if described.get("strict") and described["schema"].get("additionalProperties") is not False:
            said = f"Invalid schema for response_format '{described['name']}': 'additionalProperties' must be false."
            raise RefusalError(said, param="response_format")

    def check_message(self, body: Body, place: int, message: Body) -> None:
        at = f"messages[{place}]"
        if message.get("role") not in ROLES or message.keys() - {"role", "content", "name", "tool_calls"} - {
            "tool_call_id",
            "refusal",
            "audio",
        }:
            raise RefusalError(f"Invalid value in {at}.", param=at, code="invalid_value")
        if message["role"] == "tool":
            before = [call["id"] for one in body["messages"][:place] for call in one.get("tool_calls") or ()]
            if message["tool_call_id"] not in before:
                raise RefusalError("A message of the role 'tool' must follow its 'tool_calls'.", param=f"{at}.role")
        if message.get("content") is None and not message.get("tool_calls"):
            raise RefusalError("Invalid value for 'content': expected a string.", param=f"{at}.content")
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            self.check_part(part, f"{at}.content")

    def check_part(self, part: Body, at: str) -> None:
        if part["type"] not in PARTS or part.keys() != {"type", part["type"]}:
            raise RefusalError(f"Invalid value: '{part['type']}'.", param=at, code="invalid_value")
        url = part["image_url"]["url"] if part["type"] == "image_url" else "https://"
        if url.startswith("data:"):
            base64.b64decode(url.partition(",")[2], validate=True)
        elif not url.startswith("https://"):
            raise RefusalError("Invalid image URL.", param=at, code="invalid_image_url")

    def usage(self) -> Body:
        details = {"prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0}}
        reasoning = {"completion_tokens_details": {"reasoning_tokens": 12, "accepted_prediction_tokens": 0}}
        return {**ModelServer.usage(self), **details, **reasoning}


class OllamaServer(ModelServer):
    """Like Ollama: fields that it does not know are ignored, and only embedded images are read."""

    models = ("qwen3:8b", "nomic-embed-text:latest")
    reasoning_field = "reasoning"

    def check(self, body: Body) -> None:
        if body["model"] not in {name for one in self.models for name in (one, one.removesuffix(":latest"))}:
            raise RefusalError(f'model "{body["model"]}" not found, try pulling it first', status=404)
        for part in pictures_of(body):
            if part["type"] != "image_url" or not part["image_url"]["url"].startswith("data:"):
                raise RefusalError("invalid image input")

    def choices(self, body: Body) -> int:
        return 1

    def logprobs(self, body: Body) -> Body | None:
        return None


class VllmServer(ModelServer):
    """Like vLLM: started without a parser of tool calls, and with errors of its own shape."""

    models = ("Qwen/Qwen3-8B",)
    reasoning_field = "reasoning_content"

    def check(self, body: Body) -> None:
        if body["model"] not in self.models:
            raise RefusalError(f"The model `{body['model']}` does not exist.", status=404)
        if body.get("tools") and body.get("tool_choice", "auto") == "auto":
            said = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            raise RefusalError(said)
        if body.get("temperature", 0) > 2:
            raise RefusalError("temperature must be in [0, 2].", param="temperature")

    def refuse(self, error: RefusalError) -> Response:
        shape = {"object": "error", "message": error.message, "type": "BadRequestError", "param": error.param}
        return JSONResponse({**shape, "code": error.status}, error.status)

    def usage(self) -> Body:
        return {**ModelServer.usage(self), "prompt_tokens_details": None}


class GeminiServer(ModelServer):
    """Like Gemini's OpenAI-compatible form: it refuses fields that it does not know, and signs its tool calls."""

    models = ("gemini-3.8-flash", "gemini-embedding-001")
    known: ClassVar[frozenset[str]] = frozenset(
        {"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n", "stop", "tools"}
        | {"temperature", "top_p", "tool_choice", "response_format", "reasoning_effort", "parallel_tool_calls"}
        | {"extra_body", "modalities"}
    )

    def listing(self) -> Body:
        return {"object": "list", "data": [{"id": f"models/{one}", "object": "model"} for one in self.models]}

    def authorize(self, request: Request) -> None:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            raise RefusalError("API key not valid. Please pass a valid API key.")

    def refuse(self, error: RefusalError) -> Response:
        shape = {"code": error.status, "message": error.message, "status": "INVALID_ARGUMENT"}
        return JSONResponse([{"error": shape}], error.status)  # a list of one

    def check(self, body: Body) -> None:
        if body["model"] not in self.models:
            raise RefusalError(f"models/{body['model']} is not found for API version v1main.", status=404)
        unknown = [f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.' for name in body]
        if refused := [said for name, said in zip(body, unknown, strict=True) if name not in self.known]:
            raise RefusalError("\n".join(refused))
        said_last = max(n for n, one in enumerate(body["messages"]) if one["role"] == "user")
        for message in body["messages"][said_last:]:
            for call in (message.get("tool_calls") or ())[:1]:
                if call.get("extra_content", {}).get("google", {}).get("thought_signature") != f"sig-{call['id']}":
                    raise RefusalError("Function call is missing a thought_signature in functionCall parts.")

    def answer(self, body: Body) -> Body:
        if body["messages"][-1]["role"] == "tool":
            return {"role": "assistant", "content": "It rains."}
        message = super().answer(body)
        for call in message.get("tool_calls") or ():
            call["extra_content"] = {"google": {"thought_signature": f"sig-{call['id']}"}}
        return message


def example(schema: Mapping[str, Any]) -> object:
    """A value that fits a schema."""
    return {"string": "tea", "integer": 4, "number": 0.5, "boolean": True}[schema["type"]]


@asynccontextmanager
async def serving_models(server: ModelServer) -> AsyncGenerator[ModelServer]:
    """Serves it on a port that the system chooses."""
    app = FastAPI()

    @app.post(server.path)
    async def complete(request: Request) -> Response:
        response = await server.respond(request)
        response.headers["Connection"] = "close"  # no connection outlives its test
        return response

    @app.get("/v1/models")
    async def models(response: Response) -> Body:
        response.headers["Connection"] = "close"
        return server.listing()

    door = socket.create_server(("127.0.0.1", 0))
    server.url = f"http://127.0.0.1:{door.getsockname()[1]}/v1"
    running = PromptServer(uvicorn.Config(app, log_level="warning", lifespan="off"))
    task = asyncio.create_task(running.serve(sockets=[door]))

    async def started() -> bool:
        return running.started

    await until(started)
    try:
        yield server
    finally:
        running.leaving.set()
        await task
