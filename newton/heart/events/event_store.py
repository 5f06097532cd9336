"""Events with their payloads. An event with text from outside has trust `tool` and is quarantined."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.events.event_types import EventData, has_output, render_line
from newton.memory import store
from newton.memory.memory import NewMemory, Trust, WriteContext, digest, lowest_trust
from newton.memory.recall import fetch_memories
from newton.memory.representations import make_short_forms
from newton.memory.search_types import RetrievedMemory
from newton.memory.transitions import END_OF_TIME

SQL = load("newton.heart.events", "event_store.sql")

MAX_HIGHLIGHTS = 3  # highlights of another session


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event to store; `ref` is its idempotency key."""

    ref: str
    event: EventData
    session_id: UUID | None = None

    def effective_trust(self, ctx: WriteContext) -> Trust:
        return lowest_trust([ctx.trust, "tool"]) if has_output(self.event) else ctx.trust


async def record_events(tx: Tx, events: Sequence[NewEvent], *, ctx: WriteContext) -> int:
    """Store the events that do not exist yet and return their number.

    Raises ConflictError when a known ref has another event.
    """
    each = [_to_new_memory(h, ctx=ctx) for h in events]
    refs = [(h.ref, draft.content_hash) for h, draft in zip(events, each, strict=True)]
    await store.find_by_ref(tx, refs, agent_id=ctx.agent_id, kind="event")
    drafts = {h.ref: draft for h, draft in zip(events, each, strict=True)}
    written = await store.remember(tx, agent_id=ctx.agent_id, memories=list(drafts.values()))
    new = {h.ref: h for h in events if drafts[h.ref].memory_id in written}
    rows = [
        {
            "memory_id": str(drafts[ref].memory_id),
            "session_id": str(h.session_id) if h.session_id else None,
            "type": h.event.type,
            "payload": h.event.payload,
        }
        for ref, h in new.items()
    ]
    await SQL["insert_events"].execute(tx, agent_id=ctx.agent_id, events=json.dumps(rows))
    return len(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """How many latest events of a session, and highlights of how many other sessions, to read. Events of the `types`
    come first, in their order.
    """

    agent_id: UUID
    session_id: UUID
    max_events: int
    max_sessions: int
    moment: datetime | None = None
    excluded_ids: Sequence[UUID] = ()
    preferred_types: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentEvents:
    """The latest events of the session, newest first, and highlights of others, newest session first, without
    duplicates.
    """

    current_session: Sequence[RetrievedMemory] = ()
    other_sessions: Sequence[Sequence[RetrievedMemory]] = ()


async def find_recent(tx: Tx, query: EventQuery) -> RecentEvents:
    rows = await SQL["list_recent_events"].fetch_all(
        tx,
        agent_id=query.agent_id,
        session_id=query.session_id,
        moment=query.moment or END_OF_TIME,
        excluded_ids=query.excluded_ids,
        max_rows=query.max_events,
        max_sessions=query.max_sessions,
        max_per_session=MAX_HIGHLIGHTS,
        types=query.preferred_types,
    )
    of = {row["memory_id"]: row["nth"] for row in rows}
    sessions: dict[int, list[RetrievedMemory]] = {}
    for found in await fetch_memories(tx, list(of), agent_id=query.agent_id, moment=query.moment):
        sessions.setdefault(of[found.memory_id], []).append(found)
    own = sessions.pop(0, [])
    return RecentEvents(current_session=own, other_sessions=[sessions[nth] for nth in sorted(sessions)])


def _to_new_memory(event: NewEvent, *, ctx: WriteContext) -> NewMemory:
    line = render_line(event.event)
    return NewMemory(
        kind="event",
        forms=make_short_forms(line, count_tokens=ctx.count_tokens),
        full_text=line,
        indexed_text=line,
        embedding_text=line,
        occurred_at=event.event.occurred_at,
        ctx=replace(ctx, trust=event.effective_trust(ctx)),
        content_hash=digest(event.ref, line),
        ref=event.ref,
    )
