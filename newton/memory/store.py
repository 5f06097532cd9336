"""Store of memories, with the words of their search index, their links, and their places in the embedding outbox."""

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
from newton.languages.detection import detect_language
from newton.languages.search_words import MAX_TEXT_CHARACTERS, prepare_words
from newton.memory.memory import Kind, NewMemory, Outcome, ShortForms, WriteContext
from newton.memory.quarantine import is_quarantined

SQL = load("newton.memory", "store.sql")

LinkType = Literal[
    "supersedes",
    "was_wrong",
    "corroborates",
    "near",
    "evidence",
    "part_of",
    "depends_on",
    "relates",
    "contradicts",
    "compatible",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfirmation:
    """A repeated statement of a known memory. `ref` is its idempotency key.

    Confirmations from one `source` are not independent of each other."""

    memory_id: UUID
    ref: str
    source: str


async def remember(tx: Tx, *, agent_id: UUID, memories: Sequence[NewMemory]) -> set[UUID]:
    """Store memories and return the ids of the new ones.

    A memory is skipped if one of the same kind has its content or `ref`. A unique constraint ensures this, so
    concurrent writers are safe.
    """
    if not memories:
        return set()
    rows = await SQL["insert_memories"].fetch_all(
        tx, agent_id=agent_id, drafts=json.dumps(list(map(_to_row, memories)))
    )
    new = {row["memory_id"] for row in rows}
    if links := [(m.memory_id, source) for m in memories if m.memory_id in new for source in m.sources]:
        memory_ids, source_ids = zip(*links, strict=True)
        await SQL["insert_sources"].execute(tx, agent_id=agent_id, memory_ids=memory_ids, source_ids=source_ids)
    return new


async def find_by_ref(tx: Tx, refs: Sequence[tuple[str, bytes]], *, agent_id: UUID, kind: Kind) -> set[str]:
    """Return which of the refs are stored already. Each ref is paired with the hash of its content.

    Raises ConflictError if a ref is stored, or occurs twice, with different contents.
    """
    hashes: dict[str, bytes] = {}
    for ref, content_hash in refs:
        if hashes.setdefault(ref, content_hash) != content_hash:
            raise ref_conflict_error(kind, ref)
    known: defaultdict[str, set[bytes]] = defaultdict(set)
    for row in await SQL["find_by_ref"].fetch_all(tx, agent_id=agent_id, kind=kind, refs=list(hashes)):
        known[row["ref"]].add(row["content_hash"])
    for ref, stored in known.items():
        if hashes[ref] not in stored:
            raise ref_conflict_error(kind, ref)
    return set(known)


def ref_conflict_error(kind: Kind, ref: str) -> ConflictError:
    return ConflictError(
        f"The {kind} with the ref {ref!r} exists with other content.", hint="Use another ref for the new content."
    )


async def confirm(tx: Tx, confirmations: Sequence[MemoryConfirmation], *, ctx: WriteContext) -> set[str]:
    """Store confirmations; return the refs of those that were not stored before."""
    if not confirmations:
        return set()
    rows = await SQL["insert_confirmations"].fetch_all(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[item.memory_id for item in confirmations],
        refs=[item.ref for item in confirmations],
        sources=[item.source for item in confirmations],
        now=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
    )
    return {row["ref"] for row in rows}


async def add_links(tx: Tx, link_type: LinkType, pairs: Sequence[tuple[UUID, UUID]], *, ctx: WriteContext) -> None:
    """Link the first memory of each pair to the second; links that exist already stay unchanged."""
    if pairs:
        ids, others = zip(*pairs, strict=True)
        await SQL["insert_links"].execute(
            tx, agent_id=ctx.agent_id, memory_ids=ids, link=link_type, other_ids=others, now=ctx.now
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdate:
    """The new short forms of a memory. A `full_text` or `outcome` of None keeps the stored value."""

    memory_id: UUID
    forms: ShortForms
    full_text: str | None = None
    outcome: Outcome | None = None


async def update_memories(tx: Tx, updates: Sequence[MemoryUpdate], *, ctx: WriteContext) -> None:
    """Replace short forms, full texts and outcomes of memories; the former values are kept as versions.

    The search index is not changed.
    """
    memory_ids = [item.memory_id for item in updates]
    await SQL["lock_texts"].execute(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    await SQL["update_texts"].execute(
        tx,
        agent_id=ctx.agent_id,
        version_ids=[new_id() for _ in updates],
        now=ctx.now,
        memory_ids=memory_ids,
        micros=[item.forms.micro for item in updates],
        summaries=[item.forms.summary for item in updates],
        micro_tokens=[item.forms.micro_tokens for item in updates],
        summary_tokens=[item.forms.summary_tokens for item in updates],
        full_texts=[item.full_text for item in updates],
        outcomes=[item.outcome for item in updates],
    )


async def record_access(tx: Tx, memory_ids: Sequence[UUID], *, agent_id: UUID, now: datetime) -> None:
    """Increment the use counts of these memories and set their times of last access."""
    if memory_ids:
        await SQL["record_access"].execute(tx, agent_id=agent_id, memory_ids=memory_ids, now=now)


async def count_by_kind(tx: Tx, *, agent_id: UUID) -> Mapping[str, int]:
    """Return the number of memories of each kind."""
    return {row["kind"]: row["memories"] for row in await SQL["count_by_kind"].fetch_all(tx, agent_id=agent_id)}


async def count_by_language(tx: Tx, *, agent_id: UUID) -> Mapping[str, int]:
    """Return the number of searchable memories by the code of their language, the most frequent first."""
    rows = await SQL["count_by_language"].fetch_all(tx, agent_id=agent_id)
    return {row["language"]: row["memories"] for row in rows}


def _to_row(memory: NewMemory) -> dict[str, object]:
    language = detect_language(memory.embedding_text or memory.indexed_text)
    return {
        "memory_id": str(memory.memory_id),
        "kind": memory.kind,
        "state": memory.state,
        "micro": memory.forms.micro,
        "summary": memory.forms.summary,
        "full_text": memory.full_text,
        "micro_tokens": memory.forms.micro_tokens,
        "summary_tokens": memory.forms.summary_tokens,
        "language": language,
        "words": prepare_words(memory.indexed_text, max_characters=MAX_TEXT_CHARACTERS, language=language),
        "cue": memory.embedding_text,
        "occurred_at": memory.occurred_at.isoformat(),
        "created_at": memory.ctx.now.isoformat(),
        "origin": memory.ctx.origin,
        "trust": memory.ctx.trust,
        "quarantined": is_quarantined(memory.ctx.trust, needs_approval=memory.needs_approval),
        "prefix_length": memory.long_forms.prefix_length if memory.long_forms else 0,
        "full_tokens": memory.long_forms.full_tokens if memory.long_forms else None,
        "windows": [
            [window.text, window.tokens, prepare_words(window.text, language=language)]
            for window in (memory.long_forms.windows if memory.long_forms else ())
        ],
        "content_hash": memory.content_hash.hex(),
        "ref": memory.ref,
        "confidence": memory.confidence,
        "importance": memory.importance,
        "outcome": memory.outcome,
        "thread": str(memory.thread_id) if memory.thread_id else None,
        "place": memory.position,
        "standing": memory.standing,
        "times": [
            {"starts": s.start.isoformat(), "ends": s.end.isoformat()}
            for s in memory.mentioned_times
            if s.start and s.end
        ],
    }


async def lock_entities(tx: Tx, *, agent_id: UUID) -> None:
    """Lock entities, relations and mentions against other writers until the transaction ends."""
    await SQL["lock_entities"].execute(tx, agent_id=agent_id)
