"""The tool-calling loop of one turn, and the search for the window of a model that refuses its prompt as too long."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from newton.agent.actions.action_runner import ActionRunner
from newton.agent.actions.outbound_guard import OutboundGuard
from newton.agent.llm.usage import ModelUsage
from newton.agent.loop.action_gate import ActionGate
from newton.agent.loop.chat_tools.tool_table import CHAT_TOOLS
from newton.agent.loop.completion import CallLimits, ChatService, read_call_limits
from newton.agent.loop.prompt import ModelRequest, PromptBuilder
from newton.agent.loop.tools import AgentToolset, ToolResult
from newton.agent.loop.turn_status import TasksChanged
from newton.agent.prompt_records.spans import PromptMessage, TextSpan
from newton.concurrency import run_to_completion
from newton.dialogue.compaction.extractive_summary import truncate_middle
from newton.dialogue.compaction.view_budget import equal_share
from newton.dialogue.messages import Message, StoredMessage
from newton.dialogue.view import to_view_message
from newton.errors import ContextWindowError, ProviderError, RefusedSize, TokenQuotaError
from newton.heart.events.tool_results import ToolOutcome
from newton.ids import new_id
from newton.memory.hygiene import clean_model_text
from newton.memory.lookup import PAGE_CHARS
from newton.memory.memory import TokenCounter, Trust, lowest_known_trust
from newton.providers.chat import ChatMessage, ChatModel, ChatReply, ReplyPiece, RequestOptions, ToolCall
from newton.providers.context_windows import MIN_WINDOW, WindowedModel
from newton.providers.token_calibration import UsageSample

MAX_REFUSALS = 8  # of prompts of one turn
FIRST_SHRINK, NEXT_SHRINK = 0.9, 0.5  # of the refused prompt, if the server names no window
# If the prompt should have fit, the model's tokenizer counts more than estimated: of the window if the server says how
# many, else of the estimate.
SAME_WINDOW_SHRINK, ESTIMATE_SHRINK = 0.9, 0.7
EXCESS_MARGIN = 0.95  # of a window that is computed from an estimated prompt


@dataclass(slots=True)
class WindowSearch:
    """The search for the context window of a model that refuses the prompts of one turn as too long.

    `learnt` is the window to keep once a prompt is accepted; None if there is none. It is a guess if the server did not
    name it.
    """

    refusals: int = 0
    learnt: int | None = None
    is_guess: bool = False

    def shrink(
        self, size: RefusedSize, request: ModelRequest, chat: ChatService, usage: ModelUsage
    ) -> tuple[ChatService, ModelUsage]:
        """Return the service with a smaller window, and the usage with the tokens that the server counted.

        The window is the one that the refusal names. If it names none, it is less than the refused prompt.
        """
        found = self._find_window(size, request, chat)
        window, estimated = found or chat.limits.window, chat.estimate_tokens(request)
        if size.prompt:
            window = window if found else max(int(window * SAME_WINDOW_SHRINK), MIN_WINDOW)
        elif estimated + chat.requested_reply(request) <= window:
            window = max(int(estimated * ESTIMATE_SHRINK), MIN_WINDOW)  # for this turn only
        self.refusals += 1
        if size.prompt and not any(message.attachment_count for message in request.messages):
            sample = UsageSample(request.tokens, len(request.messages), size.prompt)
            usage = usage._replace(samples=(*usage.samples, sample))
        return replace(chat, limits=replace(chat.limits, window=window)), usage

    def _find_window(self, size: RefusedSize, request: ModelRequest, chat: ChatService) -> int | None:
        """Return the window that a refusal shows, and note it; None if it is not smaller than the known one."""
        known, is_guess = chat.limits.window, False
        counted = size.prompt or chat.estimate_tokens(request)
        if size.window and size.window >= MIN_WINDOW:
            found = size.window
        elif size.excess and size.excess < counted:
            found = int((counted - size.excess) * EXCESS_MARGIN)
        else:
            found, is_guess = int(min(counted, known) * (NEXT_SHRINK if self.refusals else FIRST_SHRINK)), True
        if found >= known:
            return None
        self.learnt, self.is_guess = max(found, MIN_WINDOW), is_guess
        return self.learnt

    async def keep(self, model: ChatModel | None) -> None:
        """Let the model keep the window that was learnt, now that a prompt was accepted."""
        if self.learnt and isinstance(model, WindowedModel):
            await model.learn_window(self.learnt, is_guess=self.is_guess)
        self.learnt = None


MAX_ROUNDS = 8
MAX_EXTERNAL_ROUNDS = 24  # if tools of servers are offered
MAX_TOOL_TOKENS, MAX_EXTERNAL_TOOL_TOKENS = 20_000, 60_000  # of calls and results in one turn
MAX_OUTPUT_CHARS = 2 * PAGE_CHARS  # characters of a result as JSON; the rest is omitted
TOOL_WORK_SHARE = 0.75  # of the tokens that the rest of the prompt leaves, for calls and results
MIN_RESULT_TOKENS = 32  # of a truncated result
MAX_CALLS_PER_REPLY = 16  # further calls of a reply get an error
OWN_CALL_PREFIX = "nwc_"  # of the ids of calls that Newton runs itself

QUOTA_HINT = "Raise NEWTON_LLM_TOKENS_PER_DAY, or wait until tomorrow (UTC)."
INTERRUPTED = "interrupted"
INTERRUPTED_OUTPUT = json.dumps(
    {"outcome": INTERRUPTED, "output": "Stopped before the tool answered. It is not known what the tool did."}
)
TOO_MANY_CALLS = ToolResult(
    {
        "error": "Too many tool calls in one reply.",
        "hint": f"Make at most {MAX_CALLS_PER_REPLY} tool calls in one reply.",
    },
    is_error=True,
)


Refit: TypeAlias = Callable[["ToolLoop", ModelUsage], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class ToolLoop:
    """The model calls of one turn, repeated while the model calls tools that Newton runs.

    A prompt that the model refuses as too long is prepared anew by `refit`, within the window that the refusal shows.
    `caller_options` are the options without Newton's tools, `call_limits` limit the next call, `append_lines` stores
    messages, `record_result` stores a call and its result as an event, `actions` calls the tools of servers, `outbound`
    checks what leaves, and `min_trust` is the lowest trust tier of text that the model has read. `work` are the calls
    that Newton ran in this turn, and their results. After the loop, `calls` are the tool calls that the caller must
    run. The censors in `exempt_censors` do not apply to the reply.
    """

    chat: ChatService
    gate: ActionGate
    tools: AgentToolset | None
    prompt: PromptBuilder
    request: ModelRequest
    caller_options: RequestOptions
    max_tokens: int
    call_limits: CallLimits
    append_lines: Callable[[Sequence[Message]], Awaitable[Sequence[StoredMessage]]]
    record_result: Callable[[ToolOutcome, Trust], Awaitable[None]]
    outbound: OutboundGuard
    actions: ActionRunner | None = None
    min_trust: Trust | None = None
    exempt_censors: frozenset[UUID] = frozenset()
    refit: Refit | None = None
    work: tuple[PromptMessage, ...] = ()
    has_ended_tools: bool = False
    search: WindowSearch = field(default_factory=WindowSearch)
    replies: list[ChatReply] = field(default_factory=list[ChatReply])
    calls: tuple[ToolCall, ...] = ()

    async def stream(self) -> AsyncGenerator[ReplyPiece]:
        """Yield the pieces of the reply, of all rounds of tool calls.

        Raises ProviderError if the model fails, and CensorError if a censor blocks the reply.
        """
        count_tokens = self.chat.scope.count_tokens
        for rounds_left in reversed(range(self._max_rounds)):
            async with aclosing(self._stream_checked()) as pieces:
                async for piece in pieces:
                    yield piece
            reply = self.replies[-1] if self.replies else None
            own, self.calls = await self._split_calls(reply.calls if reply else ())
            if reply is None or not own:
                if notes := self._take_notes():
                    yield notes
                return
            if rounds_left == 0:
                break
            self._add_work(await self._run_calls(own, reply.text))
            if rounds_left == 1 or self.prompt.overhead_tokens(count_tokens=count_tokens) > self._max_tool_tokens:
                # Without Newton's tools the model must answer, so the loop ends.
                self.has_ended_tools, self.prompt = True, replace(self.prompt, options=self.caller_options)
            self.request = self.prompt.build(self.max_tokens, count_tokens=count_tokens)
            self.call_limits = await read_call_limits(self.gate, self.chat)
            if reason := self.chat.find_refusal_reason(self.request.tokens, self.call_limits.usage):
                raise TokenQuotaError(reason, hint=QUOTA_HINT)
        what = f"The model called tools {self._max_rounds} times in a row and gave no answer."
        raise ProviderError(what, hint="Send the message again.")

    async def _stream_checked(self) -> AsyncGenerator[ReplyPiece]:
        """Yield the pieces of one reply that no censor blocks, without links that may not leave."""
        separator = "\n\n" if any(reply.text for reply in self.replies) else ""
        rules, exempt = self.call_limits.rules, self.exempt_censors
        allowed = self.gate.filter_stream(self._stream_reply(), rules=rules, exempt=exempt)
        async with aclosing(self.outbound.filter_links(allowed)) as checked:
            async for chunk in checked:
                yield separator + chunk if isinstance(chunk, str) else chunk
                separator = "" if isinstance(chunk, str) else separator

    async def _stream_reply(self) -> AsyncGenerator[ReplyPiece]:
        """Yield the pieces of one reply. Raises ContextWindowError if the model refuses every prompt as too long."""
        while True:
            has_begun, self.outbound.prompt = False, self.prompt
            try:
                async with aclosing(self.chat.stream(self.prompt, self.request, self.replies)) as pieces:
                    async for piece in pieces:
                        has_begun = True
                        yield piece
                break
            except ContextWindowError as error:
                if has_begun or self.refit is None or self.search.refusals == MAX_REFUSALS:
                    raise
                usage = self.call_limits.usage
                self.chat, usage = self.search.shrink(error.size, self.request, self.chat, usage)
                await self.refit(self, usage)
        await self.search.keep(self.chat.model)

    def _take_notes(self) -> str:
        """Return what the reply says of what was held back; nothing if the caller wants it in a format of its own."""
        is_structured = not {"response_format", "text"}.isdisjoint(self.caller_options.extra_body)
        return "" if is_structured else self.outbound.take_notes()

    def adopt(self, prompt: PromptBuilder, *, max_tokens: int) -> None:
        """Replace the prompt of the next calls. Parts that the loop has omitted, such as images, stay omitted."""
        notices = self.prompt.origin.notices if self.prompt.origin else ()
        origin = prompt.origin and replace(prompt.origin, notices=notices)
        self.prompt = replace(prompt, input_parts=self.prompt.input_parts, origin=origin)
        if self.has_ended_tools:
            self.prompt = replace(self.prompt, options=self.caller_options)
        self.max_tokens = max_tokens
        self.request = self.prompt.build(max_tokens, count_tokens=self.chat.scope.count_tokens)

    def _add_work(self, results: Sequence[PromptMessage]) -> None:
        """Add calls and their results to the prompt. The longest results are truncated to the tokens that are left."""
        count_tokens, before = self.chat.scope.count_tokens, len(self.work)
        others = self.prompt.tool_messages[: len(self.prompt.tool_messages) - before]
        bare = replace(self.prompt, tool_messages=others)
        room = self.max_tokens - bare.required_tokens(self.max_tokens, count_tokens=count_tokens)
        room = max(int(TOOL_WORK_SHARE * (room - count_tokens(self.prompt.memory))), 0)
        self.work = fit_tool_results((*self.work, *results), max_tokens=room, count_tokens=count_tokens)
        self.prompt = replace(self.prompt, tool_messages=(*others, *self.work))

    def omit_images(self) -> bool:
        """Send only the text of the input from now on; return False if it has nothing else."""
        if self.prompt.input_parts is None:
            return False
        self.prompt = replace(self.prompt, input_parts=None)
        self.request = self.prompt.build(self.max_tokens, count_tokens=self.chat.scope.count_tokens)
        return True

    async def _split_calls(
        self, calls: Sequence[ToolCall]
    ) -> tuple[dict[ToolCall, ToolResult | None], tuple[ToolCall, ...]]:
        """Split calls into those that Newton runs, some with a known result, and those that the caller runs.

        A caller's call that a censor blocks is returned among Newton's, with an error as its result. If there are calls
        for Newton, the caller's calls are dropped: the model can repeat them in the next round.
        """
        caller_tools = {tool.name for tool in self.caller_options.tools}
        own: dict[ToolCall, ToolResult | None] = {}
        others: list[ToolCall] = []
        for call in calls:
            blocked = None
            if call.name in caller_tools:
                check = await self.gate.check(call.arguments, "action")
                if not check.blocks:
                    others.append(call)
                    continue
                error = {"error": f"A censor forbids this call: {check.message}.", "hint": "Try another way."}
                blocked = ToolResult(error, is_error=True)
            own[call._replace(id=f"{OWN_CALL_PREFIX}{new_id().hex}")] = blocked
        return own, () if own else tuple(others)

    async def _run_calls(self, calls: dict[ToolCall, ToolResult | None], text: str) -> list[PromptMessage]:
        """Run the calls in order; return the messages of the calls and their results. `text` is the reply so far.

        The calls are stored first, with the text, then each result. The whole reply, stored later, has the text too.
        """
        cleaned = tuple(call._replace(arguments=clean_model_text(call.arguments)) for call in calls)
        clock = self.chat.scope.clock
        line = Message(
            role="assistant", content=clean_model_text(text), said_at=clock.now(), calls=cleaned, is_notice=True
        )
        place = await self._append(line)
        spans = (TextSpan(len(text), "line", place, place),)
        messages = [PromptMessage(ChatMessage("assistant", text, tuple(calls)), spans)]
        for index, (call, blocked) in enumerate(calls.items()):
            try:
                result = TOO_MANY_CALLS if index >= MAX_CALLS_PER_REPLY else blocked or await self._run_call(call)
            except asyncio.CancelledError:
                await self._record_interrupted(call)
                raise
            self.min_trust = lowest_known_trust([self.min_trust, result.trust])
            output = json.dumps(result.fields, ensure_ascii=False, default=str)[:MAX_OUTPUT_CHARS]
            place = await self._append(
                to_tool_line(call, clean_model_text(output), said_at=clock.now(), trust=result.trust or "agent")
            )
            is_external = self._is_external(call)
            if result.is_error or is_external:
                outcome = ToolOutcome(call.name, call.arguments, output, is_error=result.is_error)
                await self.record_result(outcome, "tool" if is_external else self.min_trust or "agent")
            message = ChatMessage("tool", output, tool_call_id=call.id)
            messages.append(PromptMessage(message, (TextSpan(len(output), "line", place, place),)))
        return messages

    async def _record_interrupted(self, call: ToolCall) -> None:
        """Store a call of a server's tool that was cancelled as an event: later turns see that it may have acted."""
        if self.actions is not None and self.actions.is_interrupted:
            outcome = ToolOutcome(call.name, call.arguments, INTERRUPTED_OUTPUT)
            await run_to_completion(self.record_result(outcome, "tool"))

    async def _append(self, line: Message) -> int:
        """Store a message of this turn, and note it for the records of the next prompts; return its position.

        The result is -1 in a private turn, which stores nothing.
        """
        stored = await self.append_lines([line])
        if not stored or not self.prompt.origin:
            return -1
        notice, origin = to_view_message(line, stored[0].position, stored[0].tokens), self.prompt.origin
        self.prompt = replace(self.prompt, origin=replace(origin, notices=(*origin.notices, notice)))
        return notice.first

    @property
    def _max_rounds(self) -> int:
        return MAX_EXTERNAL_ROUNDS if self.actions else MAX_ROUNDS

    @property
    def _max_tool_tokens(self) -> int:
        """Return the limit for the tokens of calls and results: at most half of the request."""
        return min(MAX_EXTERNAL_TOOL_TOKENS if self.actions else MAX_TOOL_TOKENS, self.max_tokens // 2)

    def _is_external(self, call: ToolCall) -> bool:
        return self.actions is not None and call.name in self.actions.tools

    async def _run_call(self, call: ToolCall) -> ToolResult:
        if self.actions is not None and call.name in self.actions.tools:
            report = await self.actions.run(call.name, call.arguments)
            return ToolResult(report.fields, report.trust, is_error=report.is_error)
        if self.tools is None:
            error = {"error": f"There is no tool {call.name!r}.", "hint": "Answer without tools."}
            return ToolResult(error, is_error=True)
        result = await self.tools.with_trust([self.min_trust]).execute(call.name, call.arguments, tools=CHAT_TOOLS)
        if result.tree is not None:
            self.chat.on_event(TasksChanged(result.tree))
        return result


def fit_tool_results(
    work: tuple[PromptMessage, ...], *, max_tokens: int, count_tokens: TokenCounter
) -> tuple[PromptMessage, ...]:
    """Return calls and results of at most `max_tokens`, if possible. The longest results are truncated. Pure."""
    sizes = [count_tokens(one.message.text) for one in work]
    if sum(sizes) <= max_tokens:
        return work
    level = max(equal_share(sizes, max_tokens), MIN_RESULT_TOKENS)
    return tuple(
        _truncate_result(one, level, count_tokens) if one.message.role == "tool" and size > level else one
        for one, size in zip(work, sizes, strict=True)
    )


def _truncate_result(one: PromptMessage, max_tokens: int, count_tokens: TokenCounter) -> PromptMessage:
    text = truncate_middle(one.message.text, max_tokens=max_tokens, count_tokens=count_tokens)
    return PromptMessage(replace(one.message, text=text), (one.spans[0]._replace(chars=len(text)),))


def to_tool_line(call: ToolCall, text: str, *, said_at: datetime, trust: Trust | None = None) -> Message:
    """Convert the result of a call that Newton ran to a message to store: a notice, since it may repeat memories.

    `trust` is the lowest trust tier of foreign text in the result.
    """
    line = Message(role="tool", name=call.name, content=text, said_at=said_at, tool_call_id=call.id, min_trust=trust)
    return replace(line, is_notice=True)
