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
from newton.memory.memory import Draft, Teller, digest
from newton.memory.representations import Count, forms, one_line

SQL = load("newton.heart", "episodes.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The lines of a session that an episode was made from, both ends included."""

    session_id: UUID
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """What an episode tells. `span` and `sources` are there when it was made from a session."""

    ref: str
    title: str
    content: str
    started_at: datetime
    ended_at: datetime
    participants: tuple[str, ...] = ()
    span: Span | None = None
    sources: tuple[UUID, ...] = ()

    @property
    def content_hash(self) -> bytes:
        return digest(self.ref, self.title, one_line(self.content))


async def keep(tx: Tx, experiences: Sequence[Experience], *, by: Teller, count: Count) -> int:
    """Writes the episodes that are not there yet and returns how many those were."""
    drafts = {e.ref: _draft(e, by=by, count=count) for e in experiences}
    written = await store.remember(tx, agent_id=by.agent_id, drafts=list(drafts.values()))
    rows = [_row(e, drafts[e.ref]) for e in experiences if drafts[e.ref].memory_id in written]
    await SQL["insert_episodes"].run(tx, agent_id=by.agent_id, episodes=json.dumps(rows))
    return len(rows)


def _draft(experience: Experience, *, by: Teller, count: Count) -> Draft:
    told = f"{experience.title}: {one_line(experience.content)}"
    return Draft(
        memory_id=new_id(),
        kind="episode",
        state="ACTIVE",
        forms=forms(told, count=count, prefix=f"[{experience.started_at:%Y-%m-%d}] "),
        full_text=experience.content,
        indexed=told,
        cue=told,
        occurred_at=experience.started_at,
        created_at=by.now,
        origin=by.origin,
        trust=by.trust,
        content_hash=experience.content_hash,
        ref=experience.ref,
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
