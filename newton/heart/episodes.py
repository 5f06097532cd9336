"""Episodes: what was lived through, as one experience with a title, a time and the people in it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import Draft, Outcome, Teller, digest
from newton.memory.representations import forms, one_line
from newton.memory.store import Retold

SQL = load("newton.heart", "episodes.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The lines of a session that an episode was made from, both ends included."""

    session_id: UUID
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """What an episode tells. `span` and `sources` are there when it was made from a session, `memory_id` when it had
    an id before it was a memory."""

    ref: str
    title: str
    content: str
    started_at: datetime
    ended_at: datetime
    participants: tuple[str, ...] = ()
    outcome: Outcome | None = None
    importance: float | None = None
    span: Span | None = None
    sources: tuple[UUID, ...] = ()
    memory_id: UUID | None = None

    @property
    def content_hash(self) -> bytes:
        return digest(self.ref, self.title, one_line(self.content))


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What somebody who has read a conversation calls it, and how it turned out."""

    title: str
    summary: str
    outcome: Outcome | None


async def keep(tx: Tx, experiences: Sequence[Experience], *, ctx: Teller) -> int:
    """Writes the episodes that are not there yet and returns how many those were.

    Raises ConflictError when a known ref comes with other words.
    """
    # of a session's own episode the first line is the ref: who closed it first has told it
    told_by_callers = [(e.ref, e.content_hash) for e in experiences if e.span is None]
    await store.told_before(tx, told_by_callers, agent_id=ctx.agent_id, kind="episode")
    drafts = {e.ref: _draft(e, ctx=ctx) for e in experiences}
    written = await store.remember(tx, agent_id=ctx.agent_id, drafts=list(drafts.values()))
    told = {e.ref: e for e in experiences if drafts[e.ref].memory_id in written}
    rows = [_row(e, drafts[ref]) for ref, e in told.items()]
    await SQL["insert_episodes"].run(tx, agent_id=ctx.agent_id, episodes=json.dumps(rows))
    return len(rows)


async def telling(tx: Tx, experience: Experience, *, agent_id: UUID) -> UUID:
    """The episode that tells this experience. It must have been kept."""
    row = await SQL["find_by_hash"].one(tx, agent_id=agent_id, content_hash=experience.content_hash)
    assert row is not None
    return row["memory_id"]


async def structure(tx: Tx, memory_id: UUID, told: Told, *, ctx: Teller) -> None:
    """Gives an episode the title, summary and outcome that a reader found; its full text stays as it was."""
    row = await SQL["set_title"].one(tx, agent_id=ctx.agent_id, memory_id=memory_id, title=one_line(told.title))
    assert row is not None, "whoever has read an episode has its id"
    line = f"{told.title}: {one_line(told.summary)}"
    prefixed = forms(line, count=ctx.count_tokens, prefix=_day(row["started_at"]))
    await store.retell(tx, [Retold(memory_id=memory_id, forms=prefixed, outcome=told.outcome)], ctx=ctx)


def _day(at: datetime) -> str:
    return f"[{at:%Y-%m-%d}] "


def _draft(experience: Experience, *, ctx: Teller) -> Draft:
    told = f"{experience.title}: {one_line(experience.content)}"
    return Draft(
        memory_id=experience.memory_id or new_id(),
        kind="episode",
        state="ACTIVE",
        forms=forms(told, count=ctx.count_tokens, prefix=_day(experience.started_at)),
        full_text=experience.content,
        indexed=told,
        cue=told,
        occurred_at=experience.started_at,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
        content_hash=experience.content_hash,
        ref=experience.ref,
        outcome=experience.outcome,
        importance=experience.importance,
        sources=experience.sources,
    )


def _row(experience: Experience, draft: Draft) -> dict[str, object]:
    span = experience.span
    return {
        "memory_id": str(draft.memory_id),
        "session_id": str(span.session_id) if span else None,
        "first_position": span.first if span else None,
        "last_position": span.last if span else None,
        "title": experience.title,
        "started_at": experience.started_at.isoformat(),
        "ended_at": experience.ended_at.isoformat(),
        "participants": experience.participants,
    }
