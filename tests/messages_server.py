"""A server of Claude models on loopback, as strict as Anthropic's Messages API."""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar, cast

from fastapi import Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from newton.agent.prompting.memory_delta import INPUT_HEADER
from tests.endpoint import NOTHING_CHANGES, is_reading
from tests.model_servers import KEY, Body, ModelServer, RefusalError, example


def check_schema(schema: Any) -> None:
    if isinstance(schema, list):
        for one in cast("list[Any]", schema):
            check_schema(one)
    if not isinstance(schema, dict):
        return
    fields = cast("Body", schema)
    if fields.get("type") == "object" and fields.get("additionalProperties") is not False:
        said = "For 'object' type, 'additionalProperties' must be explicitly set to false"
        raise RefusalError(f"output_config.format.schema: {said}")
    for name in fields.keys() & {"minimum", "maximum", "minLength", "maxLength", "multipleOf", "maxItems"}:
        if not isinstance(fields[name], dict):
            raise RefusalError(f"output_config.format.schema: property '{name}' is not supported")
    for one in fields.values():
        check_schema(one)


class AnthropicServer(ModelServer):
    """As strict as Anthropic's Messages API. Of its models the last one takes sampling parameters."""

    path = "/v1/messages"
    models = ("claude-haiku-5-5", "claude-haiku-4-5")
    reasoning_field = "reasoning_content"  # at Newton
    known: ClassVar[frozenset[str]] = frozenset(
        {"model", "max_tokens", "messages", "system", "stream", "tools", "tool_choice", "stop_sequences", "thinking"}
        | {"output_config", "service_tier", "metadata", "cache_control", "container", "inference_geo"}
        | {"temperature", "top_p", "top_k"}
    )
    block_fields: ClassVar[Mapping[str, set[str]]] = {
        "text": {"text"},
        "image": {"source"},
        "document": {"source", "title"},
        "tool_use": {"id", "name", "input"},
        "tool_result": {"tool_use_id", "content", "is_error"},
        "thinking": {"thinking", "signature"},
    }
    max_tokens: ClassVar[int] = 128_000

    @property
    def settings(self) -> dict[str, object]:
        base = self.url.removesuffix("/v1")
        return {"anthropic_base_url": base, "anthropic_api_key": KEY, "anthropic_model": self.model}

    @property
    def own_fields(self) -> set[str]:
        return {"model", "messages", "stream", "max_tokens", "system"}

    def format_of(self, body: Body) -> Body:
        return body["output_config"]["format"]["schema"]

    def tool_names(self, body: Body) -> list[str]:
        return [tool["name"] for tool in body.get("tools") or ()]

    def listing(self) -> Body:
        kinds = {name: {"supported": True} for name in ("adaptive", "disabled")} | {"enabled": {"supported": False}}
        about = {"max_tokens": self.max_tokens, "capabilities": {"thinking": {"supported": True, "types": kinds}}}
        data = [{"id": one, "type": "model", "lifecycle": "active", **about} for one in self.models]
        gone = {"id": "claude-2", "type": "model", "lifecycle": "retired"}
        return {"data": [*data, gone], "has_more": False, "first_id": data[0]["id"], "last_id": gone["id"]}

    def authorize(self, request: Request) -> None:
        if request.headers.get("x-api-key") != KEY or "authorization" in request.headers:
            raise RefusalError("invalid x-api-key", code="authentication_error", status=401)
        if request.headers.get("anthropic-version") != "2023-06-01":
            raise RefusalError("anthropic-version: header is required")

    def refuse(self, error: RefusalError) -> Response:
        kind = error.code or ("not_found_error" if error.status == 404 else "invalid_request_error")
        shape = {"type": "error", "error": {"type": kind, "message": error.message}, "request_id": "req_1"}
        return JSONResponse(shape, error.status)

    def check(self, body: Body) -> None:
        for name in ("model", "max_tokens", "messages"):
            if name not in body:
                raise RefusalError(f"{name}: Field required")
        for name in body.keys() - self.known:
            raise RefusalError(f"{name}: Extra inputs are not permitted")
        if body["model"] not in self.models:
            raise RefusalError(f"model: {body['model']}", status=404)
        if not isinstance(body["max_tokens"], int) or not 0 < body["max_tokens"] <= self.max_tokens:
            raise RefusalError(f"max_tokens: {body['max_tokens']} > {self.max_tokens}, which is the maximum")
        self.check_sampling(body)
        self.check_tools(body)
        self.check_turns(body)
        self.check_output(body)

    def check_sampling(self, body: Body) -> None:
        for name in ("temperature", "top_p", "top_k"):
            if name in body and body["model"] == "claude-haiku-5-5":
                raise RefusalError(f"`{name}` is deprecated for this model.")
        if not 0 <= body.get("temperature", 1) <= 1:
            raise RefusalError("temperature: range: 0..1")
        if body.get("thinking", {}).get("type", "adaptive") not in ("adaptive", "disabled"):
            raise RefusalError('"thinking.type.enabled" is not supported for this model.')
        if any(not stop.strip() for stop in body.get("stop_sequences", ())):
            raise RefusalError("stop_sequences: each stop sequence must contain non-whitespace")

    def check_tools(self, body: Body) -> None:
        for tool in body.get("tools", ()):
            if tool.keys() - {"name", "description", "input_schema", "strict", "cache_control"}:
                raise RefusalError("tools.0.custom: Extra inputs are not permitted")
            if tool["input_schema"].get("type") != "object":
                raise RefusalError("tools.0.custom.input_schema.type: Field required")
        kind = body.get("tool_choice", {"type": "auto"})["type"]
        if kind not in ("auto", "any", "tool", "none") or ("tool_choice" in body and not body.get("tools")):
            raise RefusalError("tool_choice: may only be specified while providing tools")

    def check_turns(self, body: Body) -> None:
        turns: list[Body] = []
        for n, message in enumerate(body["messages"]):
            if message["role"] not in ("user", "assistant"):
                raise RefusalError(f"messages.{n}.role: Input should be 'user' or 'assistant'")
            blocks = message["content"]
            blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
            for place, block in enumerate(blocks):
                self.check_block(block, f"messages.{n}.content.{place}")
            if turns and turns[-1]["role"] == message["role"]:
                turns[-1]["content"] = [*turns[-1]["content"], *blocks]  # consecutive turns are combined
            else:
                turns.append({"role": message["role"], "content": blocks})
        if not turns or turns[0]["role"] != "user":
            raise RefusalError("messages: first message must use the user role")
        if turns[-1]["role"] != "user":
            raise RefusalError("This model does not support assistant message prefill.")
        for block in body.get("system", ()):
            self.check_block(block, "system.0")
        self.check_calls(turns)
        self.check_marks(body)

    def check_block(self, block: Body, at: str) -> None:
        known = self.block_fields.get(block["type"])
        if known is None or block.keys() - known - {"type", "cache_control"}:
            raise RefusalError(f"{at}: Extra inputs are not permitted")
        if block["type"] == "text" and not block["text"].strip():
            raise RefusalError("messages: text content blocks must be non-empty")
        if block["type"] in ("tool_use", "tool_result"):
            self.check_call(block, at)
        if block["type"] == "image":
            self.check_image(block["source"], at)

    def check_call(self, block: Body, at: str) -> None:
        call_id = block.get("id") or block["tool_use_id"]
        if not call_id.replace("_", "").replace("-", "").isalnum():
            raise RefusalError(f"{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not isinstance(block.get("input", {}), dict):
            raise RefusalError(f"{at}.tool_use.input: Input should be a valid dictionary")

    def check_image(self, source: Body, at: str) -> None:
        if source["type"] == "base64":
            base64.b64decode(source["data"], validate=True)
        elif source["type"] != "url" or not source["url"].startswith("https://"):
            raise RefusalError(f"{at}.image.source: only HTTPS URLs are supported")

    def check_calls(self, turns: list[Body]) -> None:
        called: set[str] = set()
        for n, turn in enumerate(turns):
            results = [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"]
            if turn["role"] == "user" and set(results) - called:
                said = f"messages.{n}.content.0: unexpected `tool_use_id` found in `tool_result` blocks"
                raise RefusalError(f"{said}: {results[0]}. Each `tool_result` must have a `tool_use` before it.")
            if called - set(results):
                said = "`tool_use` ids were found without `tool_result` blocks immediately after"
                raise RefusalError(f"messages.{n}: {said}: {min(called)}.")
            if any(block["type"] == "tool_result" for block in turn["content"][len(results) :]):
                raise RefusalError(f"messages.{n}: `tool_result` blocks must come first")
            called = {block["id"] for block in turn["content"] if block["type"] == "tool_use"}
            for block in turn["content"]:
                if block["type"] == "thinking" and block["signature"] != f"sig-{block['thinking']}":
                    raise RefusalError(f"messages.{n}.content.0: Invalid `signature` in `thinking` block")

    def check_marks(self, body: Body) -> None:
        marked = json.dumps(body).count('"cache_control"')
        if marked > 4:
            raise RefusalError(f"A maximum of 4 blocks with cache_control may be provided. Found {marked}.")

    def check_output(self, body: Body) -> None:
        wanted = body.get("output_config", {})
        if wanted.keys() - {"format", "effort"}:
            raise RefusalError("output_config: Extra inputs are not permitted")
        check_schema(wanted.get("format", {}).get("schema"))

    def answer(self, body: Body) -> Body:
        """The blocks of a reply."""
        if is_reading(body):
            return [{"type": "text", "text": NOTHING_CHANGES}]
        last = body["messages"][-1]
        said = "\n".join(block["text"] for block in last["content"] if block["type"] == "text")
        said = said.rpartition(INPUT_HEADER)[2].strip()
        schema = body.get("output_config", {}).get("format", {}).get("schema")
        pictures = [
            block for turn in body["messages"] for block in turn["content"] if block["type"] in ("image", "document")
        ]
        text = f"I was shown {len(pictures)}: {said}" if pictures else f"You said: {said}"
        if last["content"][-1]["type"] == "tool_result":
            text = "It rains."
        if schema:
            text = json.dumps({name: example(one) for name, one in schema["properties"].items()})
        thought = "They want to hear it again."
        blocks: list[Body] = [{"type": "thinking", "thinking": thought, "signature": f"sig-{thought}"}]
        if body.get("thinking", {}).get("type") == "disabled" or body["model"] != self.model:
            blocks = []
        if "weather" in said and "weather" in self.tool_names(body) and not schema:
            return [*blocks, {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"place": "Porto"}}]
        return [*blocks, {"type": "text", "text": text}]

    async def respond(self, request: Request) -> Response:
        body = await request.json()
        self.note(body)
        try:
            self.authorize(request)
            self.check(body)
        except RefusalError as error:
            return self.refuse(error)
        return StreamingResponse(self.events(body, self.answer(body)), media_type="text/event-stream")

    async def events(self, body: Body, blocks: list[Body]) -> AsyncIterator[str]:
        def event(kind: str, **fields: Any) -> str:
            return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"

        usage = {"input_tokens": 30, "cache_read_input_tokens": 64, "cache_creation_input_tokens": 6}
        common: Body = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
        yield event("message_start", message={**common, "stop_reason": None, "usage": {**usage, "output_tokens": 1}})
        yield event("ping")
        for n, block in enumerate(blocks):
            first, deltas = self.deltas_of(block)
            yield event("content_block_start", index=n, content_block=first)
            for delta in deltas:
                yield event("content_block_delta", index=n, delta=delta)
            yield event("content_block_stop", index=n)
        reason = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
        details = {"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 12}}
        yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=details)
        yield event("message_stop")

    def deltas_of(self, block: Body) -> tuple[Body, list[Body]]:
        match block["type"]:
            case "thinking":
                pieces = [{"type": "thinking_delta", "thinking": block["thinking"]}]
                signed = {"type": "signature_delta", "signature": block["signature"]}
                return {"type": "thinking", "thinking": "", "signature": ""}, [*pieces, signed]
            case "tool_use":
                given = json.dumps(block["input"])
                pieces = [{"type": "input_json_delta", "partial_json": one} for one in ("", given[:3], given[3:])]
                return {**block, "input": {}}, pieces
            case _:
                head, _, tail = block["text"].partition(" ")
                pieces = [head, f" {tail}"] if tail else [head]
                return {"type": "text", "text": ""}, [{"type": "text_delta", "text": one} for one in pieces]
