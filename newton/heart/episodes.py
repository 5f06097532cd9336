"""Episodes: experiences with a title, a time and participants."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id
from newton.memory import store
from newton.memory.lookup import MemoryDetail
from newton.memory.memory import NewMemory, Outcome, WriteContext, digest
from newton.memory.representations import (
    date_prefix,
    keep_lines,
    make_long_forms,
    make_short_forms,
    one_line,
    split_date_prefix,
)
from newton.memory.store import MemoryUpdate

SQL = load("newton.heart", "episodes.sql")

_OUTCOME_PREFIX = re.compile(r"\((?:success|partial|failure)\) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRange:
    """The messages of a session that an episode covers, from position `first` to position `last`, both included."""

    session_id: UUID
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEpisode:
    """An episode to store. `ref` is the idempotency key.

    `message_range` and `sources` are set if the episode was made from a session, `memory_id` if its id is already
    chosen.
    """

    ref: str
    title: str
    content: str
    started_at: datetime
    ended_at: datetime
    participants: tuple[str, ...] = ()
    outcome: Outcome | None = None
    importance: float | None = None
    message_range: EpisodeRange | None = None
    sources: tuple[UUID, ...] = ()
    memory_id: UUID | None = None

    @property
    def content_hash(self) -> bytes:
        return digest(self.ref, self.title, one_line(self.content))


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeSummary:
    """The title, summary and outcome of an episode, extracted by a model."""

    title: str
    summary: str
    outcome: Outcome | None


async def add_episodes(tx: Tx, episodes: Sequence[NewEpisode], *, ctx: WriteContext) -> int:
    """Store the episodes that do not exist yet and return their number.

    Raises ConflictError if a `ref` is stored with another content.
    """
    # the ref of a session's episode is its first message, so the first caller to close the session wins
    refs = [(e.ref, e.content_hash) for e in episodes if e.message_range is None]
    await store.find_by_ref(tx, refs, agent_id=ctx.agent_id, kind="episode")
    drafts = {e.ref: _to_new_memory(e, ctx=ctx) for e in episodes}
    written = await store.remember(tx, agent_id=ctx.agent_id, memories=list(drafts.values()))
    new = {e.ref: e for e in episodes if drafts[e.ref].memory_id in written}
    rows = [_to_row(e, drafts[ref]) for ref, e in new.items()]
    await SQL["insert_episodes"].execute(tx, agent_id=ctx.agent_id, episodes=json.dumps(rows))
    return len(rows)


async def find_episode_id(tx: Tx, episode: NewEpisode, *, agent_id: UUID) -> UUID:
    """Return the id of the stored episode with the same content. It must exist."""
    row = await SQL["find_by_hash"].fetch_one(tx, agent_id=agent_id, content_hash=episode.content_hash)
    assert row is not None
    return row["memory_id"]


async def to_new_episode(tx: Tx, memory: MemoryDetail, *, ref: str, agent_id: UUID) -> NewEpisode:
    """Return a stored episode as a new one, without its session, to be stored elsewhere."""
    row = await SQL["get_episode"].fetch_one(tx, agent_id=agent_id, memory_id=memory.memory_id)
    assert row is not None, "the caller has read the episode"
    times = {"started_at": row["started_at"], "ended_at": row["ended_at"] or row["started_at"]}
    people = tuple(row["participants"])
    return NewEpisode(
        ref=ref, title=row["title"], content=memory.full_text, participants=people, outcome=memory.outcome, **times
    )


async def set_summary(tx: Tx, memory_id: UUID, summary: EpisodeSummary, *, ctx: WriteContext) -> None:
    """Set the title and summary of an episode, and its outcome if it has none; the full text does not change."""
    title = one_line(summary.title)
    row = await SQL["set_title"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=memory_id, title=title)
    assert row is not None, "the caller has read the episode"
    line = f"{summary.title}: {one_line(summary.summary)}"
    prefix = date_prefix(f"{row['started_at']:%Y-%m-%d}")
    forms = make_short_forms(line, count_tokens=ctx.count_tokens, prefix=prefix)
    outcome = row["outcome"] or summary.outcome  # what was set before is not replaced by what a model says
    await store.update_memories(tx, [MemoryUpdate(memory_id=memory_id, forms=forms, outcome=outcome)], ctx=ctx)


async def set_outcome(tx: Tx, memory_id: UUID, outcome: Outcome, *, summary: str, ctx: WriteContext) -> None:
    """Set the outcome of an episode, and write it at the beginning of its summary and micro form.

    `summary` is the current summary of the episode.
    """
    day, text = split_date_prefix(summary)
    line = f"({outcome}) {_OUTCOME_PREFIX.sub('', text)}"
    forms = make_short_forms(line, count_tokens=ctx.count_tokens, prefix=date_prefix(day) if day else "")
    await store.update_memories(tx, [MemoryUpdate(memory_id=memory_id, forms=forms, outcome=outcome)], ctx=ctx)


def _to_new_memory(episode: NewEpisode, *, ctx: WriteContext) -> NewMemory:
    text = f"{episode.title}: {keep_lines(episode.content)}"
    prefix = date_prefix(f"{episode.started_at:%Y-%m-%d}")
    # the messages of a session are memories of their own, so its summary is not divided
    told = episode.content if episode.message_range is None else ""
    return NewMemory(
        memory_id=episode.memory_id or new_id(),
        kind="episode",
        forms=make_short_forms(text, count_tokens=ctx.count_tokens, prefix=prefix),
        long_forms=make_long_forms(told, count_tokens=ctx.count_tokens, prefix=prefix, title=f"{episode.title}: "),
        full_text=episode.content,
        indexed_text=text,
        embedding_text=one_line(text),
        occurred_at=episode.started_at,
        ctx=ctx,
        content_hash=episode.content_hash,
        ref=episode.ref,
        outcome=episode.outcome,
        importance=episode.importance,
        sources=episode.sources,
    )


def _to_row(episode: NewEpisode, memory: NewMemory) -> dict[str, object]:
    span = episode.message_range
    return {
        "memory_id": str(memory.memory_id),
        "session_id": str(span.session_id) if span else None,
        "first_position": span.first if span else None,
        "last_position": span.last if span else None,
        "title": episode.title,
        "started_at": episode.started_at.isoformat(),
        "ended_at": episode.ended_at.isoformat(),
        "participants": episode.participants,
    }
