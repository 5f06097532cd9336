"""Branches of a conversation: a named place, a session that goes on from there, and lines of one shown in another.

A branch holds no copy: it is shown the lines of those it descends from.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id
from newton.memory.memory import Teller
from newton.memory.representations import Count

SQL = load("newton.dialogue", "branches.sql")


class Checkpoint(NamedTuple):
    """A place of a session with a name: behind that line."""

    name: str
    position: int
    at: datetime


class Branch(NamedTuple):
    """A session, and where it leaves its parent when it has one."""

    session_id: UUID
    ref: str
    created_at: datetime
    parent: str | None
    parent_position: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Lines of a session, both ends included."""

    ref: str
    session_id: UUID
    first: int
    last: int


async def checkpoint(tx: Tx, name: str, *, session_id: UUID, by: Teller) -> Checkpoint:
    """Names the place behind the last line.

    Raises ConflictError for a name that the session has, and InputError when it has no line.
    """
    await log.lock(tx, agent_id=by.agent_id, session_id=session_id)
    position = await log.end(tx, agent_id=by.agent_id, session_id=session_id)
    if position < 0:
        raise InputError("The session has no line yet.", hint="Say something first.")
    made = await SQL["checkpoint"].one(
        tx, agent_id=by.agent_id, session_id=session_id, name=name, position=position, now=by.now
    )
    if made is None:
        raise ConflictError(f"The session has a checkpoint {name!r} already.", hint="Give another name.")
    return Checkpoint(name, position, by.now)


async def checkpoints(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[Checkpoint]:
    rows = await SQL["checkpoints"].all(tx, agent_id=agent_id, session_id=session_id)
    return [Checkpoint(*row) for row in rows]


async def branch(tx: Tx, ref: str, *, parent_id: UUID, at: str | int | None, by: Teller) -> UUID:
    """Begins a session that goes on from a place of another: a checkpoint, a position, or its end.

    Raises ConflictError when there is a session of that name, and NotFoundError for a place that is not there.
    """
    await log.lock(tx, agent_id=by.agent_id, session_id=parent_id)
    position = await _place(tx, at, session_id=parent_id, by=by)
    session_id = new_id()
    begun = await SQL["begin"].one(
        tx, agent_id=by.agent_id, session_id=session_id, ref=ref, parent_id=parent_id, position=position, now=by.now
    )
    if begun is None:
        raise ConflictError(f"There is a session {ref!r} already.", hint="Give the branch another name.")
    own = {"agent_id": by.agent_id, "session_id": session_id, "parent_id": parent_id, "position": position}
    await SQL["descend"].run(tx, **own)
    await SQL["inherit_injections"].run(tx, **own)
    await SQL["inherit_entries"].run(tx, **own)
    return session_id


async def inject(tx: Tx, excerpt: Excerpt, *, session_id: UUID, by: Teller, count: Count) -> int:
    """Shows lines of another session behind the last line of this one; returns how many.

    Raises NotFoundError when there are none, and InputError when this session has no line to show them behind.
    """
    await log.lock(tx, agent_id=by.agent_id, session_id=session_id)
    place = await log.end(tx, agent_id=by.agent_id, session_id=session_id)
    if place < 0:
        raise InputError("The session has no line yet.", hint="Say something first.")
    part = log.Stretch(excerpt.first, excerpt.last)
    lines = await log.lines(tx, [part], agent_id=by.agent_id, session_id=excerpt.session_id)
    if not lines:
        raise NotFoundError(
            f"{excerpt.ref} has no lines from {excerpt.first} to {excerpt.last}.",
            hint=f"`newton sessions log {excerpt.ref}` shows their numbers.",
        )
    await SQL["inject"].run(
        tx,
        agent_id=by.agent_id,
        session_id=session_id,
        injection_id=new_id(),
        place=place,
        other_id=excerpt.session_id,
        first=lines[0].position,
        last=lines[-1].position,
        tokens=count(log.told(excerpt.ref, lines)),
        now=by.now,
    )
    return len(lines)


async def branches(tx: Tx, *, agent_id: UUID) -> list[Branch]:
    """Every session, the latest last."""
    return [Branch(*row) for row in await SQL["branches"].all(tx, agent_id=agent_id)]


async def _place(tx: Tx, at: str | int | None, *, session_id: UUID, by: Teller) -> int:
    end = await log.end(tx, agent_id=by.agent_id, session_id=session_id)
    if isinstance(at, str):
        known = {one.name: one.position for one in await checkpoints(tx, agent_id=by.agent_id, session_id=session_id)}
        if at not in known:
            raise NotFoundError(f"The session has no checkpoint {at!r}.", hint=f"It has: {', '.join(known) or 'none'}.")
        return known[at]
    position = end if at is None else at
    if not 0 <= position <= end:
        raise NotFoundError(f"The session has no line {position}.", hint=f"Its last one is {end}.")
    return position
