"""Asking a model to answer: within the day's ceiling and its window, with every token recorded."""

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

RETRY_SHRINK_FACTOR = 0.7  # of a prompt, when the endpoint says that it is too long
NO_MODEL_MESSAGE = "No model is set (OPENAI_API_KEY or OPENAI_BASE_URL)."


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLimits:
    """Ceilings of one turn, in tokens; `window` is all that the model reads and writes in one call, `per_day` is of all
    turns of an agent in a UTC day, `working` of what a session has at hand."""

    context: int
    conversation: int
    reply: int
    per_day: int
    window: int = 128_000
    working: int = 128_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBudget:
    """What each part of a prompt may cost by our own count, with the marks around messages, and the gauge that says
    so."""

    calibration: TokenCalibration
    usable: int
    conversation: int
    context: int

    @property
    def overhead_per_message(self) -> int:
        """What the model puts around a message, in our tokens; what joins two messages costs one too."""
        return max(math.ceil(self.calibration.overhead / self.calibration.ratio), 1)

    def fit_conversation(
        self, view: Sequence[ViewMessage], input_tokens: int, *, count_tokens: TokenCounter
    ) -> list[ViewMessage]:
        """As much of a view as is sent beside an input of so many tokens, however long the context will be."""
        left = self.usable - count_tokens(SYSTEM_PROMPT) - self.context - input_tokens - 2 * self.overhead_per_message
        most = max(
            min(self.conversation, left)
            - count_separator_tokens(view, overhead_per_message=self.overhead_per_message, count_tokens=count_tokens),
            0,
        )
        return fit_to_budget(
            view, max_tokens=most, count_tokens=count_tokens, protected_turns=0, overhead=self.overhead_per_message
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatService:
    """For one agent and one model; None is a model that is not set."""

    scope: AgentScope
    model: ChatModel | None
    limits: TokenLimits

    async def get_budget(self) -> PromptBudget:
        """What there is room for, by how this model counts as far as its endpoint has told."""
        limits = self.limits
        gauge = await self._load_calibration()
        room = split_window(limits.window, reply=limits.reply, conversation=limits.conversation, context=limits.context)
        return PromptBudget(
            calibration=gauge,
            usable=gauge.to_local_tokens(room.usable, 0),
            conversation=gauge.to_local_tokens(room.conversation, 0),
            context=max(gauge.to_local_tokens(room.context, 0), 1),
        )

    async def get_refusal_reason(self, tokens: int) -> str | None:
        """Why the model may not be asked with so many tokens; each call has to fit below the ceiling beforehand."""
        if self.model is None:
            return NO_MODEL_MESSAGE
        async with self.scope.transaction() as tx:
            spent = await usage.count_tokens_today(tx, agent_id=self.scope.agent_id, now=self.scope.now())
        if (cost := tokens + self.limits.reply) <= self.limits.per_day - spent:
            return None
        return (
            f"This turn may cost {cost:,} model tokens, and {max(self.limits.per_day - spent, 0):,}"
            f" of today's {self.limits.per_day:,} are left (NEWTON_LLM_TOKENS_PER_DAY)."
        )

    async def stream(
        self, prompt: PromptBuilder, request: ModelRequest, replies: list[ChatReply]
    ) -> AsyncGenerator[str]:
        """The reply; as a whole it goes to `replies`. When the endpoint says that the prompt is too long it is asked
        once more with a shorter one."""
        assert self.model is not None, "nobody asks a model that is not set"
        try:
            async with aclosing(self._stream_once(self.model, request, replies)) as said:
                async for piece in said:
                    yield piece
        except ContextWindowError:
            sent = request.tokens + prompt.overhead_per_message * len(request.messages)
            shorter = prompt.build(int(sent * RETRY_SHRINK_FACTOR), count_tokens=self.scope.count_tokens)
            async with aclosing(self._stream_once(self.model, shorter, replies)) as said:
                async for piece in said:
                    yield piece

    async def _stream_once(
        self, model: ChatModel, request: ModelRequest, replies: list[ChatReply]
    ) -> AsyncGenerator[str]:
        """Its cost is recorded however it ends: as told, or counted here when nobody waits to be told."""
        assert not in_transaction()
        heard: list[str] = []
        told = False
        try:
            async for piece in self._call_model(model, request):
                if isinstance(piece, ChatReply):
                    told = True
                    replies.append(piece)
                    await self._record_usage(piece, request)
                else:
                    heard.append(piece)
                    yield piece
        except ProviderError:
            told = True  # a model that fails has told its cost before, or had none
            raise
        finally:
            if not told:
                await asyncio.shield(self._record_usage(self._estimate_reply(model, request, "".join(heard)), request))

    def _call_model(self, model: ChatModel, request: ModelRequest) -> AsyncIterator[str | ChatReply]:
        manner = request.options
        if isinstance(model, ToolModel) and (manner.tools or manner.extra_body):
            return model.answer(request.messages, max_tokens=self.limits.reply, options=manner)
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
        now, asked = self.scope.now(), PromptSize(request.tokens, len(request.messages))
        async with self.scope.transaction() as tx:
            await usage.record(tx, reply, agent_id=self.scope.agent_id, purpose="turn", now=now, prompt_size=asked)

    async def _load_calibration(self) -> TokenCalibration:
        if self.model is None:
            return TokenCalibration()
        async with self.scope.transaction() as tx:
            return fit_calibration(await usage.list_samples(tx, agent_id=self.scope.agent_id, model=self.model.name))
