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
from newton.dialogue.log import InjectedRange
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id
from newton.memory.memory import WriteContext

SQL = load("newton.dialogue", "branches.sql")


class SessionCheckpoint(NamedTuple):
    """A place of a session with a name: behind that line."""

    name: str
    position: int
    at: datetime


class BranchSummary(NamedTuple):
    """A session, and where it leaves its parent when it has one; its lines, those of its ancestors included, when the
    last one was added, and the first words of a person in it."""

    session_id: UUID
    ref: str
    created_at: datetime
    parent: str | None
    parent_position: int | None
    lines: int
    used_at: datetime
    began: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionExcerpt:
    """Lines of a session, both ends included."""

    ref: str
    session_id: UUID
    first: int
    last: int


async def create_checkpoint(tx: Tx, name: str, *, session_id: UUID, ctx: WriteContext) -> SessionCheckpoint:
    """Names the place behind the last line.

    Raises ConflictError for a name that the session has, and InputError when it has no line.
    """
    await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
    position = await _last_position(tx, session_id=session_id, ctx=ctx)
    made = await SQL["insert_checkpoint"].fetch_one(
        tx, agent_id=ctx.agent_id, session_id=session_id, name=name, position=position, now=ctx.now
    )
    if made is None:
        raise ConflictError(f"The session has a checkpoint {name!r} already.", hint="Give another name.")
    return SessionCheckpoint(name, position, ctx.now)


async def list_checkpoints(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[SessionCheckpoint]:
    rows = await SQL["list_checkpoints"].fetch_all(tx, agent_id=agent_id, session_id=session_id)
    return [SessionCheckpoint(*row) for row in rows]


async def create_branch(
    tx: Tx, ref: str, *, parent_id: UUID, from_position: str | int | None, ctx: WriteContext
) -> UUID:
    """Begins a session that goes on from a place of another: a checkpoint, a position (as text too), or its end.

    Raises ConflictError when there is a session of that name, NotFoundError for a place that is not there, and
    InputError when the other has no line.
    """
    await log.lock_session(tx, agent_id=ctx.agent_id, session_id=parent_id)
    position = await _resolve_position(tx, from_position, session_id=parent_id, ctx=ctx)
    session_id = new_id()
    begun = await SQL["insert_branch"].fetch_one(
        tx, agent_id=ctx.agent_id, session_id=session_id, ref=ref, parent_id=parent_id, position=position, now=ctx.now
    )
    if begun is None:
        raise ConflictError(f"There is a session {ref!r} already.", hint="Give the branch another name.")
    own = {"agent_id": ctx.agent_id, "session_id": session_id, "parent_id": parent_id, "position": position}
    await SQL["insert_lineage"].execute(tx, **own)
    await SQL["inherit_injections"].execute(tx, **own)
    await SQL["inherit_entries"].execute(tx, **own)
    await SQL["inherit_restorations"].execute(tx, **own)
    return session_id


async def inject(
    tx: Tx, excerpt: SessionExcerpt, *, session_id: UUID, ctx: WriteContext, max_tokens: int = log.MAX_POSITION
) -> InjectedRange:
    """Shows lines of another session behind the last line of this one. All that is shown so may cost `most` tokens.

    Raises NotFoundError for lines that are not there, and InputError for the session's own, for what costs more, and
    when this session has no line to show them behind.
    """
    await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
    place = await _last_position(tx, session_id=session_id, ctx=ctx)
    if excerpt.session_id == session_id:
        raise InputError(
            f"{excerpt.ref} shows its own lines already.",
            hint="`newton sessions restore` brings back those that were made shorter.",
        )
    await _check_range(tx, excerpt, ctx=ctx)
    part = log.MessageRange(excerpt.first, excerpt.last)
    lines = await log.load_messages(tx, [part], agent_id=ctx.agent_id, session_id=excerpt.session_id)
    tokens = ctx.count_tokens(log.render_injection(excerpt.ref, lines))
    shown = await log.list_injections(tx, agent_id=ctx.agent_id, session_id=session_id)
    _check_budget(tokens, sum(one.tokens for one in shown), max_tokens=max_tokens)
    made = InjectedRange(new_id(), place, excerpt.ref, excerpt.first, excerpt.last, tokens, ctx.now, excerpt.session_id)
    await SQL["insert_injection"].execute(
        tx,
        agent_id=ctx.agent_id,
        session_id=session_id,
        injection_id=made.injection_id,
        position=made.place,
        other_id=made.other_id,
        first=made.first,
        last=made.last,
        tokens=made.tokens,
        now=ctx.now,
    )
    return made


async def eject(tx: Tx, injection_id: UUID, *, session_id: UUID, ctx: WriteContext) -> None:
    """Shows these lines in the session no more. Branches that began with them keep theirs."""
    await SQL["remove_injection"].execute(
        tx, agent_id=ctx.agent_id, session_id=session_id, injection_id=injection_id, now=ctx.now, origin=ctx.origin
    )


async def _check_range(tx: Tx, excerpt: SessionExcerpt, *, ctx: WriteContext) -> None:
    end = await log.get_last_position(tx, agent_id=ctx.agent_id, session_id=excerpt.session_id)
    if not 0 <= excerpt.first <= excerpt.last <= end:
        has = f"they are numbered 0 to {end}" if end >= 0 else "it is empty"
        raise NotFoundError(
            f"{excerpt.ref} has no lines from {excerpt.first} to {excerpt.last}: {has}.",
            hint=f"`newton sessions log {excerpt.ref}` shows their numbers.",
        )


def _check_budget(tokens: int, injected_tokens: int, *, max_tokens: int) -> None:
    if injected_tokens + tokens > max_tokens:
        beside = f", beside {injected_tokens:,} that are injected already" if injected_tokens else ""
        raise InputError(
            f"These lines cost {tokens:,} tokens{beside}; {max_tokens:,} is the most, a part of the room for a conversation.",
            hint="Give fewer lines, or take others out with `newton sessions eject`.",
        )


async def list_branches(tx: Tx, *, agent_id: UUID) -> list[BranchSummary]:
    """Every session, the one that was used last comes last."""
    return [BranchSummary(*row) for row in await SQL["list_sessions"].fetch_all(tx, agent_id=agent_id)]


async def _resolve_position(tx: Tx, from_position: str | int | None, *, session_id: UUID, ctx: WriteContext) -> int:
    end = await _last_position(tx, session_id=session_id, ctx=ctx)
    if isinstance(from_position, str):
        known = {
            one.name: one.position for one in await list_checkpoints(tx, agent_id=ctx.agent_id, session_id=session_id)
        }
        if from_position not in known and not from_position.isdecimal():
            raise NotFoundError(
                f"The session has no checkpoint {from_position!r}.", hint=f"It has: {', '.join(known) or 'none'}."
            )
        from_position = known[from_position] if from_position in known else int(from_position)
    position = end if from_position is None else from_position
    if not 0 <= position <= end:
        raise NotFoundError(f"The session has no line {position}.", hint=f"Its last one is {end}.")
    return position


async def _last_position(tx: Tx, *, session_id: UUID, ctx: WriteContext) -> int:
    end = await log.get_last_position(tx, agent_id=ctx.agent_id, session_id=session_id)
    if end < 0:
        raise InputError("The session has no line yet.", hint="Say something first.")
    return end
