"""pydantic-ai capability that adds the context from Newton to requests and stores the conversation in Newton."""

from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult

from .. import Client, MessageDict


@dataclass
class NewtonMemory(AbstractCapability[Any]):
    """pydantic-ai capability, used as `Agent(..., capabilities=[NewtonMemory(client, "planning")])`.

    It adds a system prompt to every model request: the context for the last message of the user, of at most
    `max_tokens` tokens. The context is built once for each message and is not part of the history. After a successful
    run the message and the reply are appended to the Newton session.
    """

    client: Client
    session: str
    max_tokens: int | None = None
    _input: str = ""
    _context: str = ""

    async def for_run(self, ctx: RunContext[Any]) -> "NewtonMemory":
        """Return a copy of the capability for one run, which caches the context of that run."""
        return replace(self, _input="", _context="")

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Return the request with the context as a system prompt before the last message of the user."""
        messages = list(request_context.messages)
        position = next((n for n in reversed(range(len(messages))) if user_text([messages[n]])), None)
        if position is None:
            return request_context
        text = await self._build_context(user_text([messages[position]]))
        request = messages[position]
        if text and isinstance(request, ModelRequest):
            messages[position] = replace(request, parts=[SystemPromptPart(text), *request.parts])
        return replace(request_context, messages=messages)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Append the user's message and the reply to the Newton session. Repeating a run with its id adds nothing."""
        new = result.new_messages()
        said = user_text(new)
        replied = "\n".join(part.content for one in new if isinstance(one, ModelResponse) for part in text_parts(one))
        exchange: list[MessageDict] = []
        if said:
            exchange.append({"role": "user", "content": said, "ref": f"{ctx.run_id}:user"})
        if replied:
            exchange.append({"role": "assistant", "content": replied, "ref": f"{ctx.run_id}:assistant"})
        if exchange:
            await self.client.append_messages(self.session, exchange)
        return result

    async def _build_context(self, text: str) -> str:
        if text != self._input:
            context = await self.client.context(text, max_tokens=self.max_tokens)
            self._input, self._context = text, context["text"]
        return self._context


def user_text(messages: list[ModelMessage]) -> str:
    """Return the text that the user wrote in the messages, without images and other content."""
    prompts = [
        part.content
        for one in messages
        if isinstance(one, ModelRequest)
        for part in one.parts
        if isinstance(part, UserPromptPart)
    ]
    pieces = [piece for prompt in prompts for piece in ([prompt] if isinstance(prompt, str) else prompt)]
    return "\n".join(piece for piece in pieces if isinstance(piece, str))


def text_parts(response: ModelResponse) -> list[TextPart]:
    """Return the parts of a response that are text."""
    return [part for part in response.parts if isinstance(part, TextPart) and part.content]
