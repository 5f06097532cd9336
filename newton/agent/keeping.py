"""What a turn leaves behind: the lines that were said, what they were answered from, and what is at hand since."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from newton.agent.bearing import listen
from newton.agent.following import SILENCE
from newton.agent.rounds import INTERRUPTED, answered
from newton.clock import Clock
from newton.cognition import bundles, workingset
from newton.cognition.bundle import Bundle
from newton.cognition.bundles import AnsweredBy, Served
from newton.cognition.refreshing import Refreshed
from newton.cognition.workingset import Sitting
from newton.db.pool import Database, Tx
from newton.dialogue import holding, sessions
from newton.dialogue.artifacts import Writer
from newton.dialogue.condensing import Sizes
from newton.dialogue.lines import Line
from newton.heart.identity import Hand, Proposal, Spot
from newton.memory import store
from newton.memory.hygiene import mended
from newton.memory.memory import Teller, Trust
from newton.memory.representations import Count
from newton.providers.chat import Call


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
    """For one session of one agent; `origin` names the door, and `capacity` is how much may be at hand, in tokens."""

    agent_id: UUID
    session_id: UUID
    origin: str
    db: Database
    clock: Clock
    count: Count
    sizes: Sizes
    capacity: int

    async def begin(self, earlier: Sequence[Line]) -> None:
        """Keeps what was said before the input and is not known yet. A call that nobody has answered, or answers now,
        was interrupted, and the log says so."""
        given = {line.answers for line in earlier}
        async with self.db.work(self.agent_id) as tx:
            left = await holding.open_calls(tx, agent_id=self.agent_id, session_id=self.session_id)
            at = self.clock.now()
            ended = [answered(call, INTERRUPTED, at=at) for call in left if call.id not in given]
            await self._append(tx, [*ended, *earlier])

    async def keep(self, lines: Sequence[Line]) -> None:
        async with self.db.work(self.agent_id) as tx:
            await self._append(tx, lines)

    async def hear(self, line: Line, *, heed: bool) -> tuple[int | None, Sequence[Proposal]]:
        """Keeps what the person said; returns its place in the session and what is now proposed for the identity.
        Nothing else of a turn proposes anything: no reply, and nothing that was recalled for it."""
        by = self._by()
        async with self.db.work(self.agent_id) as tx:
            place = await self._append(tx, [line])
            if place is None or not heed:
                return place, ()
            hand = Hand(by=by, count=self.count)
            return place, await listen(tx, line.content, Spot(self.session_id, place), hand=hand)

    async def reply(self, replied: Replied) -> None:
        """A reply that only quotes memories stays in the log, but does not become a memory once more. One that may
        repeat what was told from outside is a memory that is believed no more than that."""
        text = mended(replied.text).strip()
        line = Line(
            role="assistant",
            content=text if replied.calls else text or SILENCE,
            said_at=self.clock.now(),
            ref=replied.sign,
            memorable=replied.by == "model",
            heard=replied.heard,
            calls=replied.calls,
        )
        async with self.db.work(self.agent_id) as tx:
            place = await self._append(tx, [line])
            if replied.asked is not None and place is not None:
                await bundles.served(tx, self._served(replied, replied.asked, place))

    async def note(self, bundle: Bundle) -> None:
        """What was shown, and what of the session is to be kept in short. A turn that was cut off leaves it to the
        next one."""
        async with self.db.work(self.agent_id) as tx:
            shown = [item.memory_id for item in bundle.items]
            await store.note_read(tx, shown, agent_id=self.agent_id, now=self.clock.now())
            await workingset.hold(tx, shown, at=self._sitting())
        writer = Writer(session_id=self.session_id, by=self._by(), count=self.count, sizes=self.sizes)
        async with self.db.work(self.agent_id) as tx:
            await writer.note(tx)

    def _served(self, replied: Replied, asked: int, place: int) -> Served:
        return Served(
            agent_id=self.agent_id,
            session_id=self.session_id,
            bundle_id=replied.given.bundle.bundle_id,
            at=self.clock.now(),
            how=replied.given.how,
            because=replied.given.because,
            answered_by=replied.by,
            asked=asked,
            replied=place,
        )

    async def _append(self, tx: Tx, lines: Sequence[Line]) -> int | None:
        """The place of the last; None when nothing is new, word for word at the same moment."""
        placed = await sessions.append(
            tx, lines, session_id=self.session_id, by=self._by(), count=self.count, sizes=self.sizes
        )
        await workingset.hold_lines(tx, [p.position for p in placed], at=self._sitting())
        return placed[-1].position if placed else None

    def _sitting(self) -> Sitting:
        return Sitting(agent_id=self.agent_id, session_id=self.session_id, now=self.clock.now(), capacity=self.capacity)

    def _by(self) -> Teller:
        return Teller(agent_id=self.agent_id, now=self.clock.now(), origin=self.origin, trust="user")
