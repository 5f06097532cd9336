"""Store of events. An event that contains the output of a tool has trust `tool` and is quarantined: an observation.

No search finds an observation unless it is asked for: it is evidence of what a tool did, never knowledge.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.events.event_types import (
    EventData,
    find_outcome,
    has_output,
    render_details,
    render_line,
    render_text,
    split_identifiers,
)
from newton.memory import store
from newton.memory.memory import NewMemory, Trust, WriteContext, digest, lowest_trust
from newton.memory.memory_reader import fetch_memories
from newton.memory.representations import make_short_forms
from newton.memory.search_types import RetrievedMemory
from newton.memory.store import END_OF_TIME
from newton.text.time_expressions import TimeRange
from newton.text.words import prepare_words

if TYPE_CHECKING:
    from newton.providers.embedding import Vector

SQL = load("newton.heart.events", "event_store.sql")

MAX_HIGHLIGHTS = 3  # of another session
MAX_TOKENS = 160  # of the line of an event in a context, with its time


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event to store; `ref` is the idempotency key.

    For an event made from a message of the session, `position` is that of the message and `source_id` the id of its
    memory. With `is_tool_result`, the whole payload is tool output, whatever its fields are called. An event with
    output has at most `output_trust`: for a tool of Newton, the trust of the texts that the output shows.
    """

    ref: str
    event: EventData
    session_id: UUID | None = None
    position: int | None = None
    source_id: UUID | None = None
    is_tool_result: bool = False
    output_trust: Trust = "tool"

    def effective_trust(self, ctx: WriteContext) -> Trust:
        """Return the trust of the event: that of its writer, but at most `output_trust` if it contains an output."""
        is_output = self.is_tool_result or has_output(self.event)
        return lowest_trust([ctx.trust, self.output_trust]) if is_output else ctx.trust


async def record_events(tx: Tx, events: Sequence[NewEvent], *, ctx: WriteContext) -> int:
    """Store the events that do not exist yet and return their number.

    Raises ConflictError if a `ref` is stored with another content.
    """
    if not events:
        return 0
    refs = [(event.ref, _content_hash(event)) for event in events]
    await store.find_by_ref(tx, refs, agent_id=ctx.agent_id, kind="event")
    drafts = {event.ref: _to_new_memory(event, ctx=ctx) for event in events}
    written = await store.remember(tx, agent_id=ctx.agent_id, memories=list(drafts.values()))
    rows = [
        {
            "memory_id": str(drafts[new.ref].memory_id),
            "session_id": str(new.session_id) if new.session_id else None,
            "type": new.event.type,
            "payload": new.event.payload,
            "position": new.position,
        }
        for new in {event.ref: event for event in events}.values()
        if drafts[new.ref].memory_id in written
    ]
    await SQL["insert_events"].execute(tx, agent_id=ctx.agent_id, events=json.dumps(rows))
    return len(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """A query for the latest events of a session, and for the most informative ones of other sessions.

    Events of `preferred_types` and sessions in `preferred_sessions` come first. Memories in `excluded_ids` are skipped.
    """

    agent_id: UUID
    session_id: UUID
    max_events: int
    max_sessions: int
    moment: datetime | None = None
    excluded_ids: Sequence[UUID] = ()
    preferred_types: Sequence[str] = ()
    preferred_sessions: Sequence[UUID] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentEvents:
    """The latest events of a session, newest first, and the most informative ones of others, one list per session."""

    current_session: Sequence[RetrievedMemory] = ()
    other_sessions: Sequence[Sequence[RetrievedMemory]] = ()


async def find_recent(tx: Tx, query: EventQuery) -> RecentEvents:
    """Return the latest events of the session of the query, and the most informative ones of other sessions."""
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
        preferred_sessions=query.preferred_sessions,
    )
    ordinals = {row["memory_id"]: row["nth"] for row in rows}
    sessions: defaultdict[int, list[RetrievedMemory]] = defaultdict(list)
    for memory in await fetch_memories(tx, list(ordinals), agent_id=query.agent_id, moment=query.moment):
        sessions[ordinals[memory.memory_id]].append(memory)
    current = sessions.pop(0, [])
    return RecentEvents(current_session=current, other_sessions=[sessions[nth] for nth in sorted(sessions)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationQuery:
    """A search for events: the last ones of a session, and those of all sessions that match a text or a time.

    Without `session_id`, the last events are left out; without `vector`, only words are compared. With `moment`, events
    stored later are not found. `max_own` limits the events of the session, `max_found` those of each search.
    """

    agent_id: UUID
    session_id: UUID | None
    text: str
    vector: "Vector | None"
    model_id: UUID | None
    moment: datetime | None
    excluded_ids: Sequence[UUID]
    max_own: int
    max_found: int
    time_ranges: Sequence[TimeRange] = ()


class ObservationHit(NamedTuple):
    """An event that was found.

    `age` is its place among the events of the session, 0 for the last one; None for another session. `cause_id` is the
    id of the matching failed action that it followed, if it is from another session. `similarity` is the cosine
    similarity to the query, `lexical` the share of the query's words, weighted by rarity, that it contains.
    """

    memory_id: UUID
    type: str
    session_id: UUID | None
    position: int | None
    age: int | None
    cause_id: UUID | None
    similarity: float
    lexical: float


async def find_observations(tx: Tx, query: ObservationQuery) -> list[ObservationHit]:
    """Return the last events of the session, events that match the query, and those that followed matching failures."""
    rows = await SQL["search_observations"].fetch_all(
        tx,
        agent_id=query.agent_id,
        session_id=query.session_id,
        model_id=query.model_id,
        embedding=query.vector,
        input=prepare_words(f"{query.text}\n{split_identifiers(query.text)}"),
        moment=query.moment or END_OF_TIME,
        excluded_ids=query.excluded_ids,
        max_own=query.max_own,
        max_found=query.max_found,
        time_ranges=json.dumps([_to_row(span) for span in query.time_ranges]),
    )
    return [ObservationHit(*row) for row in rows]


def _to_row(span: TimeRange) -> dict[str, str]:
    ends = {"starts_at": span.start, "ends_at": span.end}
    return {name: at.isoformat() for name, at in ends.items() if at}


def _content_hash(event: NewEvent) -> bytes:
    return digest(event.ref, render_text(event.event))  # without the time, as for messages


def _to_new_memory(event: NewEvent, *, ctx: WriteContext) -> NewMemory:
    line, details = render_line(event.event), render_details(event.event)
    return NewMemory(
        kind="event",
        forms=make_short_forms(line, count_tokens=ctx.count_tokens, max_tokens=MAX_TOKENS, keep_end=True),
        full_text=details,
        indexed_text=f"{details}\n{split_identifiers(details)}",
        embedding_text=render_line(event.event, with_time=False),
        occurred_at=event.event.occurred_at,
        outcome=find_outcome(event.event),
        sources=(event.source_id,) if event.source_id else (),
        ctx=replace(ctx, trust=event.effective_trust(ctx)),
        content_hash=_content_hash(event),
        ref=event.ref,
    )
