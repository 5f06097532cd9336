"""What a turn leaves behind: the lines that were said, what they were answered from, and what is at hand since."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.agent.bearing import listen
from newton.agent.holding import Lease
from newton.agent.rounds import INTERRUPTED, answered
from newton.agent.scope import AgentScope
from newton.cognition import bundles, workingset
from newton.cognition.bundle import Bundle
from newton.cognition.bundles import AnsweredBy, Served
from newton.cognition.refreshing import Refreshed
from newton.cognition.workingset import Sitting
from newton.db.pool import Tx
from newton.dialogue import holding, log, sessions
from newton.dialogue.artifacts import Writer
from newton.dialogue.condensing import Sizes
from newton.dialogue.lines import Line, Placed
from newton.dialogue.log import Origin
from newton.heart.identity import Hand, Proposal, Spot
from newton.memory import store
from newton.memory.hygiene import mended
from newton.memory.memory import Trust
from newton.providers.chat import Call


class Heard(NamedTuple):
    """What a person said: its place in the session and the memory that it became; without them it stood there already,
    word for word at the same moment. A session that is a branch begins with the lines of its `origins`."""

    text: str
    place: int | None = None
    memory_id: UUID | None = None
    origins: Sequence[Origin] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """A reply: its words, the calls in it that whoever asked is to answer, who gave it, and the sign it is found by.
    `heard` is the least trust of what its speaker had before them from outside."""

    text: str
    by: AnsweredBy
    given: Refreshed
    asked: int | None
    heard: Trust | None = None
    calls: tuple[Call, ...] = ()
    sign: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """For one session of one agent; `origin` names the door, and `capacity` is how much may be at hand, in tokens.

    Whatever it keeps raises BusyError, and nothing is kept, when the `lease` of the turn is lost.
    """

    scope: AgentScope
    session_id: UUID
    sizes: Sizes
    capacity: int
    lease: Lease

    async def keep(self, lines: Sequence[Line]) -> None:
        async with self.scope.transaction() as tx:
            await self.lease.kept(tx)
            await self._append(tx, lines)

    async def hear(self, text: str, line: Line | None, earlier: Sequence[Line]) -> Heard:
        """Keeps what the person said, if it is a new line, behind what was said `earlier` and is not known yet. A call
        that nobody has answered, or answers now, was interrupted, and the log says so."""
        given = {one.answers for one in earlier}
        async with self.scope.transaction() as tx:
            await self.lease.kept(tx)
            left = await holding.open_calls(tx, agent_id=self.scope.agent_id, session_id=self.session_id)
            ended = [answered(call, INTERRUPTED, at=self.scope.now()) for call in left if call.id not in given]
            if ended or earlier:
                placed, _ = await self._append(tx, [*ended, *earlier])
                about = {"session_id": str(self.session_id), "lines": len(placed)}
                self.scope.publish("session.appended", about)
            origins = await log.origins(tx, agent_id=self.scope.agent_id, session_id=self.session_id)
            placed, memory_id = await self._append(tx, [line]) if line else ((), None)
            return Heard(text, _last(placed), memory_id, origins)

    async def heed(self, heard: Heard) -> Sequence[Proposal]:
        """What is now proposed for the identity. Nothing else of a turn proposes anything: no reply, and nothing that
        was recalled for it."""
        if heard.place is None:
            return ()
        async with self.scope.transaction() as tx:
            await self.lease.kept(tx)
            hand = Hand(ctx=self.scope.write_context())
            return await listen(tx, heard.text, Spot(self.session_id, heard.place), hand=hand)

    async def reply(self, replied: Replied) -> bool:
        """Whether there was a word, or a call. A reply that no model gave is an aside: none is told that it had said
        it, and it is not learnt once more. One that may repeat what was told from outside is a memory that is believed
        no more than that."""
        words = mended(replied.text)
        if not words and not replied.calls:
            return False
        line = Line(
            role="assistant",
            content=words,
            said_at=self.scope.now(),
            ref=replied.sign,
            aside=replied.by != "model",
            heard=replied.heard,
            calls=replied.calls,
        )
        async with self.scope.transaction() as tx:
            await self.lease.kept(tx)
            placed, _ = await self._append(tx, [line])
            place = _last(placed)
            if replied.asked is not None and place is not None:
                await bundles.served(tx, self._served(replied, replied.asked, place))
            about = {"session_id": str(self.session_id), "position": place, "answered_by": replied.by}
            self.scope.publish("turn.taken", about)
        return True

    async def note(self, bundle: Bundle) -> None:
        """What was shown, and what of the session is to be kept in short. A turn that was cut off leaves it to the
        next one."""
        async with self.scope.transaction() as tx:
            await self.lease.kept(tx)
            shown = [item.memory_id for item in bundle.items]
            await store.note_read(tx, shown, agent_id=self.scope.agent_id, now=self.scope.now())
            await workingset.hold(tx, shown, at=self._sitting())
        writer = Writer(session_id=self.session_id, ctx=self.scope.write_context(), sizes=self.sizes)
        async with self.scope.transaction() as tx:
            await self.lease.kept(tx)
            await writer.note(tx)

    def _served(self, replied: Replied, asked: int, place: int) -> Served:
        return Served(
            agent_id=self.scope.agent_id,
            session_id=self.session_id,
            bundle_id=replied.given.bundle.bundle_id,
            at=self.scope.now(),
            how=replied.given.how,
            because=replied.given.because,
            answered_by=replied.by,
            asked=asked,
            replied=place,
        )

    async def _append(self, tx: Tx, lines: Sequence[Line]) -> tuple[Sequence[Placed], UUID | None]:
        """What is new, and the memory that the last line became; neither when nothing is, word for word at the same
        moment."""
        placed = await sessions.append(
            tx,
            lines,
            session_id=self.session_id,
            ctx=self.scope.write_context(),
            sizes=self.sizes,
        )
        held = await workingset.hold_lines(tx, [p.position for p in placed], at=self._sitting())
        return placed, held[-1] if held else None

    def _sitting(self) -> Sitting:
        return Sitting(
            agent_id=self.scope.agent_id, session_id=self.session_id, now=self.scope.now(), capacity=self.capacity
        )


def _last(placed: Sequence[Placed]) -> int | None:
    return placed[-1].position if placed else None
