"""Writing memories: once each, with their words and their place in the embedding outbox."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError
from newton.ids import new_id
from newton.memory.memory import OUTSIDE, Draft, Forms, Kind, Outcome, Teller

SQL = load("newton.memory", "store.sql")


Link = Literal[
    "supersedes", "was_wrong", "corroborates", "near", "evidence", "part_of", "depends_on", "relates", "contradicts"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """One time something known was said again. `ref` names the telling, so that it counts once.

    `source` is where it was said: tellings of one source are not independent of each other.
    """

    memory_id: UUID
    ref: str
    source: str


async def remember(tx: Tx, *, agent_id: UUID, drafts: Sequence[Draft]) -> set[UUID]:
    """Writes the drafts and returns the ids of those that are new.

    One whose content or ref the agent has in that kind is left out: the database decides, so two writers cannot both.
    """
    if not drafts:
        return set()
    rows = await SQL["insert_memories"].all(tx, agent_id=agent_id, drafts=json.dumps([_row(d) for d in drafts]))
    new = {row["memory_id"] for row in rows}
    links = [(d.memory_id, source) for d in drafts if d.memory_id in new for source in d.sources]
    if links:
        await SQL["insert_sources"].run(
            tx, agent_id=agent_id, memory_ids=[link[0] for link in links], source_ids=[link[1] for link in links]
        )
    return new


async def told_before(tx: Tx, told: Sequence[tuple[str, bytes]], *, agent_id: UUID, kind: Kind) -> set[str]:
    """Of refs with the hash of what each tells, those that have told it before.

    Raises ConflictError when one comes with other words than it came with before, or twice with different ones.
    """
    words: dict[str, bytes] = {}
    for ref, content_hash in told:
        if words.setdefault(ref, content_hash) != content_hash:
            raise other_words(kind, ref)
    rows = await SQL["find_by_ref"].all(tx, agent_id=agent_id, kind=kind, refs=list(words))
    known: defaultdict[str, set[bytes]] = defaultdict(set)
    for row in rows:
        known[row["ref"]].add(row["content_hash"])
    for ref, said in known.items():
        if words[ref] not in said:
            raise other_words(kind, ref)
    return set(known)


def other_words(kind: Kind, ref: str) -> ConflictError:
    return ConflictError(f"The {kind} {ref!r} is there with other words.", hint="Send it under a ref of its own.")


async def confirm(tx: Tx, tellings: Sequence[Telling], *, ctx: Teller) -> set[str]:
    """Counts what was met again; returns the refs not counted before."""
    if not tellings:
        return set()
    rows = await SQL["insert_confirmations"].all(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[telling.memory_id for telling in tellings],
        refs=[telling.ref for telling in tellings],
        sources=[telling.source for telling in tellings],
        now=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
    )
    return {row["ref"] for row in rows}


async def connect(tx: Tx, link: Link, pairs: Sequence[tuple[UUID, UUID]], *, ctx: Teller) -> None:
    """Links the first of each pair to the second; a link that is there already stays as it was."""
    if pairs:
        await SQL["insert_links"].run(
            tx,
            agent_id=ctx.agent_id,
            memory_ids=[memory_id for memory_id, _ in pairs],
            link=link,
            other_ids=[other_id for _, other_id in pairs],
            now=ctx.now,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Retold:
    """What a memory is from now on called in short, in full, and as what it turned out."""

    memory_id: UUID
    forms: Forms
    full_text: str | None = None
    outcome: Outcome | None = None


async def retell(tx: Tx, retold: Sequence[Retold], *, ctx: Teller) -> None:
    """Puts other short forms in the place of a memory's own, which are kept as its former ones; a full text or an
    outcome of None stays as it was.

    It is found by the words that it was written with.
    """
    await SQL["update_texts"].run(
        tx,
        agent_id=ctx.agent_id,
        version_ids=[new_id() for _ in retold],
        now=ctx.now,
        memory_ids=[one.memory_id for one in retold],
        micros=[one.forms.micro for one in retold],
        summaries=[one.forms.summary for one in retold],
        micro_tokens=[one.forms.micro_tokens for one in retold],
        summary_tokens=[one.forms.summary_tokens for one in retold],
        full_texts=[one.full_text for one in retold],
        outcomes=[one.outcome for one in retold],
    )


async def note_read(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID, now: datetime) -> None:
    """Counts that these were shown, and when."""
    if memory_ids:
        await SQL["record_access"].run(tx, agent_id=agent_id, memory_ids=memory_ids, now=now)


async def counts(tx: Tx, *, agent_id: UUID) -> Mapping[str, int]:
    rows = await SQL["count_by_kind"].all(tx, agent_id=agent_id)
    return {row["kind"]: row["memories"] for row in rows}


def _row(draft: Draft) -> dict[str, object]:
    return {
        "memory_id": str(draft.memory_id),
        "kind": draft.kind,
        "state": draft.state,
        "micro": draft.forms.micro,
        "summary": draft.forms.summary,
        "full_text": draft.full_text,
        "micro_tokens": draft.forms.micro_tokens,
        "summary_tokens": draft.forms.summary_tokens,
        "indexed": draft.indexed,
        "cue": draft.cue,
        "occurred_at": draft.occurred_at.isoformat(),
        "created_at": draft.created_at.isoformat(),
        "origin": draft.origin,
        "trust": draft.trust,
        "quarantined": draft.held or draft.trust in OUTSIDE,
        "content_hash": draft.content_hash.hex(),
        "ref": draft.ref,
        "confidence": draft.confidence,
        "importance": draft.importance,
        "outcome": draft.outcome,
        "thread": str(draft.thread) if draft.thread else None,
        "place": draft.place,
        "times": [{"starts": s.start.isoformat(), "ends": s.end.isoformat()} for s in draft.times if s.start and s.end],
    }
