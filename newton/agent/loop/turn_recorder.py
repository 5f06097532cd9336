"""What a turn leaves behind: the lines that were said, what they were answered from, and what is at hand since."""

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
    """What a person said: its place in the session and the memory that it became; without them it stood there already,
    word for word at the same moment. A session that is a branch begins with the lines of its `origins`."""

    text: str
    position: int | None = None
    memory_id: UUID | None = None
    ancestors: Sequence[AncestorRange] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRecord:
    """A reply: its words, the calls in it that whoever asked is to answer, who gave it, and the sign it is found by.
    `heard` is the least trust of what its speaker had before them from outside."""

    text: str
    answered_by: AnsweredBy
    context: SessionContext
    input_position: int | None
    min_trust: Trust | None = None
    calls: tuple[ToolCall, ...] = ()
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecorder:
    """For one session of one agent; `origin` names the door, and `capacity` is how much may be at hand, in tokens.

    Whatever it keeps raises BusyError, and nothing is kept, when the `lease` of the turn is lost.
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
        """Keeps what the person said, if it is a new line, behind what was said `earlier` and is not known yet. A call
        that nobody has answered, or answers now, was interrupted, and the log says so."""
        given = {one.tool_call_id for one in earlier}
        async with self.scope.transaction() as tx:
            await self.lease.renew(tx)
            left = await leases.list_open_calls(tx, agent_id=self.scope.agent_id, session_id=self.session_id)
            ended = [to_tool_line(call, INTERRUPTED, said_at=self.scope.now()) for call in left if call.id not in given]
            if ended or earlier:
                placed, _ = await self._append_lines(tx, [*ended, *earlier])
                about = {"session_id": str(self.session_id), "messages": len(placed)}
                self.scope.publish("session.appended", about)
            origins = await log.list_ancestors(tx, agent_id=self.scope.agent_id, session_id=self.session_id)
            placed, memory_id = await self._append_lines(tx, [line]) if line else ((), None)
            return RecordedInput(text, _last_position(placed), memory_id, origins)

    async def propose_identity_changes(self, recorded: RecordedInput) -> Sequence[TenetProposal]:
        """What is now proposed for the identity. Nothing else of a turn proposes anything: no reply, and nothing that
        was recalled for it."""
        if recorded.position is None:
            return ()
        async with self.scope.transaction() as tx:
            await self.lease.renew(tx)
            hand = IdentityEdit(ctx=self.scope.write_context())
            return await detect_proposals(tx, recorded.text, MessageRef(self.session_id, recorded.position), edit=hand)

    async def record_reply(self, reply: ReplyRecord) -> bool:
        """Whether there was a word, or a call. A reply that no model gave is an aside: none is told that it had said
        it, and it is not learnt once more. One that may repeat what was told from outside is a memory that is believed
        no more than that."""
        words = clean_model_text(reply.text)
        if not words and not reply.calls:
            return False
        line = Message(
            role="assistant",
            content=words,
            said_at=self.scope.now(),
            ref=reply.fingerprint,
            is_notice=reply.answered_by != "model",
            min_trust=reply.min_trust,
            calls=reply.calls,
        )
        async with self.scope.transaction() as tx:
            await self.lease.renew(tx)
            placed, _ = await self._append_lines(tx, [line])
            place = _last_position(placed)
            if reply.input_position is not None and place is not None:
                await bundle_store.insert_turn(tx, self._turn_record(reply, reply.input_position, place))
            about = {"session_id": str(self.session_id), "position": place, "answered_by": reply.answered_by}
            self.scope.publish("turn.completed", about)
        return True

    async def record_context(self, bundle: Bundle) -> None:
        """What was shown, and what of the session is to be kept in short. A turn that was cut off leaves it to the
        next one."""
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
        """What is new, and the memory that the last line became; neither when nothing is, word for word at the same
        moment."""
        placed = await sessions.append(
            tx,
            lines,
            session_id=self.session_id,
            ctx=self.scope.write_context(),
            sizes=self.sizes,
        )
        held = await working_set_store.add_messages(tx, [p.position for p in placed], scope=self._session_scope())
        return placed, held[-1] if held else None

    def _session_scope(self) -> SessionScope:
        return SessionScope(
            agent_id=self.scope.agent_id, session_id=self.session_id, now=self.scope.now(), capacity=self.capacity
        )


def _last_position(messages: Sequence[StoredMessage]) -> int | None:
    return messages[-1].position if messages else None
