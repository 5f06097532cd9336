"""Storage of a turn: its messages, the context of its reply, and the working memory of the session."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from newton.agent.loop.session_lock import SessionLease
from newton.agent.loop.tool_loop import INTERRUPTED, to_tool_line
from newton.agent.reconciliation.unkept_lines import hide_replies
from newton.agent.scope import AgentScope
from newton.agent.session_data.user_rules import NOTHING_HEARD, HeardRules, RuleLine, hear_rules
from newton.agent.wills.carried_wills import WillReceipt, carry_out
from newton.cognition import working_set
from newton.cognition.bundles import bundle_store
from newton.cognition.bundles.bundle_store import AnsweredBy, TurnRecord
from newton.cognition.session_context.service import SessionContext
from newton.cognition.working_set import SessionScope
from newton.db.pool import Tx
from newton.dialogue import log, sessions, veils
from newton.dialogue.artifacts import ArtifactWriter
from newton.dialogue.log import AncestorRange
from newton.dialogue.messages import Message, StoredMessage, derive_failure_ref
from newton.dialogue.session_summary import SummarySizes
from newton.heart.events import event_store
from newton.heart.events.event_store import NewEvent
from newton.heart.events.tool_results import ToolOutcome, to_event
from newton.heart.identity.identity_store import MessageRef
from newton.heart.identity.user_rules import RuleSource
from newton.heart.lifecycle.engine import LifecycleContext
from newton.ids import new_id
from newton.memory import store
from newton.memory.hygiene import clean_model_text
from newton.memory.memory import Trust, WriteContext
from newton.memory.tombstones import is_redacted
from newton.providers.chat import ToolCall


class RecordedInput(NamedTuple):
    """A user message with its position in the session and its memory; both are None if the turn did not store it.

    In a branch, `ancestors` are the ranges of messages inherited from other sessions. With `is_veiled`, nothing of the
    message and of the turn may be kept; `receipt` is what became of a will that it states.
    """

    text: str
    position: int | None = None
    memory_id: UUID | None = None
    ancestors: Sequence[AncestorRange] = ()
    is_veiled: bool = False
    receipt: WillReceipt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRecord:
    """A reply to store. `calls` are the tool calls that the caller must run.

    `min_trust` is the lowest trust tier of external text in the prompt, and `restates` marks a reply that says only
    what is in it (see `Message`).
    """

    text: str
    answered_by: AnsweredBy
    context: SessionContext | None
    input_position: int | None
    min_trust: Trust | None = None
    calls: tuple[ToolCall, ...] = ()
    restates: bool = False
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecorder:
    """Stores the messages of one turn. `capacity` is the maximum size of the working memory, in tokens.

    `missing` maps parts of the turn that failed to reasons.
    If another turn has taken the session over, every method raises OverloadedError and writes nothing.
    """

    scope: AgentScope
    session_id: UUID
    sizes: SummarySizes
    capacity: int
    lease: SessionLease
    missing: dict[str, str] = field(default_factory=dict[str, str])

    async def append(self, lines: Sequence[Message]) -> Sequence[StoredMessage]:
        """Store messages; return those that were not stored before, with their positions."""
        async with self._write() as (tx, ctx):
            return (await self._append_lines(tx, ctx, lines))[0]

    async def record_result(self, outcome: ToolOutcome, trust: Trust = "tool") -> None:
        """Store a tool call with its result as an event of the session, so that later turns can take account of it.

        `trust` is the trust tier of the result.
        """
        async with self._write() as (tx, ctx):
            event = to_event(outcome, occurred_at=ctx.now)
            new = NewEvent(
                ref=str(new_id()), event=event, session_id=self.session_id, is_tool_result=True, output_trust=trust
            )
            await event_store.record_events(tx, [new], ctx=ctx)

    async def record_input(self, tx: Tx, text: str, line: Message | None, earlier: Sequence[Message]) -> RecordedInput:
        """Store the `earlier` messages and the input `line`, if any; return the input with its position and memory.

        A stored tool call that has no result gets the result "interrupted". `tx` is the transaction that acquired the
        lease.
        """
        ctx, answered_ids = self.scope.write_context(), {message.tool_call_id for message in earlier}
        start = await log.read_turn_start(tx, agent_id=ctx.agent_id, session_id=self.session_id)
        unanswered = [call for call in start.open_calls if call.id not in answered_ids]
        interrupted = [to_tool_line(call, INTERRUPTED, said_at=ctx.now) for call in unanswered]
        if interrupted or earlier:
            stored, _, _ = await self._append_lines(
                tx, ctx, [*interrupted, *(replace(one, is_retold=True) for one in earlier)]
            )
            payload = {"session_id": str(self.session_id), "messages": len(stored)}
            self.scope.publish("session.appended", payload)
        if line is None:
            held = await veils.read_session_will(tx, session_id=self.session_id, agent_id=ctx.agent_id)
            return RecordedInput(text, ancestors=start.ancestors, is_veiled=held.covers_reply)
        stored, memory_id, receipts = await self._append_lines(tx, ctx, [line])
        is_veiled, receipt = (
            any(is_redacted(one.message.content) for one in stored),
            next(iter(receipts.values()), None),
        )
        return RecordedInput(text, _last_position(stored), memory_id, start.ancestors, is_veiled, receipt)

    async def hear_rules(self, recorded: RecordedInput, *, has_reader: bool) -> HeardRules:
        """Put the rules that the user's message states in force, end those that it lifts, and return these changes.

        Return no changes if the turn did not store the message. `has_reader` means that a model will read it too.
        """
        if recorded.position is None:
            return NOTHING_HEARD
        source = RuleSource(message=MessageRef(self.session_id, recorded.position), said_at=self.scope.now())
        line = RuleLine(recorded.text, source, self.scope.trust)
        return await hear_rules(self.scope, [line], self._write, has_reader=has_reader)

    async def store_reply(self, reply: ReplyRecord) -> bool:
        """Store the reply as `record_reply` does, and complete this even if the turn is cancelled."""
        return await self.lease.run_to_completion(self.record_reply(reply))

    async def record_reply(self, reply: ReplyRecord) -> bool:
        """Store the reply; return False, and store nothing, if it has neither text nor calls.

        A reply that no model wrote is stored as a notice: it is not sent to models, and no facts are extracted from it.
        A reply that may repeat external text gets at most the trust tier of that text.
        """
        text = clean_model_text(reply.text)
        if not text and not reply.calls:
            return False
        line = Message(
            role="assistant",
            content=text,
            said_at=self.scope.now(),
            ref=reply.fingerprint,
            is_notice=reply.answered_by != "model",
            min_trust=reply.min_trust or "agent",  # known: the prompt held nothing of a lower trust
            calls=reply.calls,
            restates=reply.restates,
        )
        async with self._write() as (tx, ctx):
            stored, _, _ = await self._append_lines(tx, ctx, [line])
            position = _last_position(stored)
            if reply.input_position is not None and position is not None and reply.context:
                turn = TurnRecord(
                    agent_id=ctx.agent_id,
                    session_id=self.session_id,
                    bundle_id=reply.context.bundle.bundle_id,
                    created_at=ctx.now,
                    method=reply.context.method,
                    reason=reply.context.reason,
                    answered_by=reply.answered_by,
                    input_position=reply.input_position,
                    reply_position=position,
                )
                await bundle_store.insert_turn(tx, turn)
            payload = {"session_id": str(self.session_id), "position": position, "answered_by": reply.answered_by}
            self.scope.publish("turn.completed", payload)
        return True

    async def record_failure(self, recorded: RecordedInput, reason: str, *, input_ref: str | None = None) -> None:
        """Store why a message has no reply, as a notice after it; once, if the same message fails again that way.

        `input_ref` identifies the message when it is sent again; without it, its position does.
        """
        ref = derive_failure_ref(input_ref or str(recorded.position), recorded.text, reason)
        notice = Message(role="assistant", content=reason, said_at=self.scope.now(), ref=ref, is_notice=True)
        async with self._write() as (tx, ctx):
            stored, _, _ = await self._append_lines(tx, ctx, [notice])
            if stored:
                payload = {"session_id": str(self.session_id), "position": _last_position(stored)}
                self.scope.publish("turn.failed", payload)

    async def end_turn(self, context: SessionContext | None) -> None:
        """Record that the memories of the context were used, update the summary of the session, and release the lease.

        Nothing may be stored afterwards.
        """
        async with self.scope.write() as (tx, ctx):
            await self.lease.release_in(tx)
            memory_ids = [item.memory_id for item in context.bundle.items] if context else []
            async for agent_id in self.scope.visit_levels(tx):
                await store.record_access(tx, memory_ids, agent_id=agent_id, now=ctx.now)
            await working_set.add_memories(tx, memory_ids, scope=self._session_scope(ctx))
            await ArtifactWriter(session_id=self.session_id, ctx=ctx, sizes=self.sizes).update(tx)

    async def _append_lines(
        self, tx: Tx, ctx: LifecycleContext, lines: Sequence[Message]
    ) -> tuple[Sequence[StoredMessage], UUID | None, Mapping[int, WillReceipt]]:
        """Store the messages that are not stored yet.

        Return them, the id of the last one's memory, and what became of wills by position.
        """
        session_id = self.session_id
        capped = sessions.cap_trust(lines, ctx.trust)
        stored = await sessions.append(
            tx, capped, session_id=session_id, ctx=ctx, sizes=self.sizes, missing=self.missing
        )
        positions = [message.position for message in stored]
        memory_ids = await working_set.add_messages(tx, positions, scope=self._session_scope(ctx))
        await hide_replies(tx, stored, ctx=ctx)
        receipts = await carry_out(tx, stored, embedder=self.scope.embedder, ctx=ctx)
        return stored, memory_ids[-1] if memory_ids else None, receipts

    def _session_scope(self, ctx: WriteContext) -> SessionScope:
        return SessionScope(agent_id=ctx.agent_id, session_id=self.session_id, now=ctx.now, capacity=self.capacity)

    @asynccontextmanager
    async def _write(self) -> AsyncGenerator[tuple[Tx, LifecycleContext]]:
        """Open a transaction that renews the lease; yield it with a write context."""
        async with self.scope.write() as (tx, ctx):
            await self.lease.renew(tx)
            yield tx, ctx


@dataclass(frozen=True, slots=True)
class PrivateRecorder:
    """The recorder of a private turn: it has the methods of TurnRecorder that such a turn calls, and stores nothing."""

    missing: dict[str, str] = field(default_factory=dict[str, str])

    async def append(self, lines: Sequence[Message]) -> Sequence[StoredMessage]:
        return ()

    async def record_result(self, outcome: ToolOutcome, trust: Trust = "tool") -> None: ...

    async def hear_rules(self, recorded: RecordedInput, *, has_reader: bool) -> HeardRules:
        return NOTHING_HEARD

    async def store_reply(self, reply: ReplyRecord) -> bool:
        return bool(clean_model_text(reply.text) or reply.calls)

    async def record_failure(self, recorded: RecordedInput, reason: str, *, input_ref: str | None = None) -> None: ...

    async def end_turn(self, context: SessionContext | None) -> None: ...


@dataclass(frozen=True, slots=True)
class VeiledRecorder(PrivateRecorder):
    """The recorder of a turn that is off the record: it stores that there was a reply, and ends the turn."""

    recorder: TurnRecorder | None = None

    async def store_reply(self, reply: ReplyRecord) -> bool:
        assert self.recorder, "a veiled turn has a session"
        return await self.recorder.store_reply(replace(reply, context=None, input_position=None))

    async def end_turn(self, context: SessionContext | None) -> None:
        assert self.recorder, "a veiled turn has a session"
        await self.recorder.end_turn(None)


def _last_position(messages: Sequence[StoredMessage]) -> int | None:
    return messages[-1].position if messages else None
