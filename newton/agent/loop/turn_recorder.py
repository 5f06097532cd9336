"""Storage of a turn: messages, the context they were answered from, and working memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.agent.loop.session_lock import SessionLease
from newton.agent.loop.tool_loop import INTERRUPTED, to_tool_line
from newton.agent.scope import AgentScope
from newton.agent.services.identity import detect_proposals
from newton.cognition.bundles import bundle_store
from newton.cognition.bundles.bundle import Bundle
from newton.cognition.bundles.bundle_store import AnsweredBy, TurnRecord
from newton.cognition.session_context.service import SessionContext
from newton.cognition.working_set import working_set_store
from newton.cognition.working_set.working_set_store import SessionScope
from newton.db.pool import Tx
from newton.dialogue import leases, log, sessions
from newton.dialogue.artifacts import ArtifactWriter
from newton.dialogue.log import AncestorRange
from newton.dialogue.messages import Message, StoredMessage
from newton.dialogue.session_summary import SummarySizes
from newton.heart.identity.identity_store import IdentityEdit, MessageRef, TenetProposal
from newton.memory import store
from newton.memory.hygiene import clean_model_text
from newton.memory.memory import Trust
from newton.providers.chat import ToolCall


class RecordedInput(NamedTuple):
    """A stored user message: its position and memory. Both are None when it was stored before, identical and at the
    same time. For a branch, `ancestors` are the inherited ranges."""

    text: str
    position: int | None = None
    memory_id: UUID | None = None
    ancestors: Sequence[AncestorRange] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRecord:
    """A reply to store. `calls` are for the caller to run; `min_trust` is the lowest trust of external text it may
    repeat."""

    text: str
    answered_by: AnsweredBy
    context: SessionContext
    input_position: int | None
    min_trust: Trust | None = None
    calls: tuple[ToolCall, ...] = ()
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecorder:
    """Stores the messages of one turn. `capacity` is the size of working memory, in tokens.

    Every method raises OverloadedError and writes nothing when `lease` is lost.
    """

    scope: AgentScope
    session_id: UUID
    sizes: SummarySizes
    capacity: int
    lease: SessionLease

    async def append(self, lines: Sequence[Message]) -> None:
        async with self.scope.transaction() as tx:
            await self.lease.renew(tx)
            await self._append_lines(tx, lines)

    async def record_input(self, text: str, line: Message | None, earlier: Sequence[Message]) -> RecordedInput:
        """Append `earlier` messages and the input. Unanswered tool calls are closed as interrupted."""
        answered_ids = {one.tool_call_id for one in earlier}
        async with self.scope.transaction() as tx:
            await self.lease.renew(tx)
            open_calls = await leases.list_open_calls(tx, agent_id=self.scope.agent_id, session_id=self.session_id)
            interrupted = [
                to_tool_line(call, INTERRUPTED, said_at=self.scope.now())
                for call in open_calls
                if call.id not in answered_ids
            ]
            if interrupted or earlier:
                stored, _ = await self._append_lines(tx, [*interrupted, *earlier])
                payload = {"session_id": str(self.session_id), "messages": len(stored)}
                self.scope.publish("session.appended", payload)
            ancestors = await log.list_ancestors(tx, agent_id=self.scope.agent_id, session_id=self.session_id)
            stored, memory_id = await self._append_lines(tx, [line]) if line else ((), None)
            return RecordedInput(text, _last_position(stored), memory_id, ancestors)

    async def propose_identity_changes(self, recorded: RecordedInput) -> Sequence[TenetProposal]:
        """Propose the identity changes that the user asks for. Only user input proposes: no reply, and no recalled
        text."""
        if recorded.position is None:
            return ()
        async with self.scope.transaction() as tx:
            await self.lease.renew(tx)
            edit = IdentityEdit(ctx=self.scope.write_context())
            return await detect_proposals(tx, recorded.text, MessageRef(self.session_id, recorded.position), edit=edit)

    async def record_reply(self, reply: ReplyRecord) -> bool:
        """Store the reply; return False when it has neither text nor calls.

        A reply without a model is a notice: it is not sent to models and not extracted. A reply that may repeat
        external text gets at most the trust of that text.
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
            min_trust=reply.min_trust,
            calls=reply.calls,
        )
        async with self.scope.transaction() as tx:
            await self.lease.renew(tx)
            stored, _ = await self._append_lines(tx, [line])
            position = _last_position(stored)
            if reply.input_position is not None and position is not None:
                await bundle_store.insert_turn(tx, self._turn_record(reply, reply.input_position, position))
            payload = {"session_id": str(self.session_id), "position": position, "answered_by": reply.answered_by}
            self.scope.publish("turn.completed", payload)
        return True

    async def record_context(self, bundle: Bundle) -> None:
        """Record the memories that were used, and update the session summary. After an interrupted turn the next turn
        does both."""
        async with self.scope.transaction() as tx:
            await self.lease.renew(tx)
            shown = [item.memory_id for item in bundle.items]
            await store.record_access(tx, shown, agent_id=self.scope.agent_id, now=self.scope.now())
            await working_set_store.add_memories(tx, shown, scope=self._session_scope())
        writer = ArtifactWriter(session_id=self.session_id, ctx=self.scope.write_context(), sizes=self.sizes)
        async with self.scope.transaction() as tx:
            await self.lease.renew(tx)
            await writer.update(tx)

    def _turn_record(self, reply: ReplyRecord, input_position: int, reply_position: int) -> TurnRecord:
        return TurnRecord(
            agent_id=self.scope.agent_id,
            session_id=self.session_id,
            bundle_id=reply.context.bundle.bundle_id,
            created_at=self.scope.now(),
            method=reply.context.method,
            reason=reply.context.reason,
            answered_by=reply.answered_by,
            input_position=input_position,
            reply_position=reply_position,
        )

    async def _append_lines(self, tx: Tx, lines: Sequence[Message]) -> tuple[Sequence[StoredMessage], UUID | None]:
        """Return the new messages and the memory of the last one; duplicates at the same time are skipped."""
        stored = await sessions.append(
            tx, lines, session_id=self.session_id, ctx=self.scope.write_context(), sizes=self.sizes
        )
        memory_ids = await working_set_store.add_messages(tx, [p.position for p in stored], scope=self._session_scope())
        return stored, memory_ids[-1] if memory_ids else None

    def _session_scope(self) -> SessionScope:
        return SessionScope(
            agent_id=self.scope.agent_id, session_id=self.session_id, now=self.scope.now(), capacity=self.capacity
        )


def _last_position(messages: Sequence[StoredMessage]) -> int | None:
    return messages[-1].position if messages else None
