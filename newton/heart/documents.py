"""Documents, whose text is stored as passages. Another ingestion of a document replaces only changed passages."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import InputError, NotFoundError
from newton.heart.chunking import TextChunk
from newton.ids import new_id
from newton.memory import store
from newton.memory.forgetting import forget
from newton.memory.memory import ARCHIVED, NewMemory, WriteContext, digest
from newton.memory.quarantine import UNTRUSTED_TIERS
from newton.memory.representations import make_long_forms, make_short_forms, one_line
from newton.memory.transitions import PlannedTransition, apply_transitions

SQL = load("newton.heart", "documents.sql")

MAX_TITLE_CHARACTERS = 60  # of the title that begins the short forms of each passage


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSource:
    """A document to ingest. `ref` identifies the document when it is ingested again."""

    ref: str
    title: str
    format: str


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The counts of passages that one ingestion of a document added, left unchanged and replaced."""

    new: int
    kept: int
    replaced: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSummary:
    """A document with the time of its last ingestion and the number of its current passages."""

    document_id: UUID
    ref: str
    title: str
    format: str
    ingested_at: datetime
    passages: int


class DocumentPassage(NamedTuple):
    """A passage of a document. Its state is SUPERSEDED if the document no longer contains it."""

    memory_id: UUID
    position: int
    heading: str
    state: str
    quarantined: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDetail:
    """A document with its passages in order."""

    document_id: UUID
    ref: str
    title: str
    format: str
    ingested_at: datetime
    passages: Sequence[DocumentPassage]


class _StoredPassage(NamedTuple):
    memory_id: UUID
    state: str
    quarantined: bool


async def replace_passages(
    tx: Tx, source: DocumentSource, chunks: Sequence[TextChunk], *, ctx: WriteContext
) -> IngestResult:
    """Store the chunks of a document as its passages, in place of its former passages.

    Unchanged passages keep their memory ids. Passages that the document no longer contains are superseded.
    """
    agent_id = ctx.agent_id
    await SQL["lock_document"].execute(tx, agent_id=agent_id, ref=source.ref)
    hashes = _passage_hashes(source, chunks)
    content_hash = digest(*(passage_hash.hex() for passage_hash in hashes))
    row = await SQL["find_document"].fetch_one(tx, agent_id=agent_id, ref=source.ref)
    trusted = ctx.trust not in UNTRUSTED_TIERS
    if row and row["content_hash"] == content_hash and not trusted:
        return IngestResult(0, len(chunks), 0)
    document_id = row["document_id"] if row else new_id()
    await SQL["upsert_document"].execute(
        tx,
        agent_id=agent_id,
        document_id=document_id,
        ref=source.ref,
        title=source.title,
        format=source.format,
        content_hash=content_hash,
        now=ctx.now,
    )
    rows = await SQL["list_passages"].fetch_all(tx, agent_id=agent_id, document_id=document_id)
    known = {row["content_hash"]: _StoredPassage(row["memory_id"], row["state"], row["quarantined"]) for row in rows}
    new = {
        position: _to_new_memory(source, chunk, passage_hash, ctx=ctx)
        for position, (chunk, passage_hash) in enumerate(zip(chunks, hashes, strict=True))
        if passage_hash not in known
    }
    await store.remember(tx, agent_id=agent_id, memories=list(new.values()))
    await SQL["insert_passages"].execute(
        tx,
        agent_id=agent_id,
        document_id=document_id,
        memory_ids=[memory.memory_id for memory in new.values()],
        positions=list(new),
        headings=[chunks[position].heading for position in new],
    )
    kept = {known[h].memory_id: position for position, h in enumerate(hashes) if h in known}
    await SQL["reorder_passages"].execute(tx, agent_id=agent_id, memory_ids=list(kept), positions=list(kept.values()))
    changed = await apply_transitions(tx, _plan_transitions(known.values(), kept.keys()), ctx=ctx)
    if trusted:
        await apply_transitions(tx, _plan_releases(known.values(), kept.keys()), ctx=ctx)
    return IngestResult(len(new), len(kept), len(changed - kept.keys()))


