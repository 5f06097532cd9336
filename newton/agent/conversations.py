"""What a person or a program may do with the conversations of an agent, beside talking."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.agent.compacting import Compacting
from newton.agent.scope import AgentScope
from newton.agent.telling import tell
from newton.db.pool import Tx
from newton.dialogue import branches, closing, entries, log, sessions
from newton.dialogue.branches import Branch, Checkpoint, Excerpt
from newton.dialogue.compaction.fitting import fitted
from newton.dialogue.entries import Listed, Tally
from newton.dialogue.lines import Line, Placed
from newton.dialogue.log import Injection
from newton.dialogue.view import Shown, cost
from newton.errors import InputError, NotFoundError
from newton.ids import new_id

INJECTED = 4  # this part of the room for a conversation is for lines of others at most


class Seen(NamedTuple):
    """A view, what it costs, and what the lines behind it cost."""

    view: Sequence[Shown]
    tokens: int
    logged: int


class Preview(NamedTuple):
    """What would be sent in so many tokens of `room`, and what it costs; what all lines cost; how many of them an entry
    stands for, how many are left out, and how many messages are cut."""

    view: Sequence[Shown]
    tokens: int
    logged: int
    room: int
    shorter: int
    left_out: int
    cut: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """For one agent. Sessions are called by their refs. `room` is what a conversation may cost in a request."""

    scope: AgentScope
    compacting: Compacting
    room: int

    async def list(self) -> Sequence[Branch]:
        """Every session, the one that was used last comes last."""
        async with self.scope.transaction() as tx:
            return await branches.branches(tx, agent_id=self.scope.agent_id)

    async def known(self, ref: str) -> bool:
        """Whether a session of that name has begun."""
        try:
            async with self.scope.transaction() as tx:
                await self._session(tx, ref)
        except NotFoundError:
            return False
        return True

    async def begin(self, ref: str | None) -> UUID:
        """Return the session of that name, begun if it is new; without a name, a new one."""
        async with self.scope.transaction() as tx:
            return await begun(tx, ref or str(new_id()), agent_id=self.scope.agent_id, now=self.scope.now())

    async def close(self, session_id: UUID) -> None:
        """End a conversation: what was said becomes an episode."""
        async with self.scope.transaction() as tx:
            made = await closing.close(tx, session_id=session_id, ctx=self.scope.write_context("agent"))
            self.scope.publish("session.closed", {"session_id": str(session_id), "episodes": made})

    async def append(self, ref: str, lines: Sequence[Line]) -> Sequence[Placed]:
        """Adds lines that the session does not have; it is begun if there is none. Raises as sessions.append does.

        Of lines without a ref that are alike each counts, and the same lines given again are there already.
        """
        async with self.scope.transaction() as tx:
            session_id = await begun(tx, ref, agent_id=self.scope.agent_id, now=self.scope.now())
            placed = await sessions.append(tx, _counted(lines), session_id=session_id, ctx=self.scope.write_context())
            if placed:
                self._tell("appended", session_id, lines=len(placed))
            return placed

    async def log(self, ref: str, *, first: int = 0, last: int = log.END) -> Sequence[Placed]:
        """Every line, or those from one place to another, those of its ancestors included."""
        async with self.scope.transaction() as tx:
            part = [log.Stretch(first, last)]
            return await log.lines(tx, part, agent_id=self.scope.agent_id, session_id=await self._session(tx, ref))

    async def view(self, ref: str) -> Seen:
        """The session as it is shown now, however long."""
        async with self.scope.transaction() as tx:
            session_id = await self._session(tx, ref)
            logged = await log.size(tx, agent_id=self.scope.agent_id, session_id=session_id)
            view = (await log.read(tx, agent_id=self.scope.agent_id, session_id=session_id)).view
        return Seen(view, cost(view), logged)

    async def preview(self, ref: str, *, most: int | None = None) -> Preview:
        """What a request in `most` tokens, or in the room there is, would be sent, made shorter without a model where
        that is due. Writes nothing. Raises InputError when so few hold no line."""
        room = self._room(most)
        async with self.scope.transaction() as tx:
            session_id = await self._session(tx, ref)
            logged = await log.size(tx, agent_id=self.scope.agent_id, session_id=session_id)
        whole = await self.compacting.preview(session_id, most=room)
        sent = fitted(whole, most=room, count=self.scope.count_tokens)
        if whole and (not sent or cost(sent) > room):
            hint = f"The last one alone costs {whole[-1].tokens:,}; a part of it is shown in a few more."
            raise InputError(f"A view of {room:,} tokens holds no line of {ref}.", hint=hint)
        words = {item.first: item.text for item in whole if item.kind != "injected"}
        told = [item for item in sent if item.kind not in ("injected", "left_out")]
        return Preview(
            view=sent,
            tokens=cost(sent),
            logged=logged,
            room=room,
            shorter=len(_places(item for item in told if item.entry_id)),
            left_out=len(_places(whole) - _places(told)),
            cut=sum(item.text != words[item.first] for item in told),
        )

    async def compact(self, ref: str, *, most: int | None = None) -> tuple[Seen, Seen]:
        """Makes the session shorter where that is due in so many tokens, or in the room there is: before and after."""
        room = self._room(most)
        before = await self.view(ref)
        async with self.scope.transaction() as tx:
            session_id = await self._session(tx, ref)
        await self.compacting.view(session_id, most=room)
        return before, await self.view(ref)

    async def entries(self, ref: str) -> Sequence[Listed]:
        """Every entry that was made, dropped ones too, by its place."""
        async with self.scope.transaction() as tx:
            return await entries.listed(tx, agent_id=self.scope.agent_id, session_id=await self._session(tx, ref))

    async def restore(self, ref: str, which: str) -> int:
        """Brings back what an entry stands for, the entry named by the end of its id; returns how many were
        dropped. Raises NotFoundError for an unknown one."""
        async with self.scope.transaction() as tx:
            session_id = await self._session(tx, ref)
            known = await entries.listed(tx, agent_id=self.scope.agent_id, session_id=session_id)
            sought = _Sought(ref, "entry", "entries", f"entries {ref}")
            entry_id = _picked(which, [one.entry.entry_id for one in known], sought)
            dropped = len(await entries.restore(tx, entry_id, session_id=session_id, ctx=self.scope.write_context()))
            self._tell("restored", session_id, entry_id=str(entry_id), dropped=dropped)
            return dropped

    async def checkpoint(self, ref: str, name: str) -> Checkpoint:
        """Names the place behind the last line."""
        async with self.scope.transaction() as tx:
            session_id = await self._session(tx, ref)
            made = await branches.checkpoint(tx, name, session_id=session_id, ctx=self.scope.write_context())
            self._tell("checkpointed", session_id, position=made.position)
            return made

    async def checkpoints(self, ref: str) -> Sequence[Checkpoint]:
        async with self.scope.transaction() as tx:
            return await branches.checkpoints(tx, agent_id=self.scope.agent_id, session_id=await self._session(tx, ref))

    async def branch(self, ref: str, new: str, *, at: str | None = None) -> UUID:
        """Begins the session `new`, which goes on from a checkpoint or a line of another, or from its end."""
        async with self.scope.transaction() as tx:
            parent_id = await self._session(tx, ref)
            session_id = await branches.branch(tx, new, parent_id=parent_id, at=at, ctx=self.scope.write_context())
            self._tell("branched", session_id, parent_id=str(parent_id))
            return session_id

    async def inject(self, ref: str, other: str, *, first: int, last: int) -> Injection:
        """Shows lines of another session in this one, behind its last line, until they are taken out again. Raises as
        branches.inject does."""
        async with self.scope.transaction() as tx:
            excerpt = Excerpt(ref=other, session_id=await self._session(tx, other), first=first, last=last)
            session_id, most = await self._session(tx, ref), self.room // INJECTED
            made = await branches.inject(tx, excerpt, session_id=session_id, ctx=self.scope.write_context(), most=most)
            self._tell("injected", session_id, injection_id=str(made.injection_id))
            return made

    async def injections(self, ref: str) -> Sequence[Injection]:
        """The lines of other sessions that are shown in this one."""
        async with self.scope.transaction() as tx:
            return await log.injections(tx, agent_id=self.scope.agent_id, session_id=await self._session(tx, ref))

    async def eject(self, ref: str, which: str) -> Injection:
        """Takes an injection out again, named by the end of its id. Raises NotFoundError for an unknown one."""
        async with self.scope.transaction() as tx:
            session_id = await self._session(tx, ref)
            known = {
                one.injection_id: one
                for one in await log.injections(tx, agent_id=self.scope.agent_id, session_id=session_id)
            }
            injection_id = _picked(which, list(known), _Sought(ref, "injection", "injections", f"eject {ref}"))
            await branches.eject(tx, injection_id, session_id=session_id, ctx=self.scope.write_context())
            self._tell("ejected", session_id, injection_id=str(injection_id))
            return known[injection_id]

    async def tallies(self, ref: str | None = None) -> Sequence[Tally]:
        """How compactions went, by strategy; of one session, or of all."""
        async with self.scope.transaction() as tx:
            session_id = await self._session(tx, ref) if ref else None
            return await entries.tallies(tx, agent_id=self.scope.agent_id, session_id=session_id)

    def _tell(self, what: str, session_id: UUID, **more: str | int) -> None:
        about = {"session_id": str(session_id), **more}
        self.scope.publish(f"session.{what}", about)

    def _room(self, most: int | None) -> int:
        if most is not None and most < 1:
            raise InputError(f"A view of {most} tokens holds nothing.", hint="Give 1 or more.")
        return most or self.room

    async def _session(self, tx: Tx, ref: str) -> UUID:
        return await sessions.known(tx, agent_id=self.scope.agent_id, ref=ref)


async def begun(tx: Tx, ref: str, *, agent_id: UUID, now: datetime) -> UUID:
    """The session of that name, begun if it is new, and then told of."""
    session_id, new = await sessions.begun(tx, agent_id=agent_id, ref=ref, now=now)
    if new:
        tell("session.begun", {"session_id": str(session_id)}, agent_id=agent_id, now=now)
    return session_id


class _Sought(NamedTuple):
    """What is named by the end of its id: in which session, what one and several are called, and what lists them."""

    ref: str
    one: str
    many: str
    listed: str


def _picked(which: str, known: Sequence[UUID], sought: _Sought) -> UUID:
    end = which.replace("-", "").lower()
    meant = [one for one in known if end and one.hex.endswith(end)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise InputError(f"The ids of {len(meant)} {sought.many} end in {which!r}.", hint="Give more of it.")
    raise NotFoundError(
        f"The session {sought.ref!r} has no {sought.one} {which!r}.",
        hint=f"`newton sessions {sought.listed}` lists them.",
    )


def _counted(lines: Sequence[Line]) -> list[Line]:
    """Lines without a ref that are alike, told apart by how often they came before."""
    seen = Counter[str]()
    told: list[Line] = []
    for line in lines:
        told.append(line if line.ref or line.nth else replace(line, nth=seen[line.own_ref]))
        seen[line.own_ref] += 1
    return told


def _places(view: Iterable[Shown]) -> set[int]:
    return {place for item in view if item.kind != "injected" for place in range(item.first, item.last + 1)}
