"""One turn of a session: store the input, build the context, call the model, store the reply."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from newton.agent.compaction.service import CompactionService
from newton.agent.loop.action_gate import ActionGate, CensorCheck
from newton.agent.loop.completion import ChatService, PromptBudget, TokenLimits
from newton.agent.loop.fallback import quote_memories, render_quotes
from newton.agent.loop.prompt import (
    PromptBuilder,
    add_attachment_tokens,
    count_tool_tokens,
    drop_own_tool_calls,
    exceeds_tokens,
    find_sent_messages,
    select_dialogue,
    to_chat_messages,
)
from newton.agent.loop.session_lock import lease_session
from newton.agent.loop.tool_loop import OWN_CALL_PREFIX, QUOTA_HINT, ToolLoop
from newton.agent.loop.tools import EXPAND_TOOL, AgentToolset, list_tools
from newton.agent.loop.turn_recorder import RecordedInput, ReplyRecord, TurnRecorder
from newton.agent.loop.turn_types import CENSOR_MESSAGE, CallerOptions, TurnInput, TurnResult
from newton.agent.scope import AgentScope
from newton.cognition.bundles.bundle_store import AnsweredBy
from newton.cognition.pipeline import ContextBuilder
from newton.cognition.request import ContextBuildRequest, SentMessages
from newton.cognition.session_context.service import SessionContext, SessionContextService
from newton.dialogue import log
from newton.dialogue.compaction.view_budget import fit_to_budget
from newton.dialogue.messages import Message
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.dialogue.view import ViewMessage
from newton.errors import (
    CensorError,
    ContextWindowError,
    ModelNotFoundError,
    ProviderError,
    RefusedRequestError,
    TokenQuotaError,
)
from newton.memory.hygiene import clean_text
from newton.memory.memory import Trust, lowest_known_trust
from newton.providers.chat import (
    ChatModel,
    ChatReply,
    FinishReason,
    ReplyPiece,
    RequestOptions,
    ToolCall,
    ToolModel,
)

REQUEST_ERRORS = (RefusedRequestError, ModelNotFoundError, ContextWindowError)  # of an API caller's own making
EMPTY_REPLY_MESSAGE = "The model returned an empty reply."
NO_MODEL_REASON = "no model was called, so the whole memory was searched for memories to quote"
OWN_TOOLS_DIVISOR = 8  # Newton's tools are offered only if they take at most this part of the window


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """A turn whose input is stored."""

    input: TurnInput
    recorder: TurnRecorder
    recorded: RecordedInput

    @property
    def options(self) -> CallerOptions:
        return self.input.caller_options or CallerOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class _PreparedTurn:
    """The context of a turn and the tool loop to run; `degraded` says why there is no tool loop."""

    context: SessionContext
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

    @property
    def speech(self) -> str:
        """Return what the model said outside of its text."""
        return self.replies[-1].speech if self.replies else ""

    def finish_reason(self, degraded: str | None) -> FinishReason:
        if not self.replies:
            return "stop"
        return "interrupted" if degraded else self.replies[-1].finish


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

    async def run(self, turn_input: TurnInput) -> AsyncGenerator[ReplyPiece | TurnResult]:
        """Yield the pieces of the reply, then the TurnResult. If closed early, store the text received until then.

        Turns of a session run one at a time across processes. Raises OverloadedError when the current turn of the
        session does not end in time, or when another turn takes over the lease; nothing more is stored then. For an
        API caller, raises ContextWindowError before anything is stored if the instructions and tools do not fit, and
        the ProviderError of a failed model unless quotes of memory may stand in for its reply.
        """
        text, session_id = clean_text(turn_input.text, what="message"), turn_input.session_id
        await self._check_window(turn_input, text)
        async with lease_session(self.scope.db, agent_id=self.scope.agent_id, session_id=session_id) as lease:
            recorder = TurnRecorder(
                scope=self.scope, session_id=session_id, sizes=self.sizes, capacity=self.limits.working, lease=lease
            )
            line = Message(role="user", content=text, said_at=self.scope.now(), ref=turn_input.ref)
            recorded = await lease.run_to_completion(
                recorder.record_input(text, None if turn_input.already_stored else line, turn_input.earlier)
            )
            turn = _Turn(input=turn_input, recorder=recorder, recorded=recorded)
            async with aclosing(self._run(turn)) as pieces:
                while (piece := await lease.run(anext(pieces, None))) is not None:
                    yield piece

    async def _run(self, turn: _Turn) -> AsyncGenerator[ReplyPiece | TurnResult]:
        recorder = turn.recorder
        check = await self.gate.check(turn.recorded.text, "input")
        proposed = () if check.blocks else await recorder.propose_identity_changes(turn.recorded)
        prepared = await self._prepare(turn, check)
        degraded, pieces = prepared.degraded, list[str]()
        # why there is no complete reply: a failure, or the message of a censor
        reason: ProviderError | str | None = check.input_refusal
        try:
            if prepared.tool_loop:
                async with aclosing(prepared.tool_loop.stream()) as stream:
                    async for piece in stream:
                        pieces += [piece] if isinstance(piece, str) else []
                        yield piece
        except ProviderError as error:
            degraded, reason = str(error), error
        except CensorError as error:
            degraded, reason = error.what, str(error)
        finally:
            # A turn cancelled during streaming stores the text received so far.
            reply = _to_reply_record(turn, prepared, "".join(pieces) or prepared.speech, "model")
            has_reply = await recorder.lease.run_to_completion(recorder.record_reply(reply))
        if not has_reply and _is_complete_without_text(turn, prepared, reason):
            has_reply, degraded = True, None
        author: AnsweredBy = "censor" if isinstance(reason, str) else "model"
        if not has_reply:
            degraded = degraded or EMPTY_REPLY_MESSAGE
            prepared, pieces, author = await self._reply_without_model(
                turn, prepared, check, reason or self._to_failure(degraded)
            )
            yield pieces[0]
            await recorder.record_reply(_to_reply_record(turn, prepared, pieces[0], author))
        await recorder.record_context(prepared.context.bundle)
        yield TurnResult(
            text="".join(pieces),
            context=prepared.context,
            degraded=degraded,
            quoted=author == "memory",
            failed=self.model is not None and degraded is not None and author != "censor",
            forbidden=author == "censor",
            calls=prepared.calls,
            finish=prepared.finish_reason(degraded),
            replies=prepared.replies,
            proposed=proposed,
        )

    async def _reply_without_model(
        self, turn: _Turn, prepared: _PreparedTurn, check: CensorCheck, reason: ProviderError | str
    ) -> tuple[_PreparedTurn, list[str], AnsweredBy]:
        """Return the turn with the context to quote, the reply, and whether it quotes memory or a censor blocks it.

        `reason` is the message of a censor that blocked the turn, or the failure of the model. For an API caller, that
        failure is raised when nothing can be quoted, or when quotes may not stand in for the reply. Without a model,
        memory is all there is, also if it knows nothing.
        """
        if isinstance(reason, str):
            return prepared, [reason], "censor"
        is_api_call = turn.input.caller_options is not None
        if is_api_call and (isinstance(reason, REQUEST_ERRORS) or not turn.options.accepts_quotes):
            raise reason
        if prepared.tool_loop:
            # A context built for a model omits the conversation.
            prepared = replace(prepared, context=await self._build_full_context(turn))
        bundle = prepared.context.bundle
        quotes = quote_memories(bundle)
        if is_api_call and not quotes and self.model is not None:
            raise reason
        allowed = await self.gate.omit_blocked(quotes, exempt=check.explained)
        reply = render_quotes(allowed or quotes, bundle)
        if is_api_call:  # its clients show nothing but the text
            reply = f"({reason.what} This answer only quotes memory.)\n\n{reply}"
        try:
            await self.gate.check_reply(reply, exempt=check.explained)
        except CensorError as error:
            return prepared, [str(error)], "censor"
        return prepared, [reply], "memory"

    async def _prepare(self, turn: _Turn, check: CensorCheck) -> _PreparedTurn:
        """Build the context and the model request, or the context alone when no model may be called."""
        if check.blocks:
            return await self._prepare_without_model(turn, CENSOR_MESSAGE)
        chat = ChatService(scope=self.scope, model=self.model, limits=self._limit_reply(turn.options))
        count_tokens, session_id = self.scope.count_tokens, turn.input.session_id
        if reason := await chat.get_refusal_reason(count_tokens(turn.recorded.text)):
            return await self._prepare_without_model(turn, reason)
        budget = await chat.get_budget()
        full_view = await self.compaction.load_view(session_id, max_tokens=budget.conversation)
        before, after_input = self._split_view(turn, full_view, budget)
        view = full_view if turn.input.already_stored else _select_before_input(full_view, turn.recorded)
        prompt = self._build_prompt(turn, after_input, budget)
        conversation = budget.fit_conversation(
            before, prompt.text_tokens + prompt.overhead_tokens(count_tokens=count_tokens), count_tokens=count_tokens
        )
        end = max((item.last for item in view), default=-1)
        sent = find_sent_messages(session_id, [*conversation, *after_input], end=end)
        sent = replace(sent, inherited_ranges=tuple(turn.recorded.ancestors))
        context = await self._build_context(turn, prompt, budget, sent)
        prompt = replace(prompt, context=context.bundle.text, view=conversation)
        request = prompt.build(budget.usable, count_tokens=count_tokens)
        model_tokens = budget.calibration.to_model_tokens(request.tokens, len(request.messages))
        if reason := await chat.get_refusal_reason(model_tokens):
            return await self._prepare_without_model(turn, reason)
        async with self.scope.transaction() as tx:
            quarantined = await log.find_quarantined_trust(
                tx, [*conversation, *after_input], agent_id=self.scope.agent_id, session_id=session_id
            )
        tool_loop = ToolLoop(
            chat=chat,
            gate=self.gate,
            tools=self.tools and self.tools.for_session(session_id),
            prompt=prompt,
            request=request,
            caller_options=turn.options.request_options,
            max_tokens=budget.usable,
            append_lines=turn.recorder.append,
            min_trust=lowest_known_trust((*quarantined, *context.bundle.external_trusts)),
            exempt_censors=check.explained,
        )
        return _PreparedTurn(context=context, tool_loop=tool_loop)

    def _limit_reply(self, options: CallerOptions) -> TokenLimits:
        return replace(self.limits, reply=options.max_reply_tokens or self.limits.reply)

    async def _check_window(self, turn_input: TurnInput, text: str) -> None:
        """Raise ContextWindowError if the caller's instructions and tools leave too little of the window."""
        options, count_tokens = turn_input.caller_options, self.scope.count_tokens
        if self.model is None or options is None or not (options.instructions or options.request_options.tools):
            return
        budget = await ChatService(scope=self.scope, model=self.model, limits=self._limit_reply(options)).get_budget()
        prompt = PromptBuilder(
            context="",
            view=(),
            text=text,
            text_tokens=count_tokens(text),
            overhead_per_message=budget.overhead_per_message,
            instructions=options.instructions,
            options=options.request_options,
        )
        if (
            exceeds_tokens(options.instructions, budget.usable, count_tokens=count_tokens)
            or prompt.required_tokens(budget.usable, count_tokens=count_tokens) > budget.usable
        ):
            what = f"The system message and the tools do not fit into the {budget.usable:,} tokens of a prompt."
            hint = "Shorten them, or set NEWTON_WINDOW_TOKENS to the size of the model's context window."
            raise ContextWindowError(what, hint=hint, param="messages")

    def _to_failure(self, reason: str) -> ProviderError:
        """Return the error of a turn in which no model was called, or answered nothing."""
        if self.model is None:
            return ProviderError(reason, hint="Set OPENAI_API_KEY or OPENAI_BASE_URL.")
        if reason == EMPTY_REPLY_MESSAGE:
            return ProviderError(reason, hint="Ask again.")
        return TokenQuotaError(reason, hint=QUOTA_HINT)

    def _split_view(
        self, turn: _Turn, view: Sequence[ViewMessage], budget: PromptBudget
    ) -> tuple[list[ViewMessage], list[ViewMessage]]:
        """Split the view into the messages before and after the input; the latter get at most half the window."""
        dialogue = (
            drop_own_tool_calls(view, own_prefix=OWN_CALL_PREFIX, count_tokens=self.scope.count_tokens)
            if turn.input.caller_options
            else select_dialogue(view, count_tokens=self.scope.count_tokens)
        )
        dialogue = add_attachment_tokens(dialogue, turn.options.attachments)
        if not turn.input.already_stored:
            return _select_before_input(dialogue, turn.recorded), []
        index = next((index for index in reversed(range(len(dialogue))) if dialogue[index].is_input), len(dialogue))
        after = fit_to_budget(
            dialogue[index:],
            max_tokens=budget.usable // 2,
            count_tokens=self.scope.count_tokens,
            overhead=budget.overhead_per_message,
        )
        return dialogue[:index], [item for item in after if not item.is_input]

    def _build_prompt(self, turn: _Turn, after_input: Sequence[ViewMessage], budget: PromptBudget) -> PromptBuilder:
        """Build a prompt without context and view; offer Newton's tools if the model can call them and they fit."""
        options, count_tokens = turn.options.request_options, self.scope.count_tokens
        own_tools = list_tools(exclude=frozenset(tool.name for tool in options.tools))
        tool_tokens = count_tool_tokens(RequestOptions(own_tools=own_tools), count_tokens=count_tokens)
        can_call = self.tools and turn.options.offers_own_tools and isinstance(self.model, ToolModel)
        if can_call and tool_tokens * OWN_TOOLS_DIVISOR <= budget.usable:
            options = replace(options, own_tools=own_tools)
        return PromptBuilder(
            context="",
            view=(),
            text=turn.recorded.text,
            text_tokens=count_tokens(turn.recorded.text),
            overhead_per_message=budget.overhead_per_message,
            instructions=turn.options.instructions,
            tool_messages=to_chat_messages(after_input),
            options=options,
            attachments=turn.options.attachments,
            input_parts=turn.options.input_parts,
        )

    async def _build_context(
        self, turn: _Turn, prompt: PromptBuilder, budget: PromptBudget, sent: SentMessages
    ) -> SessionContext:
        """Return the context for a prompt, within what its other parts leave of the window."""
        left = budget.usable - prompt.required_tokens(budget.usable, count_tokens=self.scope.count_tokens)
        request = self._context_request(turn, tokens=max(min(budget.context, left), 1), sent=sent)
        request = replace(request, item_ids=_offers_expand(prompt.options))
        return await SessionContextService(builder=self.contexts).get_for_turn(request)

    async def _prepare_without_model(self, turn: _Turn, reason: str) -> _PreparedTurn:
        return _PreparedTurn(context=await self._build_full_context(turn), degraded=reason)

    async def _build_full_context(self, turn: _Turn) -> SessionContext:
        """Build the context that a reply without a model quotes. It includes memories of this conversation."""
        bundle = await self.contexts.build(self._context_request(turn, tokens=self.limits.context))
        return SessionContext(bundle=bundle, method="built", reason=NO_MODEL_REASON)

    def _context_request(self, turn: _Turn, *, tokens: int, sent: SentMessages | None = None) -> ContextBuildRequest:
        return ContextBuildRequest(
            agent_id=self.scope.agent_id,
            input=turn.recorded.text,
            input_memory_id=turn.recorded.memory_id,
            tokens=tokens,
            adaptive_budget=True,
            frame=turn.input.frame,
            session_id=turn.input.session_id,
            sent_messages=sent,
        )


