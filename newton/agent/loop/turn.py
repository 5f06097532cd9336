"""One turn of a session: store the input, build the context, call the model, and store the reply."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from newton.agent.actions.action_service import ActionService
from newton.agent.compaction.service import CompactionService
from newton.agent.loop.action_gate import ActionGate, CensorCheck
from newton.agent.loop.completion import QUOTE_SETTING, TokenLimits, load_call_limits, read_call_limits
from newton.agent.loop.fallback import MemoryQuoter
from newton.agent.loop.received_reply import ReceivedReply, create_failure
from newton.agent.loop.session_lock import SessionLease
from newton.agent.loop.tool_loop import QUOTA_HINT
from newton.agent.loop.tools import AgentToolset
from newton.agent.loop.turn_debug import format_turn_debug
from newton.agent.loop.turn_preparation import TurnPreparer
from newton.agent.loop.turn_recorder import PrivateRecorder, RecordedInput, ReplyRecord, TurnRecorder
from newton.agent.loop.turn_state import PreparedTurn, RunningTurn
from newton.agent.loop.turn_status import ProgressCallback
from newton.agent.loop.turn_types import NO_USER_MESSAGE, TurnInput, TurnResult
from newton.agent.loop.turn_veil import find_fixed_reply, find_notice, veil_turn
from newton.agent.reconciliation.line_changes import NO_RECEIPT, LearningReceipt
from newton.agent.scope import AgentScope
from newton.agent.session_data.user_rules import NOTHING_HEARD, HeardRules
from newton.cognition.bundles.bundle_store import AnsweredBy
from newton.cognition.pipeline import ContextBuilder
from newton.cognition.scoring.reply_usage import echoes, restates
from newton.cognition.session_context.service import SessionContext
from newton.db.pool import Tx
from newton.dialogue.compaction.progress_events import ignore_progress
from newton.dialogue.messages import Message
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.errors import (
    ContextWindowError,
    ModelNotFoundError,
    NewtonError,
    OverloadedError,
    ProviderError,
    RefusedRequestError,
    TokenQuotaError,
)
from newton.fault_isolation import compute_part, isolate_failure, run_part
from newton.memory.hygiene import clean_text
from newton.memory.redaction.tally import count_redactions
from newton.providers.chat import ChatModel, ReplyPiece
from newton.text.questions import contains_question, remove_questions

REQUEST_ERRORS = (RefusedRequestError, ModelNotFoundError, ContextWindowError)  # of an API caller's own making
EMPTY_REPLY_MESSAGE = "The model returned an empty reply."


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRunner:
    """Runs turns for one agent: stores an input, builds its context, calls the model, and stores the reply.

    Without `tools`, the model is not offered Newton's tools. `actions` calls the tools of servers; without it, none are
    offered. With `quotes_for_clients`, an API caller gets quotes of memory in place of a reply that fails before it
    begins. `on_event` receives progress events. `read_soon` lets the model read an input that may be a rule.
    """

    scope: AgentScope
    contexts: ContextBuilder
    compaction: CompactionService
    gate: ActionGate
    model: ChatModel | None
    limits: TokenLimits
    sizes: SummarySizes = DEFAULT_SIZES
    tools: AgentToolset | None = None
    actions: ActionService | None = None
    quotes_for_clients: bool = False
    on_event: ProgressCallback = ignore_progress
    read_soon: Callable[[], None] | None = None

    async def run(self, turn_input: TurnInput) -> AsyncGenerator[ReplyPiece | TurnResult]:
        """Yield the pieces of the reply, then the TurnResult. If closed early, store the text received so far.

        Turns of a session run one at a time, across processes. Raises OverloadedError if another turn of the session
        does not end in time, or takes the session over during this one; then nothing more is stored. For an API caller,
        raises ContextWindowError, before anything is stored, if the instructions and tools are too long. If the model
        fails, an API caller gets its ProviderError, also after a part of the reply, which is stored; any other caller
        gets a TurnResult that says so.
        """
        has_input = bool(turn_input.text) or not turn_input.already_stored
        text, session_id = clean_text(turn_input.text, what="message") if has_input else "", turn_input.session_id
        if options := turn_input.caller_options:
            chat = self._preparer.create_chat(turn_input)
            await chat.check_window(text, instructions=options.instructions, options=options.request_options)
        if session_id is None:
            limits = await read_call_limits(self.gate, self._preparer.create_chat(turn_input))
            turn = RunningTurn(
                input=turn_input, recorder=PrivateRecorder(), recorded=RecordedInput(text), call_limits=limits
            )
            async with aclosing(_leave_no_traces(self)._run_to_reply(turn)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        await self.scope.reserve_storage(text, *(one.content for one in turn_input.earlier))
        lease = SessionLease(agent_id=self.scope.agent_id, session_id=session_id, deadline=turn_input.deadline)
        recorder = TurnRecorder(
            scope=self.scope, session_id=session_id, sizes=self.sizes, capacity=self.limits.working, lease=lease
        )
        begin = partial(self._begin, turn_input, text, recorder)
        async with lease.hold(self.scope.db, begin) as turn:
            runner = _leave_no_traces(self) if turn.private else self
            async with aclosing(runner._run_to_reply(turn)) as pieces:
                while (piece := await lease.run(anext(pieces, None))) is not None:
                    yield piece

    async def _begin(self, turn_input: TurnInput, text: str, recorder: TurnRecorder, tx: Tx) -> RunningTurn:
        """Store the input, and read the limits of the turn (censors, tokens used)."""
        speaker, ref = turn_input.speaker, turn_input.ref
        line = Message(role="user", content=text, said_at=self.scope.now(), name=speaker, ref=ref)
        recorded = await recorder.record_input(
            tx, text, None if turn_input.already_stored else line, turn_input.earlier
        )
        limits = await load_call_limits(tx, self.gate, self._preparer.create_chat(turn_input))
        turn = RunningTurn(input=turn_input, recorder=recorder, recorded=recorded, call_limits=limits)
        return veil_turn(turn, recorder, scope=self.scope) if recorded.is_veiled else turn

    async def _run_to_reply(self, turn: RunningTurn) -> AsyncGenerator[ReplyPiece | TurnResult]:
        """Run a turn whose input is stored. If it ends without a reply, store the reason in the session."""
        failures, texts = dict[str, str](), list[str]()
        try:
            with isolate_failure("turn", failures, passed=(NewtonError,)):
                fixed = find_fixed_reply(turn, has_model=self.model is not None)
                async with aclosing(self._reply_fixed(turn, fixed) if fixed else self._run(turn)) as pieces:
                    async for piece in pieces:
                        texts += [piece] if isinstance(piece, str) else []
                        yield piece
        except NewtonError as error:
            await self._record_failure(turn, error.what)
            raise
        if not failures:
            return
        if turn.is_answered:  # the client has the whole reply, which a later failure does not change
            missing = {**turn.missing, **failures}
            yield TurnResult(text="".join(texts), context=None, answered_by="model", missing=missing)
            return
        failure = create_failure(f"The message was not answered: {failures['turn']}.")
        await self._record_failure(turn, failure.what)
        if turn.options.quote_obstacle:
            raise failure
        yield (text := str(failure))
        missing = {**turn.missing, **failures}
        yield TurnResult(text=text, context=None, degraded=failure.what, failed=True, answered_by=None, missing=missing)

    async def _record_failure(self, turn: RunningTurn, reason: str) -> None:
        if turn.is_answered or not (turn.recorded.text or turn.input.earlier):  # nothing waits for an answer
            return
        # what prevents this, such as a lost connection, has most often caused the failure too
        with isolate_failure("failure notice", turn.missing, passed=()):
            await turn.recorder.record_failure(turn.recorded, reason, input_ref=turn.input.ref)

    async def _run(self, turn: RunningTurn) -> AsyncGenerator[ReplyPiece | TurnResult]:
        """Check the input, prepare the request, stream the reply and store it. Yield pieces, then the TurnResult."""
        check = await self._check_input(turn)
        heard = NOTHING_HEARD if check.blocks else await self._hear_rules(turn)
        prepared = await self._prepare(turn, check)
        received = _expect_reply(turn, check, prepared)
        try:
            async with aclosing(received.read(prepared, partial(find_notice, turn, prepared))) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            # A turn cancelled during streaming stores the text received so far.
            reply = _to_reply_record(turn, prepared, received.text or prepared.speech, "model")
            has_reply = await self._store_reply(turn, reply)
        degraded, reason, text = received.degraded, received.reason, received.text
        if has_reply and turn.is_api_call and isinstance(reason, NewtonError) and not prepared.is_filtered:
            await self._end_turn(turn, prepared)
            raise reason  # no finish reason of the API means that a reply was cut by a failure
        if not has_reply and _is_complete_without_text(turn, prepared, reason):
            has_reply, degraded = True, None
        author: AnsweredBy | None = "censor" if isinstance(reason, str) else "model"
        if not has_reply:
            degraded = degraded or EMPTY_REPLY_MESSAGE
            failure = reason or _to_failure(self, turn, degraded)
            prepared, text, author = await self._reply_without_model(turn, prepared, check, failure)
            yield text
            await self._store_replacement(turn, prepared, text, author)
        await self._end_turn(turn, prepared)
        yield TurnResult(
            text=text,
            receipt=await _learn_from_input(self, turn, heard, prepared),
            context=prepared.context,
            private=turn.private,
            degraded=degraded,
            images_refused=received.images_refused,
            answered_by=author,
            failed=self.model is not None and degraded is not None and author != "censor",
            calls=prepared.calls,
            finish=prepared.finish_reason(degraded),
            replies=prepared.replies,
            rules=heard,
            wills=turn.wills,
            redacted={} if turn.private else count_redactions(turn.recorded.text),
            missing={**prepared.missing, **turn.missing},
        )

    async def _reply_fixed(self, turn: RunningTurn, text: str) -> AsyncGenerator[ReplyPiece | TurnResult]:
        """Reply what was done about a will over memory, without the model."""
        yield text
        unprepared = PreparedTurn(context=None)
        await self._store_reply(turn, _to_reply_record(turn, unprepared, text, "will"))
        await self._end_turn(turn, unprepared)
        yield TurnResult(text=text, context=None, private=turn.private, answered_by="will", wills=turn.wills)

    async def _check_input(self, turn: RunningTurn) -> CensorCheck:
        """Compare the input with the censors. A check that fails blocks the input, unless there are no censors."""
        rules, missing = turn.call_limits.rules, turn.missing
        checking = self.gate.check(turn.recorded.text or turn.question or "", "input", rules=rules)
        check = await run_part("censors", checking, default=None, missing=missing)
        return check or CensorCheck((), failure=missing["censors"] if rules else None)

    async def _hear_rules(self, turn: RunningTurn) -> HeardRules:
        hearing = turn.recorder.hear_rules(turn.recorded, has_reader=self.model is not None)
        return await run_part("rules of the user", hearing, default=NOTHING_HEARD, missing=turn.missing)

    async def _prepare(self, turn: RunningTurn, check: CensorCheck) -> PreparedTurn:
        prepared = await run_part(
            "prompt", self._preparer.prepare(turn, check), default=None, missing=turn.missing
        ) or await self._prepare_after_failure(turn)
        if turn.input.on_debug:
            turn.input.on_debug(format_turn_debug(prepared, turn.missing))
        return prepared

    async def _prepare_after_failure(self, turn: RunningTurn) -> PreparedTurn:
        failure = create_failure(f"The request to the model could not be prepared: {turn.missing['prompt']}.")
        context = await self._build_full_context(turn)
        return PreparedTurn(context=context, degraded=failure.what, failure=failure)

    async def _build_full_context(self, turn: RunningTurn) -> SessionContext | None:
        building = self._preparer.build_full_context(turn)
        return await run_part("context", building, default=None, missing=turn.missing)

    async def _store_reply(self, turn: RunningTurn, reply: ReplyRecord) -> bool:
        """Store the reply, if that fails without its context, and if that fails too the reason.

        Return whether the reply has text or calls.
        """
        recorder, missing, failed = turn.recorder, turn.missing, None
        stored = await run_part("record of the turn", recorder.store_reply(reply), default=failed, missing=missing)
        if stored is None and reply.context:
            storing = recorder.store_reply(replace(reply, context=None))
            stored = await run_part("stored reply", storing, default=failed, missing=missing)
        if stored is None:
            await self._record_failure(turn, f"The reply could not be stored: {missing['record of the turn']}.")
        has_reply = bool(reply.text or reply.calls) if stored is None else stored
        turn.is_answered = turn.is_answered or has_reply
        return has_reply

    async def _store_replacement(
        self, turn: RunningTurn, prepared: PreparedTurn, text: str, author: AnsweredBy | None
    ) -> None:
        """Store a reply that no model wrote. Without an author it only says what failed: a failure notice."""
        if author is None:
            await self._record_failure(turn, text)
        else:
            await self._store_reply(turn, _to_reply_record(turn, prepared, text, author))

    async def _end_turn(self, turn: RunningTurn, prepared: PreparedTurn) -> None:
        ending = turn.recorder.end_turn(prepared.context)
        # an error of the database too costs only this: the reply is stored
        await run_part("working memory", ending, default=None, missing=turn.missing, passed=(OverloadedError,))
        compact = partial(self._compact_ahead, turn, prepared)
        compute_part("compaction ahead", compact, default=None, missing=turn.missing)

    def _compact_ahead(self, turn: RunningTurn, prepared: PreparedTurn) -> None:
        if turn.input.session_id and prepared.budget:
            self.compaction.compact_ahead(
                turn.input.session_id,
                prepared.view,
                new_tokens=sum(reply.output_tokens for reply in prepared.replies),
                max_tokens=prepared.budget.conversation,
            )

    async def _reply_without_model(
        self, turn: RunningTurn, prepared: PreparedTurn, check: CensorCheck, reason: NewtonError | str
    ) -> tuple[PreparedTurn, str, AnsweredBy | None]:
        """Return the turn with the quoted context, the reply, and its author (None if it only says what failed).

        `reason` is the message of the censor that blocked the turn, or the error of the model or of the turn. An error
        of the model is raised for an API caller, unless quotes of memory may replace the reply and there are some. If
        no model is configured, the reply may also be a sentence that memory has nothing.
        """
        if isinstance(reason, str):
            return prepared, reason, "censor"
        is_own_failure = not isinstance(reason, ProviderError)
        is_quotable = is_own_failure or (self.quotes_for_clients and not isinstance(reason, REQUEST_ERRORS))
        if turn.is_api_call and (turn.options.quote_obstacle or not is_quotable):
            raise reason
        if prepared.tool_loop:
            # A context built for a model omits the conversation.
            prepared = replace(prepared, context=await self._build_full_context(turn))
        quoting = self._quoter.quote(turn, prepared.context, reason, exempt=check.explained)
        quoted = await run_part("quotes", quoting, default=None, missing=turn.missing)
        if quoted:
            return prepared, *quoted
        has_failed_parts = not turn.missing.keys().isdisjoint(("context", "quotes"))
        if is_own_failure or (has_failed_parts and not turn.is_api_call):
            return prepared, str(reason), None
        raise reason

    @property
    def _quoter(self) -> MemoryQuoter:
        return MemoryQuoter(gate=self.gate, has_model=self.model is not None)

    @property
    def _preparer(self) -> TurnPreparer:
        return TurnPreparer(
            scope=self.scope,
            contexts=self.contexts,
            compaction=self.compaction,
            gate=self.gate,
            model=self.model,
            limits=self.limits,
            tools=self.tools,
            actions=self.actions,
            on_event=self.on_event,
        )


def _to_failure(runner: TurnRunner, turn: RunningTurn, reason: str) -> ProviderError:
    """Return the error for a turn in which no model was called, or the model's reply was empty."""
    if runner.model is None:
        return ProviderError(reason, hint=_hint_at_model(turn, quotes_for_clients=runner.quotes_for_clients))
    if reason == EMPTY_REPLY_MESSAGE:
        return ProviderError(reason, hint="Ask again.")
    return TokenQuotaError(reason, hint=QUOTA_HINT)


