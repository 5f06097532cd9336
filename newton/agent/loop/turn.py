"""One turn of a session: store the input, build the context, call the model, and store the reply."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial

from newton.agent.actions.action_service import ActionService
from newton.agent.compaction.service import CompactionService
from newton.agent.loop.action_gate import ActionGate, CensorCheck
from newton.agent.loop.call_limits import load_call_limits, read_call_limits
from newton.agent.loop.completion import TokenLimits
from newton.agent.loop.fallback import quote_memories, render_reply
from newton.agent.loop.session_lock import SessionLease
from newton.agent.loop.tool_loop import QUOTA_HINT, ToolLoop
from newton.agent.loop.tools import AgentToolset
from newton.agent.loop.turn_debug import format_turn_debug
from newton.agent.loop.turn_preparation import TurnPreparer
from newton.agent.loop.turn_recorder import PrivateRecorder, RecordedInput, ReplyRecord, TurnRecorder
from newton.agent.loop.turn_state import PreparedTurn, RunningTurn
from newton.agent.loop.turn_status import ProgressCallback
from newton.agent.loop.turn_types import TurnInput, TurnResult
from newton.agent.scope import AgentScope
from newton.cognition.bundles.bundle_store import AnsweredBy
from newton.cognition.pipeline import ContextBuilder
from newton.db.pool import Tx
from newton.dialogue.compaction.progress_events import ignore_progress
from newton.dialogue.messages import Message
from newton.dialogue.session_summary import DEFAULT_SIZES, SummarySizes
from newton.errors import (
    CensorError,
    ContextWindowError,
    ModelNotFoundError,
    ProviderError,
    RefusedRequestError,
    TokenQuotaError,
)
from newton.memory.hygiene import clean_text
from newton.memory.redaction.tally import count_redactions
from newton.providers.chat import (
    ChatModel,
    ReplyPiece,
)

REQUEST_ERRORS = (RefusedRequestError, ModelNotFoundError, ContextWindowError)  # of an API caller's own making
EMPTY_REPLY_MESSAGE = "The model returned an empty reply."


@dataclass(slots=True, kw_only=True)
class _ReceivedReply:
    """The reply of a model up to now.

    `degraded` says why there is no complete reply; `reason` is the failure, or the message of the censor, behind it.
    With `can_omit_images`, a model that refuses the images of the input is asked again without them; then
    `images_refused` is why.
    """

    degraded: str | None
    reason: ProviderError | str | None
    can_omit_images: bool = False
    images_refused: str | None = None
    pieces: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    async def read(self, prepared: PreparedTurn) -> AsyncGenerator[ReplyPiece]:
        """Yield the pieces of the reply, up to a failure or a censor."""
        if prepared.tool_loop is None:
            return
        try:
            async with aclosing(self._stream(prepared.tool_loop)) as stream:
                async for piece in stream:
                    self.pieces += [piece] if isinstance(piece, str) else []
                    yield piece
        except ProviderError as error:
            self.degraded, self.reason = str(error), error
        except CensorError as error:
            self.degraded, self.reason = error.what, str(error)

    async def _stream(self, tool_loop: ToolLoop) -> AsyncGenerator[ReplyPiece]:
        try:
            async with aclosing(tool_loop.stream()) as stream:
                async for piece in stream:
                    yield piece
        except RefusedRequestError as error:
            if not self.can_omit_images or tool_loop.replies or not tool_loop.omit_images():
                raise
            self.images_refused = error.what
            async with aclosing(tool_loop.stream()) as stream:
                async for piece in stream:
                    yield piece


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRunner:
    """Runs turns for one agent. Without `tools`, the model is not offered Newton's tools.

    `actions` calls the tools of servers; without it, none are offered.

    With `quotes_for_clients`, an API caller gets quotes of memory in place of a reply that fails before it begins.
    `on_event` receives what a turn waits for.
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

    async def run(self, turn_input: TurnInput) -> AsyncGenerator[ReplyPiece | TurnResult]:
        """Yield the pieces of the reply, then the TurnResult. If closed early, store the text received so far.

        Turns of a session run one at a time, across processes. Raises OverloadedError if another turn of the session
        does not end in time, or takes the session over during this one; then nothing more is stored. For an API caller,
        raises ContextWindowError, before anything is stored, if the instructions and tools are too long. If the model
        fails, an API caller gets its ProviderError, also after a part of the reply, which is stored; any other caller
        gets a TurnResult that says so.
        """
        text, session_id = clean_text(turn_input.text, what="message"), turn_input.session_id
        if options := turn_input.caller_options:
            chat = self._preparer.create_chat(turn_input)
            await chat.check_window(text, instructions=options.instructions, options=options.request_options)
        if session_id is None:
            limits = await read_call_limits(self.gate, self._preparer.create_chat(turn_input))
            turn = RunningTurn(
                input=turn_input, recorder=PrivateRecorder(), recorded=RecordedInput(text), call_limits=limits
            )
            runner = replace(self, gate=replace(self.gate, is_recording=False), tools=None)
            async with aclosing(runner._run(turn)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        await self.scope.reserve_storage(text, *(one.content for one in turn_input.earlier))
        lease = SessionLease(agent_id=self.scope.agent_id, session_id=session_id)
        recorder = TurnRecorder(
            scope=self.scope, session_id=session_id, sizes=self.sizes, capacity=self.limits.working, lease=lease
        )
        begin = partial(self._begin, turn_input, text, recorder)
        async with lease.hold(self.scope.db, begin) as turn, aclosing(self._run(turn)) as pieces:
            while (piece := await lease.run(anext(pieces, None))) is not None:
                yield piece

    async def _begin(self, turn_input: TurnInput, text: str, recorder: TurnRecorder, tx: Tx) -> RunningTurn:
        """Store the input, and read what limits the turn."""
        line = Message(role="user", content=text, said_at=self.scope.now(), ref=turn_input.ref)
        recorded = await recorder.record_input(
            tx, text, None if turn_input.already_stored else line, turn_input.earlier
        )
        limits = await load_call_limits(tx, self.gate, self._preparer.create_chat(turn_input))
        return RunningTurn(input=turn_input, recorder=recorder, recorded=recorded, call_limits=limits)

    async def _run(self, turn: RunningTurn) -> AsyncGenerator[ReplyPiece | TurnResult]:
        recorder = turn.recorder
        check = await self.gate.check(turn.question or "", "input", rules=turn.call_limits.rules)
        proposed = () if check.blocks else await recorder.propose_identity_changes(turn.recorded)
        prepared = await self._prepare(turn, check)
        received = _ReceivedReply(
            degraded=prepared.degraded, reason=check.input_refusal, can_omit_images=not turn.is_api_call
        )
        try:
            async with aclosing(received.read(prepared)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            # A turn cancelled during streaming stores the text received so far.
            reply = _to_reply_record(turn, prepared, received.text or prepared.speech, "model")
            has_reply = await recorder.store_reply(reply)
        degraded, reason, text = received.degraded, received.reason, received.text
        if has_reply and turn.is_api_call and isinstance(reason, ProviderError) and not prepared.is_filtered:
            await recorder.end_turn(prepared.context)
            raise reason  # no finish reason of the API means that a reply was cut by a failure
        if not has_reply and _is_complete_without_text(turn, prepared, reason):
            has_reply, degraded = True, None
        author: AnsweredBy = "censor" if isinstance(reason, str) else "model"
        if not has_reply:
            degraded = degraded or EMPTY_REPLY_MESSAGE
            failure = reason or self._to_failure(degraded)
            prepared, text, author = await self._reply_without_model(turn, prepared, check, failure)
            yield text
            await recorder.store_reply(_to_reply_record(turn, prepared, text, author))
        await recorder.end_turn(prepared.context)
        self._compact_ahead(turn, prepared)
        yield TurnResult(
            text=text,
            context=prepared.context,
            private=turn.private,
            degraded=degraded,
            images_refused=received.images_refused,
            answered_by=author,
            failed=self.model is not None and degraded is not None and author != "censor",
            calls=prepared.calls,
            finish=prepared.finish_reason(degraded),
            replies=prepared.replies,
            proposed=proposed,
            redacted={} if turn.private else count_redactions(turn.recorded.text),
        )

    async def _prepare(self, turn: RunningTurn, check: CensorCheck) -> PreparedTurn:
        prepared = await self._preparer.prepare(turn, check)
        if turn.input.on_debug:
            turn.input.on_debug(format_turn_debug(prepared))
        return prepared

    def _compact_ahead(self, turn: RunningTurn, prepared: PreparedTurn) -> None:
        if turn.input.session_id and prepared.budget:
            self.compaction.compact_ahead(
                turn.input.session_id,
                prepared.view,
                new_tokens=sum(reply.output_tokens for reply in prepared.replies),
                max_tokens=prepared.budget.conversation,
            )

    async def _reply_without_model(
        self, turn: RunningTurn, prepared: PreparedTurn, check: CensorCheck, reason: ProviderError | str
    ) -> tuple[PreparedTurn, str, AnsweredBy]:
        """Return the turn with the context that is quoted, the reply, and its author: "memory" or "censor".

        `reason` is the message of the censor that blocked the turn, or the model's failure. For an API caller, the
        failure is raised, unless quotes may replace the reply and memory has some. If no model is configured, the
        quotes may also be a sentence that memory has nothing.
        """
        if isinstance(reason, str):
            return prepared, reason, "censor"
        is_quotable = self.quotes_for_clients and turn.options.accepts_quotes and not isinstance(reason, REQUEST_ERRORS)
        if turn.is_api_call and not is_quotable:
            raise reason
        if prepared.tool_loop:
            # A context built for a model omits the conversation.
            prepared = replace(prepared, context=await self._preparer.build_full_context(turn))
        if prepared.context is None:
            raise reason
        bundle = prepared.context.bundle
        quotes = quote_memories(bundle)
        if turn.is_api_call and not quotes and self.model is not None:
            raise reason
        allowed = await self.gate.omit_blocked(quotes, exempt=check.explained)
        reply = render_reply(allowed or quotes, bundle, is_stored=turn.private is None)
        if turn.is_api_call:  # its clients show nothing but the text
            reply = f"({reason.what} This answer only quotes memory.)\n\n{reply}"
        try:
            await self.gate.check_reply(reply, exempt=check.explained)
        except CensorError as error:
            return prepared, str(error), "censor"
        return prepared, reply, "memory"

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

    def _to_failure(self, reason: str) -> ProviderError:
        """Return the error for a turn in which no model was called, or the model's reply was empty."""
        if self.model is None:
            return ProviderError(reason, hint="Set OPENAI_API_KEY, ANTHROPIC_API_KEY or OPENAI_BASE_URL.")
        if reason == EMPTY_REPLY_MESSAGE:
            return ProviderError(reason, hint="Ask again.")
        return TokenQuotaError(reason, hint=QUOTA_HINT)


def _is_complete_without_text(turn: RunningTurn, prepared: PreparedTurn, reason: ProviderError | str | None) -> bool:
    """Return whether the model's reply has no text but is complete, so that an API caller gets it unchanged.

    The model may have used its tokens for reasoning, or have answered in another field.
    """
    if not turn.is_api_call or not prepared.replies or isinstance(reason, str):
        return False
    return reason is None or prepared.is_filtered or prepared.replies[-1].finish == "length"


def _to_reply_record(turn: RunningTurn, prepared: PreparedTurn, text: str, answered_by: AnsweredBy) -> ReplyRecord:
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
