"""Writing memories: once each, with their words and their place in the embedding outbox."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import Draft, Kind

SQL = load("newton.memory", "store.sql")


@dataclass(frozen=True, slots=True)
class Known:
    """A memory that is there already."""

    memory_id: UUID
    content_hash: bytes
    ref: str | None


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


async def known_by_hash(tx: Tx, *, agent_id: UUID, kind: Kind, hashes: Sequence[bytes]) -> dict[bytes, Known]:
    rows = await SQL["by_hash"].all(tx, agent_id=agent_id, kind=kind, hashes=hashes)
    return {row["content_hash"]: Known(**row) for row in rows}


async def known_by_ref(tx: Tx, *, agent_id: UUID, kind: Kind, refs: Sequence[str]) -> dict[str, Known]:
    rows = await SQL["by_ref"].all(tx, agent_id=agent_id, kind=kind, refs=refs)
    return {row["ref"]: Known(**row) for row in rows}


async def confirm(tx: Tx, *, agent_id: UUID, memory_ids: Sequence[UUID], now: datetime) -> None:
    """What was met again counts once more; a new fact becomes a confirmed one."""
    await SQL["confirm"].run(tx, agent_id=agent_id, memory_ids=memory_ids, now=now)


async def counts(tx: Tx, *, agent_id: UUID) -> Mapping[str, int]:
    rows = await SQL["counts"].all(tx, agent_id=agent_id)
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
        "parts": draft.parts,
        "occurred_at": draft.occurred_at.isoformat(),
        "created_at": draft.created_at.isoformat(),
        "origin": draft.origin,
        "trust": draft.trust,
        "content_hash": draft.content_hash.hex(),
        "ref": draft.ref,
        "confidence": draft.confidence,
        "importance": draft.importance,
    }
