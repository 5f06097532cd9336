"""Servers of chat models with a small context window, which refuse a longer prompt in the words of real ones."""

import json
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from tests.endpoint import NOTHING_CHANGES, Wire, chunk, is_reading

Body: TypeAlias = Any
Dialect = Literal["openai", "anthropic", "vllm", "llama.cpp", "ollama", "lm studio", "lm studio, no number"]

CHARS_PER_TOKEN, MESSAGE_TOKENS = 3.2, 7  # of a tokenizer that is not Newton's
DEFAULT_REPLY = 16  # tokens for which a window must have room where a request sets no limit
COUNTS_REPLIES = ("openai", "anthropic", "vllm")  # a limit of the reply counts against the window
SHORTER = "Try to load the model with a larger context length, or provide a shorter input."


def text_length(value: Body) -> int:
    """The characters of all texts in a JSON value, but for attachments."""
    if isinstance(value, str):
        return len(value)
    parts = cast("Body", value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    return sum(map(text_length, parts))


def refusal(dialect: Dialect, window: int, prompt: int, reply: int) -> Body:
    """The error of a server whose window `prompt` and `reply` tokens exceed."""
    total, least = prompt + reply, window + 1 - reply
    used = f"you requested {total} tokens ({prompt} in the messages, {reply} in the completion)"
    used = used if reply else f"your messages resulted in {prompt} tokens"
    of_openai = f"This model's maximum context length is {window} tokens. However, {used}. Please reduce the length."
    of_anthropic = f"input length and `max_tokens` exceed context limit: {prompt} + {reply} > {window}, decrease input"
    of_anthropic = f"prompt is too long: {prompt} tokens > {window} maximum" if prompt > window else of_anthropic
    of_vllm = (
        f"This model's maximum context length is {window} tokens. However, you requested {reply} output tokens and"
    )
    of_vllm += f" your prompt contains at least {least} input tokens, for a total of at least {window + 1} tokens."
    of_llama = f"request ({prompt} tokens) exceeds the available context size ({window} tokens), try increasing it"
    of_ollama = f"prompt too long; exceeded max context length by {prompt - window} tokens"
    sizes = {"n_prompt_tokens": prompt, "n_ctx": window}
    errors: dict[str, Body] = {
        "openai": {"message": of_openai, "param": "messages", "code": "context_length_exceeded"},
        "anthropic": {"type": "invalid_request_error", "message": of_anthropic},
        "vllm": {"message": of_vllm, "type": "BadRequestError", "param": "input_tokens", "code": 400},
        "llama.cpp": {"code": 400, "message": of_llama, "type": "exceed_context_size_error", **sizes},
        "ollama": {"message": of_ollama, "type": "api_error", "param": None, "code": None},
    }
    return errors[dialect]


@dataclass(slots=True)
class NarrowServer:
    """A server with one model. `says` is the length of its replies in characters; it reports `reports` as its window.

    It counts the prompts that it has refused, except readings of new lines, which come at any time. Every `tool_turns`
    inputs it calls the first tool that it is offered.
    """

    dialect: Dialect
    window: int
    says: int = 400
    reports: int | None = None
    tool_turns: int = 0
    refused: int = 0
    replies: int = 0
    longest: int = 0
    tools: list[list[str]] = field(default_factory=list[list[str]])
    limits: list[int | None] = field(default_factory=list[Any])

    async def respond(self, wire: Wire) -> None:
        if not wire.path.endswith(("/chat/completions", "/messages")):
            await self.describe(wire)
            return
        body = wire.body
        limit = body.get("max_tokens") or body.get("max_completion_tokens")
        prompt, reply = self.count(body), (limit or 0) if self.dialect in COUNTS_REPLIES else 0
        is_turn = not is_reading(body)
        self.limits += [limit] if is_turn else []
        if prompt + max(reply, DEFAULT_REPLY) > self.window:
            self.refused += is_turn
            await self.refuse(wire, prompt, reply)
            return
        self.longest = max(self.longest, prompt)
        reply_in_form = self.reply_as_anthropic if self.dialect == "anthropic" else self.reply
        if not is_turn:
            await reply_in_form(wire, prompt, NOTHING_CHANGES, None)
            return
        self.tools.append([tool.get("name") or tool["function"]["name"] for tool in body.get("tools") or ()])
        self.replies += 1
        await reply_in_form(wire, prompt, self.words, self.next_call(body))

    def count(self, body: Body) -> int:
        tools = json.dumps(body["tools"]) if body.get("tools") else ""
        parts = [*body["messages"], body.get("system"), tools]
        return int(sum(map(text_length, parts)) / CHARS_PER_TOKEN) + MESSAGE_TOKENS * len(body["messages"])

    async def describe(self, wire: Wire) -> None:
        """Answer a question for the model as the real server does; 404 for all others, and if it reports nothing."""
        owner = {"llama.cpp": "llamacpp", "ollama": "library", "vllm": "vllm", "openai": "system"}
        one: Body = {"id": "m", "object": "model", "owned_by": owner.get(self.dialect, "organization_owner")}
        anthropic: Body = {"id": "m", "type": "model", "max_tokens": 8_192, "max_input_tokens": self.reports}
        pages: dict[str, Body] = {
            "llama.cpp /props": {"default_generation_settings": {"n_ctx": self.reports}, "total_slots": 1},
            "lm studio /api/v0/models": {"data": [{"id": "m", "loaded_context_length": self.reports}]},
            "ollama /api/ps": {"models": []},
            "ollama /api/show": {
                "parameters": f'stop "<|end|>"\nnum_ctx                        {self.reports}',
                "model_info": {"qwen3.context_length": 40_960},
            },
        }
        extra = {"max_model_len": self.reports} if self.dialect == "vllm" else {}
        extra |= {"meta": {"n_ctx_train": 131_072}} if self.dialect == "llama.cpp" else {}
        path = wire.path.split("?")[0]
        if path == "/v1/models" and (self.reports or self.dialect != "ollama"):
            data = [anthropic if self.dialect == "anthropic" else {**one, **(extra if self.reports else {})}]
            await wire.send(200, {"object": "list", "data": data, "has_more": False})
        elif (page := pages.get(f"{self.dialect} {path}")) and self.reports:
            await wire.send(200, page)
        else:
            await wire.send(404, {"error": {"message": "404 page not found"}})

    async def refuse(self, wire: Wire, prompt: int, reply: int) -> None:
        if not self.dialect.startswith("lm studio"):
            kind = {"type": "error"} if self.dialect == "anthropic" else {}
            await wire.send(400, {**kind, "error": refusal(self.dialect, self.window, prompt, reply)})
            return
        said = f"Trying to keep the first {prompt} tokens when context the overflows. However, the model is loaded with"
        said += f" context length of only {self.window} tokens, which is not enough. {SHORTER}"
        if "no number" in self.dialect:
            said = f"The number of tokens to keep from the initial prompt is greater than the context length. {SHORTER}"
        await wire.begin_stream()
        shown = json.dumps({"error": {"message": said}, "message": said})
        wire.writer.write(f"event: error\ndata: {shown}\n\n".encode())
        await wire.writer.drain()

    def next_call(self, body: Body) -> str | None:
        """The tool to call in the next reply; none in a reply to the result of one."""
        last = body["messages"][-1]
        is_result = last["role"] == "tool" or "tool_result" in json.dumps(last["content"])
        is_due = self.tool_turns and self.replies % self.tool_turns == 0
        return self.tools[-1][0] if self.tools[-1] and is_due and not is_result else None

    @property
    def words(self) -> str:
        """A reply that nobody has said before."""
        numbers = (f"{(self.replies * 7919 + n * 104_729) % 99_991:05d}" for n in range(self.says // 6))
        return f"Reply {self.replies}. {' '.join(numbers)}"

    async def reply(self, wire: Wire, prompt: int, text: str, name: str | None) -> None:
        await wire.begin_stream()
        if name:
            call = {"index": 0, "id": f"c{self.replies}", "type": "function"}
            delta: Body = {"tool_calls": [{**call, "function": {"name": name, "arguments": '{"query": "harbour"}'}}]}
            finish = "tool_calls"
        else:
            delta, finish = {"content": text}, "stop"
        await wire.event(chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}))
        await wire.event(chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
        usage = {"prompt_tokens": prompt, "completion_tokens": self.says // 3, "total_tokens": prompt + self.says // 3}
        await wire.event(chunk({"choices": [], "usage": usage}))
        await wire.event("[DONE]")

    async def reply_as_anthropic(self, wire: Wire, prompt: int, text: str, name: str | None) -> None:
        await wire.begin_stream()
        usage = {"input_tokens": prompt, "output_tokens": 1}
        block: Body = {"type": "text", "text": ""}
        delta: Body = {"type": "text_delta", "text": text}
        reason = "end_turn"
        if name:
            block = {"type": "tool_use", "id": f"c{self.replies}", "name": name, "input": {}}
            delta, reason = {"type": "input_json_delta", "partial_json": '{"query": "harbour"}'}, "tool_use"
        for event in (
            {"type": "message_start", "message": {"id": "msg", "role": "assistant", "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": self.says // 3}},
            {"type": "message_stop"},
        ):
            await wire.event(event)
