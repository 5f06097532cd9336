"""Documents, whose text is stored as passages. Another ingestion of a document replaces only changed passages."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Annotated, NamedTuple
from uuid import UUID

from pydantic import Field

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ForbiddenError, InputError, NotFoundError
from newton.heart.chunking import TextChunk
from newton.heart.speakers import may_supersede
from newton.ids import new_id
from newton.memory import store
from newton.memory.forgetting import forget
from newton.memory.memory import (
    ARCHIVED,
    PERSON_TIERS,
    UNTRUSTED_TIERS,
    Kind,
    NewMemory,
    ShortForms,
    Trust,
    WriteContext,
    digest,
)
from newton.memory.representations import MICRO_TOKENS, make_long_forms, make_short_forms, one_line
from newton.memory.store import MemoryConfirmation, MemoryUpdate, PlannedTransition, apply_transitions

SQL = load("newton.heart", "documents.sql")

NAME_HINT = "Give it another name, or let a person delete the stored one."
MAX_TITLE_CHARACTERS = 60  # of the title that begins the short forms of each passage
MAX_LOCATION_CHARACTERS = 60  # of the location after it


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSource:
    """A document to ingest. `ref` identifies the document when it is ingested again.

    `source_hash` identifies the content of a file and how it is read. `dated_at` is when the document was written or
    last changed; None if that is unknown.
    """

    ref: str
    title: str
    format: str
    source_hash: bytes | None = None
    dated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The counts of passages that one ingestion of a document added, left unchanged and replaced."""

    new: int
    kept: int
    replaced: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSummary:
    """A document with the time of its last ingestion and the number of its current passages.

    `dated_at` is when the document was written or last changed; None if that is unknown.
    """

    document_id: UUID
    ref: str
    title: str
    format: str
    dated_at: datetime | None
    ingested_at: datetime
    passages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPassage:
    """A passage of a document. Its state is SUPERSEDED if the document no longer contains it.

    `position` is its number, from 0, and `location` where the document has it, such as "page 3"; "" if unknown.
    """

    memory_id: UUID
    position: int
    heading: str
    location: str
    state: str
    quarantined: bool
    trust: Trust
    text: str
    kind: Annotated[Kind, Field(exclude=True)] = "passage"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDetail:
    """A document with its passages in order, or some of them. `count` is the number of its passages."""

    document_id: UUID
    ref: str
    title: str
    format: str
    dated_at: datetime | None
    ingested_at: datetime
    count: int
    passages: Sequence[DocumentPassage]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionPlan:
    """A document that would be deleted, the number of its passages of all versions, and the token that confirms it."""

    document_id: UUID
    ref: str
    title: str
    passages: int
    token: str


class _StoredPassage(NamedTuple):
    memory_id: UUID
    state: str
    quarantined: bool
    location: str


async def count_unchanged(tx: Tx, source: DocumentSource, *, ctx: WriteContext) -> int | None:
    """Return the number of passages of a document that need not be ingested again, because its file is unchanged.

    Return None if it must be ingested: the file has changed, a passage is missing, or a person ingests passages for
    which no person vouched before, such as those in quarantine.
    """
    row = await SQL["count_unchanged"].fetch_one(
        tx,
        agent_id=ctx.agent_id,
        ref=source.ref,
        source_hash=source.source_hash,
        trusted=ctx.trust in PERSON_TIERS,
    )
    return row["passage_count"] if row else None


