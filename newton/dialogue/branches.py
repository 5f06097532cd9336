"""Branches of sessions, and messages of one session injected into another.

A branch copies no messages: its view includes the messages of the sessions from which it was branched.
"""

import shlex
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import log
from newton.dialogue.log import InjectedRange
from newton.errors import ConflictError, InputError, NotFoundError
from newton.ids import new_id
from newton.memory.memory import WriteContext

SQL = load("newton.dialogue", "branches.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session. Of a branch, the parent fields name the session and the position where it began; else they are None.

    `messages` also counts those of the parent. `first_input` is the beginning of the first text of the user.
    """

    session_id: UUID
    session: str
    created_at: datetime
    parent_session: str | None
    parent_position: int | None
    messages: int
    last_used_at: datetime
    first_input: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionExcerpt:
    """The messages `first` to `last` (inclusive) of the session named `ref`."""

    ref: str
    session_id: UUID
    first: int
    last: int


async def create_branch(tx: Tx, ref: str, *, parent_id: UUID, from_position: int | None, ctx: WriteContext) -> UUID:
    """Create a session that continues from a message of its parent, and return its id.

    `from_position` is the number of a message, or None for the last one. Raises ConflictError if
    a session `ref` exists, NotFoundError for an unknown position, and InputError if the parent has no messages.
    """
    await log.lock_session(tx, agent_id=ctx.agent_id, session_id=parent_id)
    position = await _resolve_position(tx, from_position, session_id=parent_id, ctx=ctx)
    session_id = new_id()
    branch = {"agent_id": ctx.agent_id, "session_id": session_id, "parent_id": parent_id, "position": position}
    if await SQL["insert_branch"].fetch_one(tx, **branch, ref=ref, now=ctx.now) is None:
        raise ConflictError(f"A session {ref!r} already exists.", hint="Choose another name for the branch.")
    await SQL["insert_lineage"].execute(tx, **branch)
    await SQL["inherit_injections"].execute(tx, **branch)
    await SQL["inherit_entries"].execute(tx, **branch)
    await SQL["inherit_will"].execute(tx, **branch)
    await SQL["inherit_restorations"].execute(tx, **branch)
    return session_id


async def inject(
    tx: Tx, excerpt: SessionExcerpt, *, session_id: UUID, ctx: WriteContext, max_tokens: int = log.MAX_POSITION
) -> InjectedRange:
    """Show messages of another session to the model after the last message of this one; return the injected range.

    All injected messages together may have `max_tokens` tokens. Raises NotFoundError for unknown messages, and
    InputError if the messages are in this session, have too many tokens, or this session is empty.
    """
    await log.lock_session(tx, agent_id=ctx.agent_id, session_id=session_id)
    position = await _last_position(tx, session_id=session_id, ctx=ctx)
    if excerpt.session_id == session_id:
        raise InputError(
            f"Messages of the session {excerpt.ref} cannot be injected into the same session.",
            hint="`newton sessions expand` shows shortened messages in full again.",
        )
    await _check_range(tx, excerpt, ctx=ctx)
    message_range = log.MessageRange(excerpt.first, excerpt.last)
    messages = await log.load_messages(tx, [message_range], agent_id=ctx.agent_id, session_id=excerpt.session_id)
    tokens = ctx.count_tokens(log.render_injection(excerpt.ref, messages))
    injections = await log.list_injections(tx, agent_id=ctx.agent_id, session_id=session_id)
    _check_budget(tokens, sum(one.tokens for one in injections), max_tokens=max_tokens)
    injected = InjectedRange(
        new_id(), position, excerpt.ref, excerpt.first, excerpt.last, tokens, ctx.now, excerpt.session_id
    )
    columns = {
        name: getattr(injected, name) for name in ("injection_id", "place", "other_id", "first", "last", "tokens")
    }
    await SQL["insert_injection"].execute(tx, agent_id=ctx.agent_id, session_id=session_id, **columns, now=ctx.now)
    return injected


async def eject(tx: Tx, injection_id: UUID, *, session_id: UUID, ctx: WriteContext) -> None:
    """Remove injected messages from what the model receives of a session. Branches of it that show them keep them."""
    await SQL["remove_injection"].execute(
        tx, agent_id=ctx.agent_id, session_id=session_id, injection_id=injection_id, now=ctx.now, origin=ctx.origin
    )


async def _check_range(tx: Tx, excerpt: SessionExcerpt, *, ctx: WriteContext) -> None:
    end = await log.get_last_position(tx, agent_id=ctx.agent_id, session_id=excerpt.session_id)
    if not 0 <= excerpt.first <= excerpt.last <= end:
        raise NotFoundError(
            f"The session {excerpt.ref} has no messages {excerpt.first} to {excerpt.last}; it has {end + 1:,} messages,"
            " numbered from 0.",
            hint=f"`newton sessions log {shlex.quote(excerpt.ref)}` shows the messages with their numbers.",
        )


def _check_budget(tokens: int, injected_tokens: int, *, max_tokens: int) -> None:
    if injected_tokens + tokens > max_tokens:
        beside = f", in addition to the {injected_tokens:,} tokens injected already" if injected_tokens else ""
        raise InputError(
            f"The selected messages have {tokens:,} tokens{beside}; the maximum is {max_tokens:,}.",
            hint="Select fewer messages, or remove injected ones with `newton sessions eject`.",
        )


async def list_branches(tx: Tx, *, agent_id: UUID) -> list[SessionInfo]:
    """Return all sessions with their parents, the last used one first."""
    return [SessionInfo(**dict(row)) for row in await SQL["list_sessions"].fetch_all(tx, agent_id=agent_id)]


async def _resolve_position(tx: Tx, from_position: int | None, *, session_id: UUID, ctx: WriteContext) -> int:
    end = await _last_position(tx, session_id=session_id, ctx=ctx)
    position = end if from_position is None else from_position
    if not 0 <= position <= end:
        raise NotFoundError(
            f"The session has no message {position}.", hint=f"Give the number of a message, from 0 to {end}."
        )
    return position


async def _last_position(tx: Tx, *, session_id: UUID, ctx: WriteContext) -> int:
    end = await log.get_last_position(tx, agent_id=ctx.agent_id, session_id=session_id)
    if end < 0:
        raise InputError("The session has no messages.", hint="Send a message first.")
    return end
