"""Ingested documents as passages. Ingesting a document again replaces only the passages that changed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.chunking import TextChunk
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import ARCHIVED, UNTRUSTED_TIERS, NewMemory, WriteContext, digest
from newton.memory.representations import make_short_forms, one_line
from newton.memory.transitions import PlannedTransition, apply_transitions

SQL = load("newton.heart", "documents.sql")

MAX_TITLE_CHARACTERS = 60  # of the title shown with each passage


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSource:
    """The document that the passages belong to. `ref` identifies it across ingestions."""

    ref: str
    title: str
    format: str


@dataclass(frozen=True, slots=True)
class IngestResult:
    """Passages added, kept and archived by an ingestion."""

    new: int
    kept: int
    replaced: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSummary:
    """A document, for lists."""

    ref: str
    title: str
    format: str
    taken_at: datetime
    passages: int


@dataclass(frozen=True, slots=True)
class _StoredPassage:
    memory_id: UUID
    state: str
    quarantined: bool


async def replace_passages(
    tx: Tx, source: DocumentSource, chunks: Sequence[TextChunk], *, ctx: WriteContext
) -> IngestResult:
    """Replace the passages of a document. Unchanged passages keep their memory ids."""
    agent_id = ctx.agent_id
    await SQL["lock_document"].execute(tx, agent_id=agent_id, ref=source.ref)
    hashes = _passage_hashes(source, chunks)
    whole = digest(*(content_hash.hex() for content_hash in hashes))
    row = await SQL["find_document"].fetch_one(tx, agent_id=agent_id, ref=source.ref)
    trusted = ctx.trust not in UNTRUSTED_TIERS
    if row and row["content_hash"] == whole and not trusted:
        return IngestResult(0, len(chunks), 0)
    document_id = row["document_id"] if row else new_id()
    await SQL["upsert_document"].execute(
        tx,
        agent_id=agent_id,
        document_id=document_id,
        ref=source.ref,
        title=source.title,
        format=source.format,
        content_hash=whole,
        now=ctx.now,
    )
    rows = await SQL["list_passages"].fetch_all(tx, agent_id=agent_id, document_id=document_id)
    known = {row["content_hash"]: _StoredPassage(row["memory_id"], row["state"], row["quarantined"]) for row in rows}
    fresh = [place for place, content_hash in enumerate(hashes) if content_hash not in known]
    await _insert_passages(tx, source, document_id, {place: (chunks[place], hashes[place]) for place in fresh}, ctx=ctx)
    kept = {content_hash: place for place, content_hash in enumerate(hashes) if content_hash in known}
    await SQL["reorder_passages"].execute(
        tx, agent_id=agent_id, memory_ids=[known[h].memory_id for h in kept], positions=list(kept.values())
    )
    gone = await apply_transitions(tx, _plan_transitions(known, set(kept)), ctx=ctx)
    if trusted:
        await apply_transitions(tx, _plan_releases(known, set(kept)), ctx=ctx)
    return IngestResult(len(fresh), len(kept), len(gone - {known[h].memory_id for h in kept}))


async def list_documents(tx: Tx, *, agent_id: UUID) -> list[DocumentSummary]:
    """Return every document by its ref, with the number of its passages."""
    return [DocumentSummary(**row) for row in await SQL["list_documents"].fetch_all(tx, agent_id=agent_id)]


def _passage_hashes(source: DocumentSource, chunks: Sequence[TextChunk]) -> list[bytes]:
    """Return the content hashes of heading and text, so that a text under another heading is another passage."""
    seen: Counter[tuple[str, str]] = Counter()
    hashes: list[bytes] = []
    for chunk in chunks:
        nth = seen[chunk.heading, chunk.text]
        seen[chunk.heading, chunk.text] += 1
        hashes.append(digest(source.ref, chunk.heading, chunk.text, str(nth)))
    return hashes


def _plan_transitions(known: Mapping[bytes, _StoredPassage], present: set[bytes]) -> list[PlannedTransition]:
    """Plan to archive the passages that the document no longer has and to restore those that it has again."""
    gone = [p for content_hash, p in known.items() if content_hash not in present and p.state != "SUPERSEDED"]
    back = [p for content_hash, p in known.items() if content_hash in present and p.state == "SUPERSEDED"]
    return [
        *(
            _make_transition(passage, "replaced", "SUPERSEDED", "the document does not say it any more")
            for passage in gone
        ),
        *(_make_transition(passage, "restored", "ACTIVE", "the document says it again") for passage in back),
    ]


def _plan_releases(known: Mapping[bytes, _StoredPassage], present: set[bytes]) -> list[PlannedTransition]:
    """Plan to release quarantined passages of a document that a person ingests."""
    why = "a person took the document in"
    held = [p for content_hash, p in known.items() if content_hash in present and p.quarantined]
    # a missing passage was restored just before; an archived one stays archived
    stays = {passage.memory_id: ARCHIVED if passage.state == ARCHIVED else "ACTIVE" for passage in held}
    steps = [_make_transition(passage, "released", stays[passage.memory_id], why) for passage in held]
    return [replace(step, from_state=step.to_state, releases=True) for step in steps]


def _make_transition(passage: _StoredPassage, event: str, to_state: str, reason: str) -> PlannedTransition:
    return PlannedTransition(
        memory_id=passage.memory_id, event=event, from_state=passage.state, to_state=to_state, reason=reason
    )


async def _insert_passages(
    tx: Tx,
    source: DocumentSource,
    document_id: UUID,
    fresh: Mapping[int, tuple[TextChunk, bytes]],
    *,
    ctx: WriteContext,
) -> None:
    drafts = {place: _to_new_memory(source, chunk, of, ctx=ctx) for place, (chunk, of) in fresh.items()}
    await store.remember(tx, agent_id=ctx.agent_id, memories=list(drafts.values()))
    await SQL["insert_passages"].execute(
        tx,
        agent_id=ctx.agent_id,
        document_id=document_id,
        memory_ids=[draft.memory_id for draft in drafts.values()],
        positions=list(drafts),
        headings=[fresh[place][0].heading for place in drafts],
    )


def _to_new_memory(source: DocumentSource, chunk: TextChunk, content_hash: bytes, *, ctx: WriteContext) -> NewMemory:
    title = one_line(source.title)
    shown = title if len(title) <= MAX_TITLE_CHARACTERS else title[:MAX_TITLE_CHARACTERS].rsplit(" ", 1)[0] + " …"
    said = " ".join(part for part in (title, one_line(chunk.heading)) if part)
    return NewMemory(
        kind="passage",
        forms=make_short_forms(chunk.text, count_tokens=ctx.count_tokens, prefix=f"[{shown}] "),
        full_text=chunk.text,
        indexed_text=f"{said}\n{chunk.text}",
        embedding_text=f"{said}: {one_line(chunk.text)}",
        occurred_at=ctx.now,
        ctx=ctx,
        content_hash=content_hash,
    )
