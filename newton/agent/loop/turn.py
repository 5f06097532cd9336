"""One turn of a session: store the input first, assemble the context, call the model, store the reply."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from uuid import UUID

from newton.agent.compaction.service import CompactionService
from newton.agent.loop.action_gate import ActionGate, CensorCheck
from newton.agent.loop.completion import ChatService, PromptBudget, TokenLimits
from newton.agent.loop.fallback import quote_memories
from newton.agent.loop.prompt import (
    ModelRequest,
    PromptBuilder,
    count_tool_tokens,
    drop_own_tool_calls,
    find_sent_messages,
    select_dialogue,
    to_chat_messages,
)
from newton.agent.loop.session_lock import SessionLease, lease_session
from newton.agent.loop.tool_loop import OWN_CALL_PREFIX, ToolLoop
from newton.agent.loop.tools import AgentToolset, list_tools
from newton.agent.loop.turn_recorder import RecordedInput, ReplyRecord, TurnRecorder
from newton.agent.scope import AgentScope
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.bundle_store import AnsweredBy
from newton.cognition.pipeline import ContextBuilder
from newton.cognition.request import ContextBuildRequest, SentMessages
from newton.cognition.session_context.service import SessionContext, SessionContextService
from newton.dialogue import log
from newton.dialogue.compaction.view_budget import fit_to_budget
from newton.dialogue.messages import Message
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.dialogue.view import ViewMessage
from newton.errors import CensorError, ProviderError
from newton.heart.identity.identity_store import TenetProposal
from newton.memory.hygiene import clean_text
from newton.memory.memory import Trust, lowest_known_trust
from newton.providers.chat import ChatModel, ChatReply, FinishReason, RequestOptions, ToolCall, ToolModel

DEFAULT_ORIGIN = "chat"
CENSOR_MESSAGE = "A censor forbids this input."
EMPTY_REPLY_MESSAGE = "The model returned an empty reply."
NO_MODEL_REASON = "no model reads the conversation, so memories to quote were searched"
OWN_TOOLS_DIVISOR = 8  # Newton's tools are offered only if they take at most this part of the window


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerOptions:
    """Options of an API caller. `instructions` precede the context; `fingerprint` identifies a reply."""

    request_options: RequestOptions = field(default_factory=RequestOptions)
    instructions: str = ""
    max_reply_tokens: int | None = None
    fingerprint: Callable[[str, Sequence[ToolCall]], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInput:
    """The input of a turn. `earlier` are messages before it; with `already_stored`, those after it."""

    session_id: UUID
    text: str
    frame: str | None = None
    ref: str | None = None
    earlier: Sequence[Message] = ()
    already_stored: bool = False
    caller_options: CallerOptions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """The result of a turn. `degraded` says why there is no complete model reply; the caller must run `calls`."""

    text: str
    context: SessionContext
    degraded: str | None = None
    quoted: bool = False
    failed: bool = False
    forbidden: bool = False
    calls: Sequence[ToolCall] = ()
    finish: FinishReason = "stop"
    tokens: tuple[int, int] = (0, 0)
    proposed: Sequence[TenetProposal] = ()

    @property
    def bundle(self) -> Bundle:
        return self.context.bundle

    @property
    def caveat(self) -> str | None:
        return None if self.degraded in (None, CENSOR_MESSAGE) else f"{self.degraded} {self.shortcoming}"

    @property
    def shortcoming(self) -> str:
        return "This answer only quotes memory." if self.quoted else "The answer is incomplete."


@dataclass(frozen=True, slots=True, kw_only=True)
class _PreparedTurn:
    """The context and the model request of a turn; `degraded` says why there is no request."""

    context: SessionContext
    prompt: PromptBuilder | None = None
    request: ModelRequest | None = None
    tool_loop: ToolLoop | None = None
    degraded: str | None = None

    @property
    def replies(self) -> Sequence[ChatReply]:
        return self.tool_loop.replies if self.tool_loop else ()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return self.tool_loop.calls if self.tool_loop else ()

    @property
    def min_trust(self) -> Trust | None:
        return lowest_known_trust((self.tool_loop and self.tool_loop.min_trust, *self.context.bundle.external_trusts))


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRunner:
    """Runs turns for one agent. Without `tools` the model gets no Newton tools."""

    scope: AgentScope
    contexts: ContextBuilder
    compaction: CompactionService
    gate: ActionGate
    model: ChatModel | None
    limits: TokenLimits
    sizes: SummarySizes = DEFAULT_SIZES
    tools: AgentToolset | None = None

    async def run(self, turn_input: TurnInput) -> AsyncGenerator[str | TurnResult]:
        """Yield the reply in chunks, then the TurnResult. Closed early, it stores the text received until then.

        Turns of a session run one at a time across processes. Raises OverloadedError when another turn does not end, or
        has taken over the lease; nothing more is stored then.
        """
        text = clean_text(turn_input.text, what="message")
        async with lease_session(
            self.scope.db, agent_id=self.scope.agent_id, session_id=turn_input.session_id
        ) as lease:
            recorder = self._recorder(turn_input, lease)
            line = (
                None
                if turn_input.already_stored
                else Message(role="user", content=text, said_at=self.scope.now(), ref=turn_input.ref)
            )
            recorded = await lease.run_to_completion(recorder.record_input(text, line, turn_input.earlier))
            async with aclosing(self._run(turn_input, recorded, recorder)) as pieces:
                while (piece := await lease.run(anext(pieces, None))) is not None:
                    yield piece

    async def _run(
        self, turn_input: TurnInput, recorded: RecordedInput, recorder: TurnRecorder
    ) -> AsyncGenerator[str | TurnResult]:
        check = await self.gate.check(recorded.text, "input")
        proposed = () if check.blocks else await recorder.propose_identity_changes(recorded)
        prepared = await self._prepare_checked(turn_input, recorded, recorder, check)
        degraded, pieces = prepared.degraded, list[str]()
        stopped = f"A censor forbids this input: {check.message}." if check.blocks else None
        try:
            if prepared.prompt and prepared.request and prepared.tool_loop:
                async with aclosing(prepared.tool_loop.stream(prepared.prompt, prepared.request)) as stream:
                    async for piece in stream:
                        pieces.append(piece)
                        yield piece
        except ProviderError as error:
            degraded = str(error)
        except CensorError as error:
            degraded = stopped = error.what
        finally:
            # A turn cancelled during streaming stores the text received so far.
            reply = _to_reply_record(turn_input, recorded, prepared, "".join(pieces), "model")
            has_reply = await recorder.lease.run_to_completion(recorder.record_reply(reply))
        if not has_reply:
            degraded = degraded or EMPTY_REPLY_MESSAGE
            if not stopped:
                prepared = replace(prepared, context=await self._rebuild_context(turn_input, recorded, prepared))
            pieces = [stopped or quote_memories(prepared.context.bundle)]
            yield pieces[0]
            author = "censor" if stopped else "memory"
            await recorder.record_reply(_to_reply_record(turn_input, recorded, prepared, pieces[0], author))
        await recorder.record_context(prepared.context.bundle)
        yield TurnResult(
            text="".join(pieces),
            context=prepared.context,
            degraded=degraded,
            quoted=not has_reply and stopped is None,
            failed=self.model is not None and degraded is not None and stopped is None,
            forbidden=stopped is not None,
            calls=prepared.calls,
            finish=_finish_reason(prepared, degraded),
            tokens=_sum_usage(prepared.replies),
            proposed=proposed,
        )

    async def _prepare_checked(
        self, turn_input: TurnInput, recorded: RecordedInput, recorder: TurnRecorder, check: CensorCheck
    ) -> _PreparedTurn:
        if check.blocks:
            return await self._prepare_without_model(turn_input, recorded, CENSOR_MESSAGE)
        return await self._prepare(turn_input, recorded, recorder)

    @property
    def chat(self) -> ChatService:
        return ChatService(scope=self.scope, model=self.model, limits=self.limits)

    def _recorder(self, turn_input: TurnInput, lease: SessionLease) -> TurnRecorder:
        return TurnRecorder(
            scope=self.scope,
            session_id=turn_input.session_id,
            sizes=self.sizes,
            capacity=self.limits.working,
            lease=lease,
        )

    async def _prepare(self, turn_input: TurnInput, recorded: RecordedInput, recorder: TurnRecorder) -> _PreparedTurn:
        max_reply = (turn_input.caller_options and turn_input.caller_options.max_reply_tokens) or self.limits.reply
        limits = replace(self.limits, reply=min(max_reply, self.limits.reply))
        chat = replace(self.chat, limits=limits)
        if reason := await chat.get_refusal_reason(self.scope.count_tokens(recorded.text)):
            return await self._prepare_without_model(turn_input, recorded, reason)
        budget = await chat.get_budget()
        full_view = await self.compaction.load_view(turn_input.session_id, max_tokens=budget.conversation)
        before, after_input = self._split_view(turn_input, recorded, full_view, budget)
        view = (
            full_view
            if turn_input.already_stored
            else [item for item in full_view if recorded.position is None or item.first < recorded.position]
        )
        end = max((item.last for item in view), default=-1)
        prompt = self._build_prompt(turn_input, recorded, after_input, budget)
        conversation = budget.fit_conversation(
            before,
            prompt.text_tokens + prompt.overhead_tokens(count_tokens=self.scope.count_tokens),
            count_tokens=self.scope.count_tokens,
        )
        sent = replace(
            find_sent_messages(turn_input.session_id, [*conversation, *after_input], end=end),
            inherited_ranges=tuple(recorded.ancestors),
        )
        request = self._context_request(turn_input, recorded, sent)
        context = await SessionContextService(builder=self.contexts).get_for_turn(
            replace(request, tokens=budget.context)
        )
        prompt = replace(prompt, context=context.bundle.text, view=conversation)
        model_request = prompt.build(budget.usable, count_tokens=self.scope.count_tokens)
        if reason := await chat.get_refusal_reason(
            budget.calibration.to_model_tokens(model_request.tokens, len(model_request.messages))
        ):
            return await self._prepare_without_model(turn_input, recorded, reason)
        async with self.scope.transaction() as tx:
            quarantined = await log.find_quarantined_trust(
                tx, [*conversation, *after_input], agent_id=self.scope.agent_id, session_id=turn_input.session_id
            )
        tool_loop = self._tool_loop(
            turn_input,
            chat,
            recorder,
            max_tokens=budget.usable,
            min_trust=lowest_known_trust((*quarantined, *context.bundle.external_trusts)),
        )
        return _PreparedTurn(context=context, prompt=prompt, request=model_request, tool_loop=tool_loop)

    def _split_view(
        self, turn_input: TurnInput, recorded: RecordedInput, view: Sequence[ViewMessage], budget: PromptBudget
    ) -> tuple[list[ViewMessage], list[ViewMessage]]:
        """Split the view into the messages before and after the input; the latter get at most half the window."""
        dialogue = (
            drop_own_tool_calls(view, own_prefix=OWN_CALL_PREFIX, count_tokens=self.scope.count_tokens)
            if turn_input.caller_options
            else select_dialogue(view, count_tokens=self.scope.count_tokens)
        )
        if not turn_input.already_stored:
            return [item for item in dialogue if recorded.position is None or item.first < recorded.position], []
        index = next((index for index in reversed(range(len(dialogue))) if dialogue[index].is_input), len(dialogue))
        since = fit_to_budget(
            dialogue[index:],
            max_tokens=budget.usable // 2,
            count_tokens=self.scope.count_tokens,
            overhead=budget.overhead_per_message,
        )
        return dialogue[:index], [item for item in since if not item.is_input]

    def _build_prompt(
        self, turn_input: TurnInput, recorded: RecordedInput, after_input: Sequence[ViewMessage], budget: PromptBudget
    ) -> PromptBuilder:
        options = turn_input.caller_options or CallerOptions()
        own_tools = list_tools(exclude=frozenset(tool.name for tool in options.request_options.tools))
        fits = (
            count_tool_tokens(RequestOptions(tools=own_tools), count_tokens=self.scope.count_tokens) * OWN_TOOLS_DIVISOR
            <= budget.usable
        )
        with_own = self.tools is not None and isinstance(self.model, ToolModel) and fits
        return PromptBuilder(
            context="",
            view=(),
            text=recorded.text,
            text_tokens=self.scope.count_tokens(recorded.text),
            overhead_per_message=budget.overhead_per_message,
            instructions=options.instructions,
            tool_messages=to_chat_messages(after_input),
            options=replace(options.request_options, tools=(*options.request_options.tools, *own_tools))
            if with_own
            else options.request_options,
        )

    def _tool_loop(
        self,
        turn_input: TurnInput,
        chat: ChatService,
        recorder: TurnRecorder,
        *,
        max_tokens: int,
        min_trust: Trust | None,
    ) -> ToolLoop:
        return ToolLoop(
            chat=chat,
            gate=self.gate,
            clock=self.scope.clock,
            tools=self.tools and self.tools.for_session(turn_input.session_id),
            caller_options=turn_input.caller_options.request_options if turn_input.caller_options else RequestOptions(),
            max_tokens=max_tokens,
            append_lines=recorder.append,
            min_trust=min_trust,
        )

    async def _prepare_without_model(
        self, turn_input: TurnInput, recorded: RecordedInput, reason: str
    ) -> _PreparedTurn:
        """Build a context to quote from, conversation included."""
        bundle = await self.contexts.build(self._context_request(turn_input, recorded, None))
        return _PreparedTurn(
            context=SessionContext(bundle=bundle, method="built", reason=NO_MODEL_REASON), degraded=reason
        )

    async def _rebuild_context(
        self, turn_input: TurnInput, recorded: RecordedInput, prepared: _PreparedTurn
    ) -> SessionContext:
        """Rebuild the context for quoting: one built for a model omits the conversation."""
        if prepared.prompt is None:
            return prepared.context
        return (await self._prepare_without_model(turn_input, recorded, "")).context

    def _context_request(
        self, turn_input: TurnInput, recorded: RecordedInput, sent_messages: SentMessages | None
    ) -> ContextBuildRequest:
        return ContextBuildRequest(
            agent_id=self.scope.agent_id,
            input=recorded.text,
            input_memory_id=recorded.memory_id,
            tokens=self.limits.context,
            adaptive_budget=True,
            frame=turn_input.frame,
            session_id=turn_input.session_id,
            sent_messages=sent_messages,
        )


def _to_reply_record(
    turn_input: TurnInput, recorded: RecordedInput, prepared: _PreparedTurn, text: str, answered_by: AnsweredBy
) -> ReplyRecord:
    reply_fingerprint = (
        turn_input.caller_options.fingerprint(text, prepared.calls)
        if turn_input.caller_options and turn_input.caller_options.fingerprint
        else None
    )
    return ReplyRecord(
        text=text,
        answered_by=answered_by,
        context=prepared.context,
        input_position=recorded.position,
        min_trust=prepared.min_trust,
        calls=prepared.calls if answered_by == "model" else (),
        fingerprint=reply_fingerprint,
    )


def _finish_reason(prepared: _PreparedTurn, degraded: str | None) -> FinishReason:
    if prepared.replies and degraded is None:
        return prepared.replies[-1].finish
    return "interrupted" if degraded and prepared.replies else "stop"


def _sum_usage(replies: Sequence[ChatReply]) -> tuple[int, int]:
    return sum(reply.input_tokens for reply in replies), sum(reply.output_tokens for reply in replies)
