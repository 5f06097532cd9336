"""Documents that were taken in, as passages: taken in again, only the passages that changed are replaced."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.chunking import Chunk
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import ARCHIVED, OUTSIDE, Draft, Teller, digest
from newton.memory.representations import forms, one_line
from newton.memory.transitions import Step, move

SQL = load("newton.heart", "documents.sql")

TITLE_CHARACTERS = 60  # of the title that each passage is shown with


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What the passages are of. `ref` is where it came from; the same ref again is the same document."""

    ref: str
    title: str
    format: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What taking a document in did to its passages."""

    new: int
    kept: int
    replaced: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A document as a list shows it."""

    ref: str
    title: str
    format: str
    taken_at: datetime
    passages: int


@dataclass(frozen=True, slots=True)
class _Passage:
    memory_id: UUID
    state: str
    quarantined: bool


async def take(tx: Tx, source: Source, chunks: Sequence[Chunk], *, ctx: Teller) -> Taken:
    """Makes these the passages of the document. Those that it has already stay the memories that they are."""
    agent_id = ctx.agent_id
    await SQL["lock_document"].run(tx, agent_id=agent_id, ref=source.ref)
    hashes = _hashes(source, chunks)
    whole = digest(*(content_hash.hex() for content_hash in hashes))
    row = await SQL["find_document"].one(tx, agent_id=agent_id, ref=source.ref)
    trusted = ctx.trust not in OUTSIDE
    if row and row["content_hash"] == whole and not trusted:
        return Taken(0, len(chunks), 0)
    document_id = row["document_id"] if row else new_id()
    await SQL["upsert_document"].run(
        tx,
        agent_id=agent_id,
        document_id=document_id,
        ref=source.ref,
        title=source.title,
        format=source.format,
        content_hash=whole,
        now=ctx.now,
    )
    rows = await SQL["list_passages"].all(tx, agent_id=agent_id, document_id=document_id)
    known = {row["content_hash"]: _Passage(row["memory_id"], row["state"], row["quarantined"]) for row in rows}
    fresh = [place for place, content_hash in enumerate(hashes) if content_hash not in known]
    await _write(tx, source, document_id, {place: (chunks[place], hashes[place]) for place in fresh}, ctx=ctx)
    kept = {content_hash: place for place, content_hash in enumerate(hashes) if content_hash in known}
    await SQL["reorder_passages"].run(
        tx, agent_id=agent_id, memory_ids=[known[h].memory_id for h in kept], positions=list(kept.values())
    )
    gone = await move(tx, _steps(known, set(kept)), ctx=ctx)
    if trusted:
        await move(tx, _releases(known, set(kept)), ctx=ctx)
    return Taken(len(fresh), len(kept), len(gone - {known[h].memory_id for h in kept}))


async def listed(tx: Tx, *, agent_id: UUID) -> list[Known]:
    """Every document by its ref, with the number of its passages."""
    return [Known(**row) for row in await SQL["list_documents"].all(tx, agent_id=agent_id)]


def _hashes(source: Source, chunks: Sequence[Chunk]) -> list[bytes]:
    """Of the words and where they stand: the same words under another heading are another passage."""
    seen: Counter[tuple[str, str]] = Counter()
    hashes: list[bytes] = []
    for chunk in chunks:
        nth = seen[chunk.heading, chunk.text]
        seen[chunk.heading, chunk.text] += 1
        hashes.append(digest(source.ref, chunk.heading, chunk.text, str(nth)))
    return hashes


def _steps(known: Mapping[bytes, _Passage], kept: set[bytes]) -> list[Step]:
    """Passages that the document no longer has go out, and those that it has again come back."""
    gone = [p for content_hash, p in known.items() if content_hash not in kept and p.state != "SUPERSEDED"]
    back = [p for content_hash, p in known.items() if content_hash in kept and p.state == "SUPERSEDED"]
    return [
        *(_step(passage, "replaced", "SUPERSEDED", "the document does not say it any more") for passage in gone),
        *(_step(passage, "restored", "ACTIVE", "the document says it again") for passage in back),
    ]


def _releases(known: Mapping[bytes, _Passage], kept: set[bytes]) -> list[Step]:
    """What came from outside and is in a document that a person takes in."""
    why = "a person took the document in"
    held = [p for content_hash, p in known.items() if content_hash in kept and p.quarantined]
    # one that was not there has just come back; an archived one stays so
    stays = {passage.memory_id: ARCHIVED if passage.state == ARCHIVED else "ACTIVE" for passage in held}
    steps = [_step(passage, "released", stays[passage.memory_id], why) for passage in held]
    return [replace(step, before=step.after, releases=True) for step in steps]


def _step(passage: _Passage, event: str, after: str, because: str) -> Step:
    return Step(memory_id=passage.memory_id, event=event, before=passage.state, after=after, because=because)


async def _write(
    tx: Tx, source: Source, document_id: UUID, fresh: Mapping[int, tuple[Chunk, bytes]], *, ctx: Teller
) -> None:
    drafts = {place: _draft(source, chunk, of, ctx=ctx) for place, (chunk, of) in fresh.items()}
    await store.remember(tx, agent_id=ctx.agent_id, drafts=list(drafts.values()))
    await SQL["insert_passages"].run(
        tx,
        agent_id=ctx.agent_id,
        document_id=document_id,
        memory_ids=[draft.memory_id for draft in drafts.values()],
        positions=list(drafts),
        headings=[fresh[place][0].heading for place in drafts],
    )


def _draft(source: Source, chunk: Chunk, content_hash: bytes, *, ctx: Teller) -> Draft:
    title = one_line(source.title)
    shown = title if len(title) <= TITLE_CHARACTERS else title[:TITLE_CHARACTERS].rsplit(" ", 1)[0] + " …"
    said = " ".join(part for part in (title, one_line(chunk.heading)) if part)
    return Draft(
        memory_id=new_id(),
        kind="passage",
        state="ACTIVE",
        forms=forms(chunk.text, count=ctx.count_tokens, prefix=f"[{shown}] "),
        full_text=chunk.text,
        indexed=f"{said}\n{chunk.text}",
        cue=f"{said}: {one_line(chunk.text)}",
        occurred_at=ctx.now,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
        content_hash=content_hash,
    )
