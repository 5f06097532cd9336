"""Sessions and their messages: append-only, in order, each line once. Every new line becomes an exchange, and what a
tool put out is kept in short as well."""

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue.artifacts import Writer
from newton.dialogue.condensing import USUAL, Sizes
from newton.dialogue.lines import Line, Placed, exchange
from newton.errors import ConflictError, NotFoundError
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import Teller
from newton.memory.representations import Count

SQL = load("newton.dialogue", "sessions.sql")


async def session(tx: Tx, *, agent_id: UUID, ref: str, now: datetime) -> UUID:
    """The session the caller calls `ref`; begun if there is none yet."""
    await SQL["open_session"].run(tx, agent_id=agent_id, session_id=new_id(), ref=ref, now=now)
    row = await SQL["session_by_ref"].one(tx, agent_id=agent_id, ref=ref)
    assert row is not None
    return row["session_id"]


async def known(tx: Tx, *, agent_id: UUID, ref: str) -> UUID:
    """The session the caller calls `ref`. Raises NotFoundError when none has begun."""
    row = await SQL["session_by_ref"].one(tx, agent_id=agent_id, ref=ref)
    if row is None:
        raise NotFoundError(f"There is no session {ref!r}.", hint=f"`newton chat --session {ref}` begins it.")
    return row["session_id"]


async def append(
    tx: Tx, lines: Sequence[Line], *, session_id: UUID, by: Teller, count: Count, sizes: Sizes = USUAL
) -> list[Placed]:
    """Adds the lines the session does not have yet, in order, and returns them at their places.

    A line sent again (same ref) is left out. Raises ConflictError when a known ref comes with other words.
    """
    writer = Writer(session_id=session_id, by=by, count=count, sizes=sizes)
    await writer.lock(tx)
    fresh = await _unknown(tx, lines, session_id=session_id, by=by)
    if not fresh:
        return []
    tail = await last_lines(tx, agent_id=by.agent_id, session_id=session_id, most=1)
    start = tail[-1].position + 1 if tail else 0
    placed = [
        Placed(session_id=session_id, position=start + i, tokens=count(line.content), line=line)
        for i, line in enumerate(fresh)
    ]
    rows = json.dumps([_row(p, by.now) for p in placed])
    await SQL["insert_lines"].run(tx, agent_id=by.agent_id, session_id=session_id, lines=rows)
    memory_ids = {p.position: new_id() for p in placed if p.line.memorable}
    memorable = [p for p in placed if p.position in memory_ids]
    drafts = [exchange(p, memory_id=memory_ids[p.position], by=by, count=count) for p in memorable]
    new = await store.remember(tx, agent_id=by.agent_id, drafts=drafts)
    await writer.keep_outputs(tx, memorable, {place: one for place, one in memory_ids.items() if one in new})
    return placed


async def last_lines(tx: Tx, *, agent_id: UUID, session_id: UUID, most: int) -> list[Placed]:
    """The end of the session, oldest first."""
    rows = await SQL["last_lines"].all(tx, agent_id=agent_id, session_id=session_id, most=most)
    return [
        Placed(
            session_id=session_id,
            position=row["position"],
            tokens=row["tokens"],
            line=Line(
                role=row["role"], name=row["name"], content=row["content"], said_at=row["said_at"], ref=row["ref"]
            ),
        )
        for row in reversed(rows)
    ]


async def _unknown(tx: Tx, lines: Sequence[Line], *, session_id: UUID, by: Teller) -> list[Line]:
    by_ref: dict[str, Line] = {}
    for line in lines:
        _same_words(line, by_ref.setdefault(line.own_ref, line).words)
    rows = await SQL["known_lines"].all(tx, agent_id=by.agent_id, session_id=session_id, refs=list(by_ref))
    for row in rows:
        _same_words(by_ref.pop(row["ref"]), (row["role"], row["name"], row["content"]))
    return list(by_ref.values())


def _same_words(line: Line, known: tuple[str, str | None, str]) -> None:
    if line.words != known:
        raise ConflictError(
            f"The line {line.own_ref!r} of this session is there with other words.",
            hint="Messages are never changed; send the new words under a ref of their own.",
        )


def _row(placed: Placed, now: datetime) -> dict[str, object]:
    line = placed.line
    return {
        "position": placed.position,
        "ref": line.own_ref,
        "role": line.role,
        "name": line.name,
        "content": line.content,
        "tokens": placed.tokens,
        "said_at": line.said_at.isoformat(),
        "recorded_at": now.isoformat(),
    }
