"""Asking a model to answer: within the day's ceiling and its window, with every token recorded."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from newton.agent import ledger
from newton.agent.ledger import Asked
from newton.agent.scope import AgentScope
from newton.agent.sending import INSTRUCTION, Draft, Letter, fences
from newton.db.pool import in_unit_of_work
from newton.dialogue.compaction.fitting import fitted
from newton.dialogue.view import Shown
from newton.dialogue.window import rooms
from newton.errors import ProviderError, WindowError
from newton.memory.memory import Count
from newton.providers.chat import ChatModel, Reply, ToolModel
from newton.providers.gauge import Gauge, learnt

SHORTER = 0.7  # of a prompt, when the endpoint says that it is too long
UNSET = "No model is set (OPENAI_API_KEY or OPENAI_BASE_URL)."


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings of one turn, in tokens; `window` is all that the model reads and writes in one call, `per_day` is of all
    turns of an agent in a UTC day, `working` of what a session has at hand."""

    context: int
    conversation: int
    reply: int
    per_day: int
    window: int = 128_000
    working: int = 128_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What each part of a prompt may cost by our own count, with the marks around messages, and the gauge that says
    so."""

    gauge: Gauge
    usable: int
    conversation: int
    context: int

    @property
    def marks(self) -> int:
        """What the model puts around a message, in our tokens; what joins two messages costs one too."""
        return max(math.ceil(self.gauge.marks / self.gauge.ratio), 1)

    def talk(self, view: Sequence[Shown], tokens: int, *, count: Count) -> list[Shown]:
        """As much of a view as is sent beside an input of so many tokens, however long the context will be."""
        left = self.usable - count(INSTRUCTION) - self.context - tokens - 2 * self.marks
        most = max(min(self.conversation, left) - fences(view, marks=self.marks, count=count), 0)
        return fitted(view, most=most, count=count, spared=0, marks=self.marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaking:
    """For one agent and one model; None is a model that is not set."""

    scope: AgentScope
    model: ChatModel | None
    limits: Limits

    async def shares(self) -> Shares:
        """What there is room for, by how this model counts as far as its endpoint has told."""
        limits = self.limits
        gauge = await self._gauge()
        room = rooms(limits.window, reply=limits.reply, conversation=limits.conversation, context=limits.context)
        return Shares(
            gauge=gauge,
            usable=gauge.room(room.usable, 0),
            conversation=gauge.room(room.conversation, 0),
            context=max(gauge.room(room.context, 0), 1),
        )

    async def why_not(self, tokens: int) -> str | None:
        """Why the model may not be asked with so many tokens; each call has to fit below the ceiling beforehand."""
        if self.model is None:
            return UNSET
        async with self.scope.transaction() as tx:
            spent = await ledger.spent(tx, agent_id=self.scope.agent_id, now=self.scope.now())
        if (cost := tokens + self.limits.reply) <= self.limits.per_day - spent:
            return None
        return (
            f"This turn may cost {cost:,} model tokens, and {max(self.limits.per_day - spent, 0):,}"
            f" of today's {self.limits.per_day:,} are left (NEWTON_LLM_TOKENS_PER_DAY)."
        )

    async def stream(self, draft: Draft, letter: Letter, replies: list[Reply]) -> AsyncGenerator[str]:
        """The reply; as a whole it goes to `replies`. When the endpoint says that the prompt is too long it is asked
        once more with a shorter one."""
        assert self.model is not None, "nobody asks a model that is not set"
        try:
            async with aclosing(self._said(self.model, letter, replies)) as said:
                async for piece in said:
                    yield piece
        except WindowError:
            sent = letter.counted + draft.marks * len(letter.messages)
            shorter = draft.letter(int(sent * SHORTER), count=self.scope.count_tokens)
            async with aclosing(self._said(self.model, shorter, replies)) as said:
                async for piece in said:
                    yield piece

    async def _said(self, model: ChatModel, letter: Letter, replies: list[Reply]) -> AsyncGenerator[str]:
        """Its cost is recorded however it ends: as told, or counted here when nobody waits to be told."""
        assert not in_unit_of_work()
        heard: list[str] = []
        told = False
        try:
            async for piece in self._asked(model, letter):
                if isinstance(piece, Reply):
                    told = True
                    replies.append(piece)
                    await self._record(piece, letter)
                else:
                    heard.append(piece)
                    yield piece
        except ProviderError:
            told = True  # a model that fails has told its cost before, or had none
            raise
        finally:
            if not told:
                await asyncio.shield(self._record(self._estimated(model, letter, "".join(heard)), letter))

    def _asked(self, model: ChatModel, letter: Letter) -> AsyncIterator[str | Reply]:
        manner = letter.manner
        if isinstance(model, ToolModel) and (manner.tools or manner.wishes):
            return model.answer(letter.messages, max_tokens=self.limits.reply, manner=manner)
        return model.stream(letter.messages, max_tokens=self.limits.reply)

    def _estimated(self, model: ChatModel, letter: Letter, text: str) -> Reply:
        return Reply(
            text=text,
            model=model.name,
            input_tokens=letter.counted,
            output_tokens=self.scope.count_tokens(text),
            estimated=True,
            finish="interrupted",
        )

    async def _record(self, reply: Reply, letter: Letter) -> None:
        now, asked = self.scope.now(), Asked(letter.counted, len(letter.messages))
        async with self.scope.transaction() as tx:
            await ledger.record(tx, reply, agent_id=self.scope.agent_id, purpose="turn", now=now, asked=asked)

    async def _gauge(self) -> Gauge:
        if self.model is None:
            return Gauge()
        async with self.scope.transaction() as tx:
            return learnt(await ledger.samples(tx, agent_id=self.scope.agent_id, model=self.model.name))