def _offers_expand(options: RequestOptions) -> bool:
    """Return whether the model may call Newton's `expand`: not when the caller has a tool of this name."""
    return EXPAND_TOOL in {tool.name for tool in options.own_tools}


def _is_complete_without_text(turn: _Turn, prepared: _PreparedTurn, reason: ProviderError | str | None) -> bool:
    """Return whether the model completed a reply without text, which an API caller gets as it is.

    It may have spent its tokens on reasoning, or have answered in another field.
    """
    if turn.input.caller_options is None or not prepared.replies or isinstance(reason, str):
        return False
    return reason is None or prepared.replies[-1].finish == "length"


def _select_before_input(view: Sequence[ViewMessage], recorded: RecordedInput) -> list[ViewMessage]:
    return [item for item in view if recorded.position is None or item.first < recorded.position]


def _to_reply_record(turn: _Turn, prepared: _PreparedTurn, text: str, answered_by: AnsweredBy) -> ReplyRecord:
    fingerprint = turn.options.fingerprint
    return ReplyRecord(
        text=text,
        answered_by=answered_by,
        context=prepared.context,
        input_position=turn.recorded.position,
        min_trust=prepared.min_trust,
        calls=prepared.calls if answered_by == "model" else (),
        fingerprint=fingerprint(text, prepared.calls) if fingerprint else None,
    )
