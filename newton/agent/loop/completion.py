"""Calls to the chat model within its context window and the daily token limit, with recorded usage."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from newton.agent.llm import usage
from newton.agent.llm.usage import PromptSize
from newton.agent.loop.prompt import SYSTEM_PROMPT, ModelRequest, PromptBuilder, count_separator_tokens
from newton.agent.scope import AgentScope
from newton.db.pool import in_transaction
from newton.dialogue.compaction.view_budget import fit_to_budget
from newton.dialogue.context_window import split_window
from newton.dialogue.view import ViewMessage
from newton.errors import ContextWindowError, ProviderError
from newton.memory.memory import TokenCounter
from newton.providers.chat import ChatModel, ChatReply, ToolModel
from newton.providers.token_calibration import TokenCalibration, fit_calibration

RETRY_SHRINK_FACTOR = 0.7  # of the prompt's tokens, after a context window error
NO_MODEL_MESSAGE = "No model is set (OPENAI_API_KEY or OPENAI_BASE_URL)."


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLimits:
    """Limits of one turn, in tokens.

    `window` is the model's context window, `per_day` covers all turns of an agent in a UTC day, and `working` is the
    capacity of a session's working memory.
    """

    context: int
    conversation: int
    reply: int
    per_day: int
    window: int = 128_000
    working: int = 128_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBudget:
    """The tokens that each part of a prompt may take, by the local counter, message overhead included."""

    calibration: TokenCalibration
    usable: int
    conversation: int
    context: int

    @property
    def overhead_per_message(self) -> int:
        """Return the tokens that the model adds around one message; joining two messages costs at least one."""
        return max(math.ceil(self.calibration.overhead / self.calibration.ratio), 1)

    def fit_conversation(
        self, view: Sequence[ViewMessage], input_tokens: int, *, count_tokens: TokenCounter
    ) -> list[ViewMessage]:
        """Return the part of a view that fits beside an input of `input_tokens` and a context of full size."""
        available = (
            self.usable - count_tokens(SYSTEM_PROMPT) - self.context - input_tokens - 2 * self.overhead_per_message
        )
        max_tokens = max(
            min(self.conversation, available)
            - count_separator_tokens(view, overhead_per_message=self.overhead_per_message, count_tokens=count_tokens),
            0,
        )
        return fit_to_budget(
            view,
            max_tokens=max_tokens,
            count_tokens=count_tokens,
            protected_turns=0,
            overhead=self.overhead_per_message,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatService:
    """Calls one chat model for one agent. `model` is None when none is configured."""

    scope: AgentScope
    model: ChatModel | None
    limits: TokenLimits

    async def get_budget(self) -> PromptBudget:
        """Compute the prompt budget in local tokens, calibrated from the model's reported usage."""
        limits = self.limits
        calibration = await self._load_calibration()
        window = split_window(
            limits.window, reply=limits.reply, conversation=limits.conversation, context=limits.context
        )
        return PromptBudget(
            calibration=calibration,
            usable=calibration.to_local_tokens(window.usable, 0),
            conversation=calibration.to_local_tokens(window.conversation, 0),
            context=max(calibration.to_local_tokens(window.context, 0), 1),
        )

    async def get_refusal_reason(self, tokens: int) -> str | None:
        """Return why a prompt of `tokens` cannot be sent now, or None. A call must fit the daily limit beforehand."""
        if self.model is None:
            return NO_MODEL_MESSAGE
        async with self.scope.transaction() as tx:
            used = await usage.count_tokens_today(tx, agent_id=self.scope.agent_id, now=self.scope.now())
        if (cost := tokens + self.limits.reply) <= self.limits.per_day - used:
            return None
        return (
            f"This turn may cost {cost:,} model tokens, and {max(self.limits.per_day - used, 0):,}"
            f" of today's {self.limits.per_day:,} are left (NEWTON_LLM_TOKENS_PER_DAY)."
        )

    async def stream(
        self, prompt: PromptBuilder, request: ModelRequest, replies: list[ChatReply]
    ) -> AsyncGenerator[str]:
        """Yield the reply and append it as a whole to `replies`. After a context window error, retry once with a
        shorter prompt."""
        assert self.model is not None, "stream() needs a model"
        try:
            async with aclosing(self._stream_once(self.model, request, replies)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except ContextWindowError:
            sent = request.tokens + prompt.overhead_per_message * len(request.messages)
            shorter = prompt.build(int(sent * RETRY_SHRINK_FACTOR), count_tokens=self.scope.count_tokens)
            async with aclosing(self._stream_once(self.model, shorter, replies)) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def _stream_once(
        self, model: ChatModel, request: ModelRequest, replies: list[ChatReply]
    ) -> AsyncGenerator[str]:
        """Stream one call and record its usage: as reported, or estimated when the stream is closed early."""
        assert not in_transaction()
        received: list[str] = []
        is_recorded = False
        try:
            async for chunk in self._call_model(model, request):
                if isinstance(chunk, ChatReply):
                    is_recorded = True
                    replies.append(chunk)
                    await self._record_usage(chunk, request)
                else:
                    received.append(chunk)
                    yield chunk
        except ProviderError:
            is_recorded = True  # a failing model has reported its usage already, or has none
            raise
        finally:
            if not is_recorded:
                await asyncio.shield(
                    self._record_usage(self._estimate_reply(model, request, "".join(received)), request)
                )

    def _call_model(self, model: ChatModel, request: ModelRequest) -> AsyncIterator[str | ChatReply]:
        options = request.options
        if isinstance(model, ToolModel) and (options.tools or options.extra_body):
            return model.answer(request.messages, max_tokens=self.limits.reply, options=options)
        return model.stream(request.messages, max_tokens=self.limits.reply)

    def _estimate_reply(self, model: ChatModel, request: ModelRequest, text: str) -> ChatReply:
        return ChatReply(
            text=text,
            model=model.name,
            input_tokens=request.tokens,
            output_tokens=self.scope.count_tokens(text),
            estimated=True,
            finish="interrupted",
        )

    async def _record_usage(self, reply: ChatReply, request: ModelRequest) -> None:
        now, prompt_size = self.scope.now(), PromptSize(request.tokens, len(request.messages))
        async with self.scope.transaction() as tx:
            await usage.record(
                tx, reply, agent_id=self.scope.agent_id, purpose="turn", now=now, prompt_size=prompt_size
            )

    async def _load_calibration(self) -> TokenCalibration:
        if self.model is None:
            return TokenCalibration()
        async with self.scope.transaction() as tx:
            return fit_calibration(await usage.list_samples(tx, agent_id=self.scope.agent_id, model=self.model.name))
