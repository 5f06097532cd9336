"""Calls of the chat model, within its window, a daily token limit and the censors. Records the tokens used."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple

from newton.agent.llm import usage
from newton.agent.llm.usage import ModelUsage, PromptSize, UsageRecord, correct_usage, estimate_reply
from newton.agent.loop.action_gate import ActionGate
from newton.agent.loop.prompt import (
    ATTACHMENT_TOKENS,
    ModelRequest,
    PromptBuilder,
    count_separator_tokens,
    exceeds_tokens,
)
from newton.agent.loop.turn_status import ProgressCallback, TurnStatus, report_waiting
from newton.agent.prompt_records import prompt_store
from newton.agent.prompt_records.prompt_encoder import SentRequest
from newton.agent.prompt_records.prompt_store import CallOutcome
from newton.agent.prompt_records.spans import PromptOrigin
from newton.agent.prompting.system_prompt import TEMPLATE
from newton.agent.scope import AgentScope
from newton.db.pool import Tx, in_transaction
from newton.dialogue.compaction.progress_events import ignore_progress
from newton.dialogue.compaction.view_budget import fit_to_budget
from newton.dialogue.view import ViewMessage
from newton.errors import ContextWindowError, ProviderError, RefusedRequestError
from newton.heart.censors import Censor
from newton.ids import new_id
from newton.memory.memory import TokenCounter
from newton.providers.chat import CallRestart, ChatModel, ChatReply, ReplyPiece, RequestOptions, ToolModel
from newton.providers.context_windows import DEFAULT_WINDOW, WindowedModel, split_window
from newton.providers.token_calibration import TokenCalibration, fit_calibration

UNLIMITED_REPLY_RESERVE = 1_000  # tokens reserved for a reply without a limit
MIN_REPLY_TOKENS = 64  # that a request asks for, however long its prompt
COUNT_MARGIN = 0.6  # of a prompt, by which the model may count more tokens than estimated
MAX_MARGIN_SHARE = 0.25  # of the tokens that a prompt leaves, which are not promised to the reply for that
NOT_CALIBRATED = TokenCalibration()
REPLY_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")  # of a caller's request
SMALL_WINDOW_HINT = (
    "Shorten the system message or the tools, or use a model with a larger context window. If this one has a larger"
    " one, set window_tokens."
)
MIN_CONVERSATION_DIVISOR = 8  # the conversation may have this part of the prompt, whatever else is in it
MODEL_SETTINGS = "OPENAI_API_KEY, ANTHROPIC_API_KEY or OPENAI_BASE_URL"
NO_MODEL_MESSAGE = f"No model is set ({MODEL_SETTINGS})."
QUOTE_SETTING = "quote_without_model (NEWTON_QUOTE_WITHOUT_MODEL=true)"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLimits:
    """Limits of one turn, in tokens.

    `context` and `conversation` limit these parts of the prompt. `window` is the context window of the model, `per_day`
    the limit for all turns of an agent in a UTC day, and `working` the capacity of a session's working memory. `reply`
    is None if replies are not limited.
    """

    context: int
    conversation: int
    reply: int | None
    per_day: int
    window: int = DEFAULT_WINDOW
    working: int = 128_000

    @property
    def reply_reserve(self) -> int:
        """Return the tokens of the window reserved for the reply: its limit, but at most half the window."""
        return min(self.reply or UNLIMITED_REPLY_RESERVE, self.window // 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptBudget:
    """The maximum tokens of each part of a prompt, by the local token counter, with the overhead of each message."""

    calibration: TokenCalibration
    usable: int
    conversation: int
    context: int

    def leave_room(self, prompt: PromptBuilder, *, count_tokens: TokenCounter) -> "PromptBudget":
        """Return the budget with less for the conversation, if the context and the rest of `prompt` need the room."""
        required = prompt.required_tokens(self.usable, count_tokens=count_tokens)
        room = max(self.usable - self.context - required, self.usable // MIN_CONVERSATION_DIVISOR)
        return replace(self, conversation=min(self.conversation, room))

    @property
    def overhead_per_message(self) -> int:
        """Return the tokens that the model counts for each message besides its text, at least one."""
        return max(math.ceil(self.calibration.overhead / self.calibration.ratio), 1)

    def fit_conversation(
        self, view: Sequence[ViewMessage], input_tokens: int, *, count_tokens: TokenCounter
    ) -> list[ViewMessage]:
        """Return the latest messages that fit into a prompt beside an input and the largest context.

        `input_tokens` are those of the input.
        """
        overhead = self.overhead_per_message
        available = self.usable - count_tokens(TEMPLATE) - self.context - input_tokens - 2 * overhead
        separators = count_separator_tokens(view, overhead_per_message=overhead, count_tokens=count_tokens)
        limit = max(min(self.conversation, available) - separators, 0)
        return fit_to_budget(view, max_tokens=limit, count_tokens=count_tokens, protected_turns=0, overhead=overhead)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatService:
    """Calls of the chat model for one agent. `model` is None if none is configured.

    `on_event` receives progress events until the reply begins: the model is waited for, is slow, is asked again.
    """

    scope: AgentScope
    model: ChatModel | None
    limits: TokenLimits
    purpose: str = "turn"  # by which the usage is recorded
    on_event: ProgressCallback = ignore_progress
    calibration: TokenCalibration = NOT_CALIBRATED

    async def fit_to_model(self) -> "ChatService":
        """Return the service with the context window that the model reports; the service itself if it reports none."""
        if not isinstance(self.model, WindowedModel):
            return self
        window = await self.model.find_window()
        if window.source == "default":
            return self
        return replace(self, limits=replace(self.limits, window=window.tokens))

    def estimate_tokens(self, request: ModelRequest) -> int:
        """Return how many tokens the model counts for a prompt, by its calibration."""
        return self.calibration.to_model_tokens(request.tokens, len(request.messages))

    def requested_reply(self, request: ModelRequest) -> int:
        """Return the limit of the reply that a request sets, in tokens; 0 if it sets none."""
        return max((*_list_reply_limits(request).values(), self.limits.reply or 0))

    def build_budget(self, usage: ModelUsage) -> PromptBudget:
        """Return the token limits of the parts of a prompt, by the local token counter.

        `usage` has the calls from which the ratio of local tokens to those of the model is computed.
        """
        limits, calibration = self.limits, fit_calibration(usage.samples)
        window = split_window(
            limits.window, reply=limits.reply_reserve, conversation=limits.conversation, context=limits.context
        )
        return PromptBudget(
            calibration=calibration,
            usable=calibration.to_local_tokens(window.usable, 0),
            conversation=calibration.to_local_tokens(window.conversation, 0),
            context=max(calibration.to_local_tokens(window.context, 0), 1),
        )

    async def check_window(self, text: str, *, instructions: str, options: RequestOptions) -> None:
        """Raise ContextWindowError if the caller's instructions and tools leave too little of the window for `text`."""
        if self.model is None or not (instructions or options.tools):
            return
        chat = await self.fit_to_model()
        async with self.scope.transaction() as tx:
            usage = await self.read_usage(tx)
        chat.check_prompt(text, usage, instructions=instructions, options=options)

    def check_prompt(self, text: str, usage: ModelUsage, *, instructions: str, options: RequestOptions) -> None:
        """Raise ContextWindowError as `check_window`, with the window of `limits` and a `usage` that was read."""
        budget, count_tokens = self.build_budget(usage), self.scope.count_tokens
        prompt = PromptBuilder(
            system=TEMPLATE,
            view=(),
            text=text,
            text_tokens=count_tokens(text),
            overhead_per_message=budget.overhead_per_message,
            instructions=instructions,
            options=options,
        )
        if (
            exceeds_tokens(instructions, budget.usable, count_tokens=count_tokens)
            or prompt.required_tokens(budget.usable, count_tokens=count_tokens) > budget.usable
        ):
            what = (
                f"The system message and the tools exceed the {budget.usable:,} tokens available for a prompt in the"
                f" context window of {self.model.name if self.model else 'the model'} ({self.limits.window:,} tokens)."
            )
            raise ContextWindowError(what, hint=SMALL_WINDOW_HINT, param="messages")

    async def read_usage(self, tx: Tx) -> ModelUsage:
        """Return the tokens that the agent used today, and the calls that calibrate the token counter."""
        if self.model is None:
            return ModelUsage()
        return await usage.read_usage(tx, agent_id=self.scope.agent_id, model=self.model.name, now=self.scope.now())

    def find_refusal_reason(self, tokens: int, usage: ModelUsage) -> str | None:
        """Return why a prompt of `tokens` may not be sent (no model, or the daily limit); None if it may be sent."""
        if self.model is None:
            return NO_MODEL_MESSAGE
        left = self.limits.per_day - usage.tokens_today
        if (cost := tokens + self.limits.reply_reserve) <= left:
            return None
        return (
            f"This turn may use {cost:,} model tokens, but only {max(left, 0):,}"
            f" of today's {self.limits.per_day:,} are left (limit NEWTON_LLM_TOKENS_PER_DAY)."
        )

    async def stream(
        self, prompt: PromptBuilder, request: ModelRequest, replies: list[ChatReply]
    ) -> AsyncGenerator[ReplyPiece]:
        """Yield the pieces of the reply to `request`, which `prompt` has built; at its end, append it to `replies`.

        If the model refuses attachments of earlier messages, the prompt is sent once more with references in their
        place. Attachments of the input are always sent. Raises ContextWindowError if the prompt is too long.
        """
        assert self.model is not None, "stream() needs a model"
        sent = request.tokens + prompt.overhead_per_message * len(request.messages)
        try:
            async with aclosing(self._stream_once(self.model, request, replies, prompt.origin)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except RefusedRequestError:
            if not prompt.attachments or prompt.input_parts:
                raise
            # no larger than the refused request: at least one attachment is left out
            described = replace(prompt, attachments={}).build(
                sent + ATTACHMENT_TOKENS, count_tokens=self.scope.count_tokens
            )
            async with aclosing(self._stream_once(self.model, described, replies, prompt.origin)) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def _stream_once(
        self, model: ChatModel, request: ModelRequest, replies: list[ChatReply], origin: PromptOrigin | None
    ) -> AsyncGenerator[ReplyPiece]:
        """Stream one call. Record its prompt, and its tokens: as reported by the model, or estimated if the stream is
        closed early.
        """
        assert not in_transaction()
        request = self._limit_reply(request)
        received: list[str] = []
        is_recorded = False
        try:
            with report_waiting(model.name, self.on_event) as report_begin:
                async for chunk in self._call_model(model, request):
                    if isinstance(chunk, CallRestart):
                        self.on_event(TurnStatus.of_restart(model.name, chunk.seconds))
                        continue
                    report_begin()
                    if isinstance(chunk, ChatReply):
                        is_recorded = True
                        replies.append(chunk)
                        await self._record_call(chunk, model, request, origin)
                    else:
                        received += [chunk] if isinstance(chunk, str) else []
                        yield chunk
        except ProviderError as error:
            if not is_recorded and origin:
                await asyncio.shield(self._record_failure(error, model, request, origin))
            is_recorded = True  # a failing model has reported its usage already, or has none
            raise
        finally:
            if not is_recorded:
                text, count_tokens = "".join(received), self.scope.count_tokens
                estimate = estimate_reply(model.name, request.tokens, text, count_tokens=count_tokens)
                await asyncio.shield(self._record_call(estimate, model, request, origin))

    def _call_model(
        self, model: ChatModel, request: ModelRequest
    ) -> AsyncIterator[ReplyPiece | CallRestart | ChatReply]:
        if isinstance(model, ToolModel):
            return model.answer(request.messages, max_tokens=self._max_reply(request), options=request.options)
        return model.stream(request.messages, max_tokens=self._max_reply(request))

    def _limit_reply(self, request: ModelRequest) -> ModelRequest:
        """Return the request with its reply limits reduced to the window, because servers count them against it."""
        counted = self.estimate_tokens(request)
        left = self.limits.window - counted
        room = max(int(left - min(COUNT_MARGIN * counted, MAX_MARGIN_SHARE * left)), MIN_REPLY_TOKENS)
        limits = {name: min(size, room) for name, size in _list_reply_limits(request).items()}
        body = {**request.options.extra_body, **limits}
        return replace(request, options=replace(request.options, extra_body=body, reply_room=room))

    def _max_reply(self, request: ModelRequest) -> int | None:
        return self.limits.reply and min(self.limits.reply, request.options.reply_room or self.limits.reply)

    async def _record_call(
        self, reply: ChatReply, model: ChatModel, request: ModelRequest, origin: PromptOrigin | None
    ) -> None:
        """Record the tokens of a call and, with an `origin`, its prompt, under one id."""
        has_attachments = any(message.attachment_count for message in request.messages)  # their tokens are a guess
        size, call_id = None if has_attachments else PromptSize(request.tokens, len(request.messages)), new_id()
        reply = correct_usage(reply, 0 if has_attachments else request.tokens, count_tokens=self.scope.count_tokens)
        async with self.scope.write() as (tx, ctx):
            spent = UsageRecord(reply, self.purpose, size, call_id)
            await usage.record(tx, spent, agent_id=ctx.agent_id, now=ctx.now)
            if origin:
                sent, outcome = self._to_sent_request(model, request), CallOutcome(call_id, reply.finish)
                await prompt_store.insert_prompt(tx, sent, origin, outcome, agent_id=ctx.agent_id, now=ctx.now)

    async def _record_failure(
        self, error: ProviderError, model: ChatModel, request: ModelRequest, origin: PromptOrigin
    ) -> None:
        if isinstance(error, ContextWindowError):  # the turn is prepared anew, with blocks that fit
            origin = replace(origin, new_blocks=())
        async with self.scope.write() as (tx, ctx):
            sent, outcome = self._to_sent_request(model, request), CallOutcome(new_id(), "failed", error.code)
            await prompt_store.insert_prompt(tx, sent, origin, outcome, agent_id=ctx.agent_id, now=ctx.now)

    def _to_sent_request(self, model: ChatModel, request: ModelRequest) -> SentRequest:
        """Return the request as `_call_model` sends it."""
        return SentRequest(
            model=model.name,
            messages=request.messages,
            spans=request.spans,
            options=request.options if isinstance(model, ToolModel) else RequestOptions(),
            max_tokens=self._max_reply(request),
            part_tokens=request.part_tokens,
        )


def _list_reply_limits(request: ModelRequest) -> dict[str, int]:
    """Return the limits of the reply among the caller's fields of a request, by the names of the fields."""
    body = request.options.extra_body
    return {name: size for name in REPLY_LIMIT_FIELDS if isinstance(size := body.get(name), int)}


class CallLimits(NamedTuple):
    """The censors in force and the tokens used, read together when a turn begins and before each further call."""

    rules: Sequence[Censor]
    usage: ModelUsage


async def load_call_limits(tx: Tx, gate: ActionGate, chat: ChatService) -> CallLimits:
    """Read the censors in force and the tokens used in the transaction `tx`."""
    return CallLimits(await gate.list_rules(tx), await chat.read_usage(tx))


async def read_call_limits(gate: ActionGate, chat: ChatService) -> CallLimits:
    """Read the censors in force and the tokens used in a transaction of their own."""
    async with chat.scope.transaction() as tx:
        return await load_call_limits(tx, gate, chat)
