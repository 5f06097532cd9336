"""What a person or a program may do with the conversations of an agent, beside talking."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.agent.compacting import Compacting
from newton.clock import Clock
from newton.db.pool import Database, Tx
from newton.dialogue import branches, entries, log, sessions
from newton.dialogue.branches import Branch, Checkpoint, Excerpt
from newton.dialogue.compaction.fitting import fitted
from newton.dialogue.entries import Listed, Tally
from newton.dialogue.lines import Line, Placed
from newton.dialogue.view import Shown, cost
from newton.errors import InputError, NotFoundError
from newton.memory.memory import Teller
from newton.memory.representations import Count


class Seen(NamedTuple):
    """A view, what it costs, and what the lines behind it cost."""

    view: Sequence[Shown]
    tokens: int
    logged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """For one agent. Sessions are called by their refs."""

    agent_id: UUID
    origin: str
    db: Database
    clock: Clock
    count: Count
    compacting: Compacting

    async def list(self) -> Sequence[Branch]:
        """Every session, the latest last."""
        async with self.db.work(self.agent_id) as tx:
            return await branches.branches(tx, agent_id=self.agent_id)

    async def append(self, ref: str, lines: Sequence[Line]) -> Sequence[Placed]:
        """Adds lines that the session does not have; it is begun if there is none. Raises as sessions.append does."""
        async with self.db.work(self.agent_id) as tx:
            session_id = await sessions.session(tx, agent_id=self.agent_id, ref=ref, now=self.clock.now())
            return await sessions.append(tx, lines, session_id=session_id, by=self._by(), count=self.count)

    async def log(self, ref: str, *, first: int = 0, last: int = log.END) -> Sequence[Placed]:
        """Every line, or those from one place to another, those of its ancestors included."""
        async with self.db.work(self.agent_id) as tx:
            part = [log.Stretch(first, last)]
            return await log.lines(tx, part, agent_id=self.agent_id, session_id=await self._session(tx, ref))

    async def view(self, ref: str, *, most: int | None = None) -> Seen:
        """What a model would be shown now. With `most` it is made shorter where that is due, and never costs more."""
        async with self.db.work(self.agent_id) as tx:
            session_id = await self._session(tx, ref)
            logged = await log.size(tx, agent_id=self.agent_id, session_id=session_id)
            read = await log.read(tx, agent_id=self.agent_id, session_id=session_id)
        view = read.view
        if most is not None:
            if most < 1:
                raise InputError(f"A view of {most} tokens holds nothing.", hint="Give 1 or more.")
            view = fitted(await self.compacting.view(session_id, most=most), most=most, count=self.count)
        return Seen(view, cost(view), logged)

    async def entries(self, ref: str) -> Sequence[Listed]:
        """Every entry that was made, dropped ones too, by its place."""
        async with self.db.work(self.agent_id) as tx:
            return await entries.listed(tx, agent_id=self.agent_id, session_id=await self._session(tx, ref))

    async def restore(self, ref: str, which: str) -> int:
        """Brings back what an entry stands for, the entry named by the end of its id; returns how many were
        dropped. Raises NotFoundError for an unknown one."""
        async with self.db.work(self.agent_id) as tx:
            session_id = await self._session(tx, ref)
            known = await entries.listed(tx, agent_id=self.agent_id, session_id=session_id)
            entry_id = _picked(which, [one.entry.entry_id for one in known], ref)
            return len(await entries.restore(tx, entry_id, session_id=session_id, by=self._by()))

    async def checkpoint(self, ref: str, name: str) -> Checkpoint:
        """Names the place behind the last line."""
        async with self.db.work(self.agent_id) as tx:
            return await branches.checkpoint(tx, name, session_id=await self._session(tx, ref), by=self._by())

    async def checkpoints(self, ref: str) -> Sequence[Checkpoint]:
        async with self.db.work(self.agent_id) as tx:
            return await branches.checkpoints(tx, agent_id=self.agent_id, session_id=await self._session(tx, ref))

    async def branch(self, ref: str, new: str, *, at: str | None = None) -> UUID:
        """Begins the session `new`, which goes on from a checkpoint or a line of another, or from its end."""
        async with self.db.work(self.agent_id) as tx:
            return await branches.branch(tx, new, parent_id=await self._session(tx, ref), at=at, by=self._by())

    async def inject(self, ref: str, other: str, *, first: int, last: int) -> int:
        """Shows lines of another session in this one, behind its last line; returns how many."""
        async with self.db.work(self.agent_id) as tx:
            excerpt = Excerpt(ref=other, session_id=await self._session(tx, other), first=first, last=last)
            return await branches.inject(
                tx, excerpt, session_id=await self._session(tx, ref), by=self._by(), count=self.count
            )

    async def tallies(self, ref: str | None = None) -> Sequence[Tally]:
        """How compactions went, by strategy; of one session, or of all."""
        async with self.db.work(self.agent_id) as tx:
            session_id = await self._session(tx, ref) if ref else None
            return await entries.tallies(tx, agent_id=self.agent_id, session_id=session_id)

    async def _session(self, tx: Tx, ref: str) -> UUID:
        return await sessions.known(tx, agent_id=self.agent_id, ref=ref)

    def _by(self) -> Teller:
        return Teller(agent_id=self.agent_id, now=self.clock.now(), origin=self.origin, trust="user")


def _picked(which: str, known: Sequence[UUID], ref: str) -> UUID:
    end = which.replace("-", "").lower()
    meant = [entry_id for entry_id in known if end and entry_id.hex.endswith(end)]
    if len(meant) == 1:
        return meant[0]
    hint = f"`newton sessions entries {ref}` lists them."
    if meant:
        raise InputError(f"The ids of {len(meant)} entries end in {which!r}.", hint="Give more of it.")
    raise NotFoundError(f"The session {ref!r} has no entry {which!r}.", hint=hint)