async def list_documents(tx: Tx, *, agent_id: UUID) -> list[DocumentSummary]:
    """Return every document, sorted by `ref`."""
    return [DocumentSummary(**row) for row in await SQL["list_documents"].fetch_all(tx, agent_id=agent_id)]


async def read_document(tx: Tx, document_ref: str, *, agent_id: UUID) -> DocumentDetail:
    """Return the document with this id, end of an id, or `ref`.

    Raises NotFoundError if no document matches, and InputError if several do.
    """
    rows = await SQL["resolve_document"].fetch_all(tx, agent_id=agent_id, document_ref=document_ref)
    if not rows:
        raise NotFoundError(f"There is no document {document_ref!r}.", hint="`newton documents` lists the documents.")
    if len(rows) > 1:
        raise InputError(
            f"{document_ref!r} matches several documents.", hint="Give more characters of the end of the document's id."
        )
    passages = await SQL["read_passages"].fetch_all(tx, agent_id=agent_id, document_id=rows[0]["document_id"])
    return DocumentDetail(**rows[0], passages=[DocumentPassage(**row) for row in passages])


async def delete_document(tx: Tx, document: DocumentDetail, *, reason: str, ctx: WriteContext) -> list[UUID]:
    """Delete a document, its passages and the memories derived from them; return the ids of all deleted memories."""
    ids = [passage.memory_id for passage in document.passages]
    deleted = await forget(tx, ids, derived=True, reason=reason, ctx=ctx) if ids else []
    await SQL["delete_document"].execute(tx, agent_id=ctx.agent_id, document_id=document.document_id)
    return deleted


def _passage_hashes(source: DocumentSource, chunks: Sequence[TextChunk]) -> list[bytes]:
    """Return a hash for each chunk, by its heading, its text and the number of equal chunks before it."""
    occurrences: Counter[tuple[str, str]] = Counter()
    hashes: list[bytes] = []
    for chunk in chunks:
        hashes.append(digest(source.ref, chunk.heading, chunk.text, str(occurrences[chunk.heading, chunk.text])))
        occurrences[chunk.heading, chunk.text] += 1
    return hashes


def _plan_transitions(passages: Iterable[_StoredPassage], present: Set[UUID]) -> list[PlannedTransition]:
    """Plan to supersede passages that the document no longer contains, and to restore passages that have returned."""
    steps: list[PlannedTransition] = []
    for memory_id, state, _ in passages:
        if memory_id not in present and state != "SUPERSEDED":
            reason = "the document no longer contains it"
            steps.append(PlannedTransition(memory_id, "replaced", state, "SUPERSEDED", reason))
        elif memory_id in present and state == "SUPERSEDED":
            steps.append(PlannedTransition(memory_id, "restored", state, "ACTIVE", "the document contains it again"))
    return steps


def _plan_releases(passages: Iterable[_StoredPassage], present: Set[UUID]) -> list[PlannedTransition]:
    """Plan to release quarantined passages that the document still contains, because a person ingested it."""
    # a superseded passage was restored just before; an archived one stays archived
    states = {p.memory_id: ARCHIVED if p.state == ARCHIVED else "ACTIVE" for p in passages if p.quarantined}
    reason = "a person ingested the document"
    return [
        PlannedTransition(memory_id, "released", state, state, reason, releases=True)
        for memory_id, state in states.items()
        if memory_id in present
    ]


def _to_new_memory(source: DocumentSource, chunk: TextChunk, content_hash: bytes, *, ctx: WriteContext) -> NewMemory:
    title = one_line(source.title)
    label = title if len(title) <= MAX_TITLE_CHARACTERS else title[:MAX_TITLE_CHARACTERS].rsplit(" ", 1)[0] + " …"
    heading = " ".join(part for part in (title, one_line(chunk.heading)) if part)
    return NewMemory(
        kind="passage",
        forms=make_short_forms(chunk.text, count_tokens=ctx.count_tokens, prefix=f"[{label}] "),
        long_forms=make_long_forms(chunk.text, count_tokens=ctx.count_tokens, prefix=f"[{label}] "),
        full_text=chunk.text,
        indexed_text=f"{heading}\n{chunk.text}",
        embedding_text=f"{heading}: {one_line(chunk.text)}",
        occurred_at=ctx.now,
        ctx=ctx,
        content_hash=content_hash,
    )