def _leave_no_traces(runner: TurnRunner) -> TurnRunner:
    """Return the runner of turns of which nothing is stored."""
    return replace(runner, gate=replace(runner.gate, is_recording=False), tools=None)


def _expect_reply(turn: RunningTurn, check: CensorCheck, prepared: PreparedTurn) -> ReceivedReply:
    reason = check.input_refusal or prepared.failure
    return ReceivedReply(prepared.degraded, reason, turn.missing, can_omit_images=not turn.is_api_call)


async def _learn_from_input(
    runner: TurnRunner, turn: RunningTurn, heard: HeardRules, prepared: PreparedTurn
) -> LearningReceipt:
    """Store the facts that the input states, and return what the input and its tool calls changed.

    An input that may state a rule is then read by the model, unless the model was offered the tool `rule`.
    """
    tools, memory_id, receipt = runner.tools, turn.recorded.memory_id, None
    if tools and memory_id:
        receipt = await run_part("receipt", tools.write_receipt(memory_id), default=None, missing=turn.missing)
    if runner.read_soon and heard.is_unsure and not prepared.offers("rule"):
        runner.read_soon()
    return receipt or NO_RECEIPT


def _hint_at_model(turn: RunningTurn, *, quotes_for_clients: bool) -> str:
    """Return the hint of the error for a request without a configured model: which settings would answer it."""
    if obstacle := turn.options.quote_obstacle or (None if turn.question else NO_USER_MESSAGE):
        return f"Set one of them. Quotes of memory cannot replace this reply, because {obstacle.reason}."
    if quotes_for_clients:
        return "Set one of them. Memory has no quotes for this request."
    return f"Set one of them, or set {QUOTE_SETTING} to answer with quotes of memory."