async def replace_passages(
    tx: Tx, source: DocumentSource, chunks: Sequence[TextChunk], *, ctx: WriteContext
) -> IngestResult:
    """Store the chunks of a document as its passages, in place of its former passages.

    Unchanged passages keep their memory ids, also at another position. Passages that the document no longer contains
    are superseded. Raises ForbiddenError if `ctx` may not replace what is stored.
    """
    agent_id = ctx.agent_id
    await SQL["lock_document"].execute(tx, agent_id=agent_id, ref=source.ref)
    hashes = _passage_hashes(source, chunks)
    content_hash = digest(*(passage_hash.hex() for passage_hash in hashes), *(chunk.location for chunk in chunks))
    row = await SQL["find_document"].fetch_one(tx, agent_id=agent_id, ref=source.ref)
    trusted = ctx.trust not in UNTRUSTED_TIERS
    may_replace = all(may_supersede(ctx.trust, known=one, is_confirmed=False) for one in row["trusts"]) if row else True
    if row and row["content_hash"] == content_hash and not (trusted and may_replace):
        return IngestResult(0, len(chunks), 0)
    if not may_replace:
        raise ForbiddenError(f"The stored document {source.ref} is from somebody of higher trust.", hint=NAME_HINT)
    document_id = row["document_id"] if row else new_id()
    fields = {**asdict(source), "content_hash": content_hash, "passages": len(chunks), "now": ctx.now}
    await SQL["upsert_document"].execute(tx, agent_id=agent_id, document_id=document_id, **fields)
    rows = await SQL["list_passages"].fetch_all(tx, agent_id=agent_id, document_id=document_id)
    known = {row[0]: _StoredPassage(*row[1:]) for row in rows}
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
        locations=[chunks[position].location for position in new],
    )
    kept = {known[h].memory_id: position for position, h in enumerate(hashes) if h in known}
    locations = {passage.memory_id: passage.location for passage in known.values()}
    await _move_passages(tx, source, {i: (n, chunks[n]) for i, n in kept.items()}, locations, ctx=ctx)
    changed = await apply_transitions(tx, _plan_transitions(known.values(), kept.keys()), ctx=ctx)
    if trusted:
        await apply_transitions(tx, _plan_releases(known.values(), kept.keys()), ctx=ctx)
    if ctx.trust in PERSON_TIERS and row and {*row["trusts"]} - {*PERSON_TIERS}:
        await _vouch(tx, list(kept), ctx=ctx)
    return IngestResult(len(new), len(kept), len(changed - kept.keys()))


async def _vouch(tx: Tx, memory_ids: Sequence[UUID], *, ctx: WriteContext) -> None:
    """Record that a person ingests passages too, which a model stored first and then may not replace."""
    source = f"{ctx.origin} {ctx.now:%Y-%m-%d}"
    vouched = [MemoryConfirmation(memory_id=one, ref="ingested", source=source) for one in memory_ids]
    await store.confirm(tx, vouched, ctx=ctx)


async def list_documents(tx: Tx, *, agent_id: UUID) -> list[DocumentSummary]:
    """Return every document, sorted by `ref`."""
    return [DocumentSummary(**row) for row in await SQL["list_documents"].fetch_all(tx, agent_id=agent_id)]


async def _move_passages(
    tx: Tx,
    source: DocumentSource,
    kept: Mapping[UUID, tuple[int, TextChunk]],
    locations: Mapping[UUID, str],
    *,
    ctx: WriteContext,
) -> None:
    """Store the positions of kept passages; where the location has changed, also the label with it before the text."""
    await SQL["reorder_passages"].execute(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=list(kept),
        positions=[position for position, _ in kept.values()],
        locations=[chunk.location for _, chunk in kept.values()],
    )
    moved = {memory_id: chunk for memory_id, (_, chunk) in kept.items() if chunk.location != locations[memory_id]}
    if updates := [MemoryUpdate(memory_id=i, forms=_make_forms(source, chunk, ctx)) for i, chunk in moved.items()]:
        await store.update_memories(tx, updates, ctx=ctx)


async def find_document_id(tx: Tx, ref: str, *, agent_id: UUID) -> UUID:
    """Return the id of the document with this `ref`. Raises NotFoundError if there is none."""
    row = await SQL["find_document"].fetch_one(tx, agent_id=agent_id, ref=ref)
    if row is None:
        raise NotFoundError(f"There is no document {ref!r}.", hint="`newton documents` lists the documents.")
    return row["document_id"]


