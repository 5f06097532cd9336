"""Events: what happened, with its payload. One that carries words from outside is a tool's word, so quarantined."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.happenings import Event, carries_output, told
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import Draft, Teller, Trust, digest, least
from newton.memory.recall import Found, details
from newton.memory.representations import forms
from newton.memory.transitions import END_OF_TIME

SQL = load("newton.heart", "events.sql")

HIGHLIGHTS = 3  # events of another session that tell most of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An event as it is told: `ref` names the telling, so that it is kept once."""

    ref: str
    event: Event
    session_id: UUID | None = None

    def trust(self, ctx: Teller) -> Trust:
        return least([ctx.trust, "tool"]) if carries_output(self.event) else ctx.trust


async def record(tx: Tx, happenings: Sequence[Happening], *, ctx: Teller) -> int:
    """Keeps the events that are not there yet and returns how many those were.

    Raises ConflictError when a known ref comes with another event.
    """
    each = [_draft(h, ctx=ctx) for h in happenings]
    refs = [(h.ref, draft.content_hash) for h, draft in zip(happenings, each, strict=True)]
    await store.told_before(tx, refs, agent_id=ctx.agent_id, kind="event")
    drafts = {h.ref: draft for h, draft in zip(happenings, each, strict=True)}
    written = await store.remember(tx, agent_id=ctx.agent_id, drafts=list(drafts.values()))
    new = {h.ref: h for h in happenings if drafts[h.ref].memory_id in written}
    rows = [
        {
            "memory_id": str(drafts[ref].memory_id),
            "session_id": str(h.session_id) if h.session_id else None,
            "type": h.event.type,
            "payload": h.event.payload,
        }
        for ref, h in new.items()
    ]
    await SQL["insert_events"].run(tx, agent_id=ctx.agent_id, events=json.dumps(rows))
    return len(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What is looked for around a session: so many of its latest events, and the highlights of so many others; of both
    first those of the `types`, the most telling of which comes first."""

    agent_id: UUID
    session_id: UUID
    events: int
    sessions: int
    moment: datetime | None = None
    hidden: Sequence[UUID] = ()
    types: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """The latest events of the session, the last first, and the highlights of others, the last session first. Each
    memory stands here once."""

    own: Sequence[Found] = ()
    others: Sequence[Sequence[Found]] = ()


async def recent(tx: Tx, around: Around) -> Recent:
    rows = await SQL["list_recent_events"].all(
        tx,
        agent_id=around.agent_id,
        session_id=around.session_id,
        moment=around.moment or END_OF_TIME,
        excluded_ids=around.hidden,
        max_rows=around.events,
        max_sessions=around.sessions,
        max_per_session=HIGHLIGHTS,
        types=around.types,
    )
    of = {row["memory_id"]: row["nth"] for row in rows}
    sessions: dict[int, list[Found]] = {}
    for found in await details(tx, list(of), agent_id=around.agent_id, moment=around.moment):
        sessions.setdefault(of[found.memory_id], []).append(found)
    own = sessions.pop(0, [])
    return Recent(own=own, others=[sessions[nth] for nth in sorted(sessions)])


def _draft(happening: Happening, *, ctx: Teller) -> Draft:
    line = told(happening.event)
    return Draft(
        memory_id=new_id(),
        kind="event",
        state="ACTIVE",
        forms=forms(line, count=ctx.count_tokens),
        full_text=line,
        indexed=line,
        cue=line,
        occurred_at=happening.event.at,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=happening.trust(ctx),
        content_hash=digest(happening.ref, line),
        ref=happening.ref,
    )
