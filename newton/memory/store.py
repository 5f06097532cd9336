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
from newton.memory.memory import UNTRUSTED_TIERS, Kind, NewMemory, Outcome, ShortForms, WriteContext

SQL = load("newton.memory", "store.sql")


LinkType = Literal[
    "supersedes", "was_wrong", "corroborates", "near", "evidence", "part_of", "depends_on", "relates", "contradicts"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """One time something known was said again. `ref` names the telling, so that it counts once.

    `source` is where it was said: tellings of one source are not independent of each other.
    """

    memory_id: UUID
    ref: str
    source: str


async def remember(tx: Tx, *, agent_id: UUID, memories: Sequence[NewMemory]) -> set[UUID]:
    """Writes the drafts and returns the ids of those that are new.

    One whose content or ref the agent has in that kind is left out: the database decides, so two writers cannot both.
    """
    if not memories:
        return set()
    rows = await SQL["insert_memories"].fetch_all(
        tx, agent_id=agent_id, drafts=json.dumps([_to_row(d) for d in memories])
    )
    new = {row["memory_id"] for row in rows}
    links = [(d.memory_id, source) for d in memories if d.memory_id in new for source in d.sources]
    if links:
        await SQL["insert_sources"].execute(
            tx, agent_id=agent_id, memory_ids=[link[0] for link in links], source_ids=[link[1] for link in links]
        )
    return new


async def find_by_ref(tx: Tx, refs: Sequence[tuple[str, bytes]], *, agent_id: UUID, kind: Kind) -> set[str]:
    """Of refs with the hash of what each tells, those that have told it before.

    Raises ConflictError when one comes with other words than it came with before, or twice with different ones.
    """
    words: dict[str, bytes] = {}
    for ref, content_hash in refs:
        if words.setdefault(ref, content_hash) != content_hash:
            raise ref_conflict_error(kind, ref)
    rows = await SQL["find_by_ref"].fetch_all(tx, agent_id=agent_id, kind=kind, refs=list(words))
    known: defaultdict[str, set[bytes]] = defaultdict(set)
    for row in rows:
        known[row["ref"]].add(row["content_hash"])
    for ref, said in known.items():
        if words[ref] not in said:
            raise ref_conflict_error(kind, ref)
    return set(known)


def ref_conflict_error(kind: Kind, ref: str) -> ConflictError:
    return ConflictError(f"The {kind} {ref!r} is there with other words.", hint="Send it under a ref of its own.")


async def confirm(tx: Tx, confirmations: Sequence[Confirmation], *, ctx: WriteContext) -> set[str]:
    """Counts what was met again; returns the refs not counted before."""
    if not confirmations:
        return set()
    rows = await SQL["insert_confirmations"].fetch_all(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[telling.memory_id for telling in confirmations],
        refs=[telling.ref for telling in confirmations],
        sources=[telling.source for telling in confirmations],
        now=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
    )
    return {row["ref"] for row in rows}


async def add_links(tx: Tx, link_type: LinkType, pairs: Sequence[tuple[UUID, UUID]], *, ctx: WriteContext) -> None:
    """Links the first of each pair to the second; a link that is there already stays as it was."""
    if pairs:
        await SQL["insert_links"].execute(
            tx,
            agent_id=ctx.agent_id,
            memory_ids=[memory_id for memory_id, _ in pairs],
            link=link_type,
            other_ids=[other_id for _, other_id in pairs],
            now=ctx.now,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdate:
    """What a memory is from now on called in short, in full, and as what it turned out."""

    memory_id: UUID
    forms: ShortForms
    full_text: str | None = None
    outcome: Outcome | None = None


async def update_memories(tx: Tx, updates: Sequence[MemoryUpdate], *, ctx: WriteContext) -> None:
    """Puts other short forms in the place of a memory's own, which are kept as its former ones; a full text or an
    outcome of None stays as it was.

    It is found by the words that it was written with.
    """
    await SQL["update_texts"].execute(
        tx,
        agent_id=ctx.agent_id,
        version_ids=[new_id() for _ in updates],
        now=ctx.now,
        memory_ids=[one.memory_id for one in updates],
        micros=[one.forms.micro for one in updates],
        summaries=[one.forms.summary for one in updates],
        micro_tokens=[one.forms.micro_tokens for one in updates],
        summary_tokens=[one.forms.summary_tokens for one in updates],
        full_texts=[one.full_text for one in updates],
        outcomes=[one.outcome for one in updates],
    )


async def record_access(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID, now: datetime) -> None:
    """Counts that these were shown, and when."""
    if memory_ids:
        await SQL["record_access"].execute(tx, agent_id=agent_id, memory_ids=memory_ids, now=now)


async def count_by_kind(tx: Tx, *, agent_id: UUID) -> Mapping[str, int]:
    rows = await SQL["count_by_kind"].fetch_all(tx, agent_id=agent_id)
    return {row["kind"]: row["memories"] for row in rows}


def _to_row(memory: NewMemory) -> dict[str, object]:
    return {
        "memory_id": str(memory.memory_id),
        "kind": memory.kind,
        "state": memory.state,
        "micro": memory.forms.micro,
        "summary": memory.forms.summary,
        "full_text": memory.full_text,
        "micro_tokens": memory.forms.micro_tokens,
        "summary_tokens": memory.forms.summary_tokens,
        "indexed": memory.indexed_text,
        "cue": memory.embedding_text,
        "occurred_at": memory.occurred_at.isoformat(),
        "created_at": memory.created_at.isoformat(),
        "origin": memory.origin,
        "trust": memory.trust,
        "quarantined": memory.needs_approval or memory.trust in UNTRUSTED_TIERS,
        "content_hash": memory.content_hash.hex(),
        "ref": memory.ref,
        "confidence": memory.confidence,
        "importance": memory.importance,
        "outcome": memory.outcome,
        "thread": str(memory.thread_id) if memory.thread_id else None,
        "place": memory.position,
        "times": [
            {"starts": s.start.isoformat(), "ends": s.end.isoformat()}
            for s in memory.mentioned_times
            if s.start and s.end
        ],
    }