async def read_document(tx: Tx, document_ref: str, *, agent_id: UUID) -> DocumentDetail:
    """Return the document that `document_ref` names by its id, the end of its id, or its `ref`.

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
    found = [DocumentPassage(**row) for row in passages]
    return DocumentDetail(**rows[0], count=len(found), passages=found)


async def delete_document(tx: Tx, document: DocumentDetail, *, reason: str, ctx: WriteContext) -> list[UUID]:
    """Delete a document, its passages and the memories derived from them; return the ids of all deleted memories."""
    ids = [passage.memory_id for passage in document.passages]
    deleted = await forget(tx, ids, derived=True, reason=reason, ctx=ctx) if ids else []
    await SQL["delete_document"].execute(tx, agent_id=ctx.agent_id, document_id=document.document_id)
    return deleted


def _passage_hashes(source: DocumentSource, chunks: Sequence[TextChunk]) -> list[bytes]:
    """Return a hash for each chunk, by its heading, its text and the number of equal chunks before it.

    The length of its location is part of the hash: a passage that only moves keeps its stored token counts, which
    include the location.
    """
    occurrences: Counter[tuple[str, str]] = Counter()
    hashes: list[bytes] = []
    for chunk in chunks:
        number, length = str(occurrences[chunk.heading, chunk.text]), str(len(_make_label(source, chunk)))
        hashes.append(digest(source.ref, chunk.heading, chunk.text, number, length))
        occurrences[chunk.heading, chunk.text] += 1
    return hashes


def _plan_transitions(passages: Iterable[_StoredPassage], present: Set[UUID]) -> list[PlannedTransition]:
    """Plan to supersede passages that the document no longer contains, and to restore passages that have returned."""
    steps: list[PlannedTransition] = []
    for memory_id, state, _, _ in passages:
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


def _make_label(source: DocumentSource, chunk: TextChunk) -> str:
    """Return the prefix of the forms of a passage: the title of its document, its location and its date."""
    parts = (_shorten(one_line(source.title), MAX_TITLE_CHARACTERS), _shorten(chunk.location, MAX_LOCATION_CHARACTERS))
    day = f"{chunk.date:%Y-%m-%d}" if chunk.date else ""
    return f"[{', '.join(filter(None, (*parts, day)))}] "


def _shorten(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else text[:max_characters].rsplit(" ", 1)[0] + " …"


def _make_forms(source: DocumentSource, chunk: TextChunk, ctx: WriteContext) -> ShortForms:
    """Return the summary and the micro form (about 20 tokens) of a passage, the latter without its location."""
    forms = make_short_forms(chunk.text, count_tokens=ctx.count_tokens, prefix=_make_label(source, chunk))
    if not chunk.location and chunk.date is None:
        return forms
    title = f"[{_shorten(one_line(source.title), MAX_TITLE_CHARACTERS)}] "
    short = make_short_forms(chunk.text, count_tokens=ctx.count_tokens, prefix=title, max_tokens=MICRO_TOKENS)
    return replace(forms, micro=short.micro, micro_tokens=short.micro_tokens)


def _to_new_memory(source: DocumentSource, chunk: TextChunk, content_hash: bytes, *, ctx: WriteContext) -> NewMemory:
    heading = " ".join(part for part in (one_line(source.title), one_line(chunk.heading)) if part)
    label = _make_label(source, chunk)
    return NewMemory(
        kind="passage",
        forms=_make_forms(source, chunk, ctx),
        long_forms=make_long_forms(chunk.text, count_tokens=ctx.count_tokens, prefix=label),
        full_text=chunk.text,
        indexed_text=f"{heading}\n{chunk.text}",
        embedding_text=f"{heading}: {one_line(chunk.text)}",
        occurred_at=chunk.date or ctx.now,
        ctx=ctx,
        content_hash=content_hash,
    )