def _is_complete_without_text(turn: RunningTurn, prepared: PreparedTurn, reason: NewtonError | str | None) -> bool:
    """Return whether the model's reply has no text but is complete, so that an API caller gets it unchanged.

    The model may have used its tokens for reasoning, or have answered in another field.
    """
    if not turn.is_api_call or not prepared.replies or isinstance(reason, str):
        return False
    return reason is None or prepared.is_filtered or prepared.replies[-1].finish == "length"


def _to_reply_record(turn: RunningTurn, prepared: PreparedTurn, text: str, answered_by: AnsweredBy) -> ReplyRecord:
    fingerprint = turn.options.fingerprint
    is_plain = answered_by == "model" and not prepared.calls and prepared.min_trust is None  # else it has a mark
    return ReplyRecord(
        text=text,
        answered_by=answered_by,
        context=prepared.context,
        input_position=turn.recorded.position,
        min_trust=prepared.min_trust,
        calls=prepared.calls if answered_by == "model" else (),
        restates=is_plain
        and not contains_question(text)  # it explains what is told next
        and (restates(text, _list_told(turn, prepared)) or echoes(text, turn.recorded.text)),
        fingerprint=fingerprint(text, prepared.calls) if fingerprint else None,
    )


def _list_told(turn: RunningTurn, prepared: PreparedTurn) -> Iterator[str]:
    """Yield what a model was told of memory and by the person, without questions: an answer to one may be new."""
    yield from (item.text for item in prepared.context.bundle.items) if prepared.context else ()
    yield from (one.memory.text for one in prepared.view if one.memory)
    spoken = [one.text for one in prepared.view if one.role == "user"]
    yield from map(remove_questions, (*spoken, turn.recorded.text))
