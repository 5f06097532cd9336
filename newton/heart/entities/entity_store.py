"""Entities and relations, recognized by name in messages and facts, without a model."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import InputError
from newton.heart.entities.name_recognition import (
    NamedEntity,
    NameIndex,
    compute_salience,
    find_names,
    list_spellings,
    normalize_name,
)
from newton.heart.events.event_types import Json, Payload, render_entity_line, render_relation_line
from newton.heart.facts.attributes import normalize_attribute
from newton.memory import store
from newton.memory.memory import Kind, NewMemory, WriteContext, digest
from newton.memory.representations import make_short_forms

SQL = load("newton.heart.entities", "entity_store.sql")

INDEX_JOB = "entities"
BATCH = 500
MAX_WRITE_DELAY = timedelta(minutes=1)  # longest time between the creation of an id and its insertion
WEIGHT_PRIOR = 2.0  # pieces of evidence at which a relation has weight 0.5
MENTIONED_WITH = "mentioned with"
MAX_NAMES = 12  # per memory; more names are a list, which says little about relations
MAX_DEPTH = 5


class IndexableText(NamedTuple):
    """A memory to index. Its names include the speaker of a message and the subject of a fact."""

    memory_id: UUID
    kind: Kind
    text: str
    occurred_at: datetime
    trust: str
    speaker: str | None
    subject: str | None
    attribute: str | None

    @property
    def declared_name(self) -> str | None:
        return self.subject or self.speaker


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDeclaration:
    """A declared entity with its type, aliases and properties."""

    name: str
    type: str = "thing"
    aliases: tuple[str, ...] = ()
    properties: Payload = field(default_factory=dict[str, Json])
    occurred_at: datetime | None = None


class Relation(NamedTuple):
    """A relation between two entities; `weight` in [0, 1) grows with the evidence."""

    memory_id: UUID
    source_id: UUID
    source: str
    type: str
    target_id: UUID
    target: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySummary:
    """An entity, for lists."""

    memory_id: UUID
    name: str
    type: str
    aliases: Sequence[str]
    mentions: int
    mentioned_at: datetime
    state: str

    def salience_at(self, now: datetime) -> float:
        return compute_salience(self.mentions, (now - self.mentioned_at).total_seconds() / 86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedRelation:
    """A relation found by graph traversal, with its distance in steps."""

    relation: Relation
    depth: int


class IndexProgress(NamedTuple):
    """The number of memories indexed, and the watermark to continue from."""

    memories: int
    last: UUID


async def index_mentions(tx: Tx, *, ctx: WriteContext, after: UUID | None = None) -> IndexProgress:
    """Index the next batch of memories for names and relations, after `after` or the stored watermark.

    Idempotent. The last minute is indexed again by the next run, because ids are created before their rows are
    committed.
    """
    agent_id = ctx.agent_id
    await lock(tx, ctx=ctx)
    start = after or await _read_watermark(tx, agent_id)
    rows = [
        IndexableText(*row)
        for row in await SQL["list_indexable"].fetch_all(tx, agent_id=agent_id, after=start, max_rows=BATCH)
    ]
    if not rows:
        return IndexProgress(0, start)
    known = await load_index(tx, agent_id=agent_id)
    found = _collect_names(rows, known)
    entities = await _ensure_entities(tx, rows, found, known, ctx=ctx)
    await _record_mentions(tx, rows, found, entities, ctx=ctx)
    await _record_relations(tx, rows, found, entities, ctx=ctx)
    last = rows[-1].memory_id
    await SQL["set_watermark"].execute(
        tx, agent_id=agent_id, job=INDEX_JOB, memory_id=min(last, _safe_watermark(ctx.now))
    )
    return IndexProgress(len(rows), last)


async def _read_watermark(tx: Tx, agent_id: UUID) -> UUID:
    row = await SQL["get_watermark"].fetch_one(tx, agent_id=agent_id, job=INDEX_JOB)
    return row["memory_id"] if row else UUID(int=0)


def _safe_watermark(now: datetime) -> UUID:
    """Return an id older than every uncommitted one: the first 48 bits of an id are its time in milliseconds."""
    return UUID(int=int((now - MAX_WRITE_DELAY).timestamp() * 1_000) << 80)


async def load_index(tx: Tx, *, agent_id: UUID) -> NameIndex:
    """Return every entity, indexed by name."""
    return NameIndex(NamedEntity(*row) for row in await SQL["list_entity_names"].fetch_all(tx, agent_id=agent_id))


async def list_entities(tx: Tx, *, agent_id: UUID, limit: int) -> list[EntitySummary]:
    """Return the entities with the most mentions."""
    return [EntitySummary(**row) for row in await SQL["list_entities"].fetch_all(tx, agent_id=agent_id, max_rows=limit)]


async def find_relations(tx: Tx, entity_ids: Iterable[UUID], *, agent_id: UUID, depth: int) -> list[ReachedRelation]:
    """Return the relations around entities, breadth first in both directions up to a depth."""
    seen: set[UUID] = set()
    front, reached = set(entity_ids), list[ReachedRelation]()
    visited = set(front)
    for step in range(1, min(depth, MAX_DEPTH) + 1):
        rows = await SQL["list_relations"].fetch_all(tx, agent_id=agent_id, entity_ids=list(front))
        fresh = [Relation(*row) for row in rows if row["memory_id"] not in seen]
        reached += [ReachedRelation(relation=relation, depth=step) for relation in fresh]
        seen |= {relation.memory_id for relation in fresh}
        front = {end for relation in fresh for end in (relation.source_id, relation.target_id)} - visited
        visited |= front
        if not front:
            break
    return reached


def _collect_names(rows: Sequence[IndexableText], index: NameIndex) -> dict[UUID, list[str]]:
    """Return the distinct names of each memory, the declared one first.

    A word that may only begin a sentence counts when it is a known name or is surely a name elsewhere in the batch.
    """
    names = {memory.memory_id: find_names(memory.text) for memory in rows}
    sure = {normalize_name(memory.declared_name) for memory in rows if memory.declared_name}
    sure |= {normalize_name(name.text) for found in names.values() for name in found if name.is_certain}
    told: dict[UUID, list[str]] = {}
    for memory in rows:
        meant = [
            n.text
            for n in names[memory.memory_id]
            if n.is_certain or normalize_name(n.text) in sure or index.resolve(n.text)
        ]
        each = {
            normalize_name(name): name
            for name in ([memory.declared_name] if memory.declared_name else []) + meant
            if normalize_name(name)
        }
        told[memory.memory_id] = list(each.values())[:MAX_NAMES]
    return told


async def _ensure_entities(
    tx: Tx, rows: Sequence[IndexableText], names: Mapping[UUID, Sequence[str]], index: NameIndex, *, ctx: WriteContext
) -> NameIndex:
    """Return the index of all entities, after inserting the new ones of the batch."""
    fresh: dict[str, tuple[str, datetime]] = {}
    for memory in rows:
        for name in names[memory.memory_id]:
            if index.resolve(name) is None:
                fresh.setdefault(normalize_name(name), (name, memory.occurred_at))
    new = [EntityDeclaration(name=name, occurred_at=at) for name, at in fresh.values()]
    for introduction, entity in zip(new, await insert_entities(tx, new, ctx=ctx), strict=True):
        index.add(NamedEntity(entity, introduction.name, ()))
    return index


async def insert_entities(tx: Tx, declarations: Sequence[EntityDeclaration], *, ctx: WriteContext) -> list[UUID]:
    """Insert unknown entities and return their ids in order. Raises InputError for a name without words."""
    for one in declarations:
        if not normalize_name(one.name):
            raise InputError(f"Invalid name {one.name!r}.", hint="Use letters or digits.")
    drafts = [_entity_memory(introduction, ctx=ctx) for introduction in declarations]
    await store.remember(tx, agent_id=ctx.agent_id, memories=drafts)
    rows = [
        {
            "memory_id": str(draft.memory_id),
            "name": one.name,
            "key": normalize_name(one.name),
            "type": one.type,
            "aliases": one.aliases,
            "properties": one.properties,
            "mentioned_at": draft.occurred_at.isoformat(),
        }
        for one, draft in zip(declarations, drafts, strict=True)
    ]
    await SQL["insert_entities"].execute(tx, agent_id=ctx.agent_id, entities=json.dumps(rows))
    ids = [draft.memory_id for draft in drafts]
    await record_spellings(
        tx, [NamedEntity(i, one.name, one.aliases) for i, one in zip(ids, declarations, strict=True)], ctx=ctx
    )
    return ids


async def record_spellings(tx: Tx, entities: Sequence[NamedEntity], *, ctx: WriteContext) -> None:
    """Store the spellings of entities, so that a text is matched by index."""
    spelt = [(words, one.entity_id) for one in entities for words in sorted(list_spellings(one.name, one.aliases))]
    await SQL["insert_names"].execute(
        tx, agent_id=ctx.agent_id, spellings=[words for words, _ in spelt], entity_ids=[entity for _, entity in spelt]
    )


async def _record_mentions(
    tx: Tx,
    rows: Sequence[IndexableText],
    names: Mapping[UUID, Sequence[str]],
    entities: NameIndex,
    *,
    ctx: WriteContext,
) -> None:
    met = [
        (known.entity_id, memory.memory_id, memory.occurred_at)
        for memory in rows
        for name in names[memory.memory_id]
        if (known := entities.resolve(name))
    ]
    if met:
        await SQL["insert_mentions"].execute(
            tx,
            agent_id=ctx.agent_id,
            entity_ids=[entity for entity, _, _ in met],
            memory_ids=[memory for _, memory, _ in met],
            times=[at for _, _, at in met],
        )


RelationTriple = tuple[UUID, str, UUID]


async def _record_relations(
    tx: Tx,
    rows: Sequence[IndexableText],
    names: Mapping[UUID, Sequence[str]],
    entities: NameIndex,
    *,
    ctx: WriteContext,
) -> None:
    """Store relations: a fact relates its subject to the first name in it by its attribute; other names co-occur."""
    evidence = [
        (triple, memory.memory_id)
        for memory in rows
        if memory.kind == "fact"
        for triple in _relation_triples(memory, names[memory.memory_id], entities)
    ]
    if not evidence:
        return
    ids = await ensure_relations(tx, {triple for triple, _ in evidence}, entities, ctx=ctx)
    await store.add_links(tx, "evidence", [(memory_id, ids[triple]) for triple, memory_id in evidence], ctx=ctx)
    await update_weights(tx, set(ids.values()), ctx=ctx)


async def lock(tx: Tx, *, ctx: WriteContext) -> None:
    """Lock entities and relations against other writers until the transaction ends."""
    await SQL["lock_entities"].execute(tx, agent_id=ctx.agent_id)


async def update_weights(tx: Tx, relation_ids: Iterable[UUID], *, ctx: WriteContext) -> None:
    """Update the weights of relations from their evidence: facts and declarations."""
    await SQL["update_weights"].execute(tx, agent_id=ctx.agent_id, memory_ids=list(relation_ids), doubt=WEIGHT_PRIOR)


def _relation_triples(memory: IndexableText, names: Sequence[str], entities: NameIndex) -> list[RelationTriple]:
    ids = [known.entity_id for name in names if (known := entities.resolve(name))]
    ids = list(dict.fromkeys(ids))
    pairs = list(pairwise(ids))
    if memory.subject and memory.attribute and pairs:
        value, *others = pairs
        return [
            (value[0], normalize_attribute(memory.attribute), value[1]),
            *((one, MENTIONED_WITH, other) for one, other in others),
        ]
    return [(one, MENTIONED_WITH, other) for one, other in pairs]


async def ensure_relations(
    tx: Tx, triples: Iterable[RelationTriple], entities: NameIndex, *, ctx: WriteContext
) -> dict[RelationTriple, UUID]:
    wanted = sorted(triples)
    columns = {
        "source_ids": [source for source, _, _ in wanted],
        "types": [kind for _, kind, _ in wanted],
        "target_ids": [target for _, _, target in wanted],
    }
    rows = await SQL["find_relations"].fetch_all(tx, agent_id=ctx.agent_id, **columns)
    ids: dict[RelationTriple, UUID] = {
        (row["source_id"], row["type"], row["target_id"]): row["memory_id"] for row in rows
    }
    drafts = {triple: _relation_memory(triple, entities, ctx=ctx) for triple in wanted if triple not in ids}
    await store.remember(tx, agent_id=ctx.agent_id, memories=list(drafts.values()))
    await SQL["insert_relations"].execute(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[draft.memory_id for draft in drafts.values()],
        source_ids=[source for source, _, _ in drafts],
        types=[kind for _, kind, _ in drafts],
        target_ids=[target for _, _, target in drafts],
    )
    return ids | {triple: draft.memory_id for triple, draft in drafts.items()}


def _entity_memory(declaration: EntityDeclaration, *, ctx: WriteContext) -> NewMemory:
    line = render_entity_line(declaration.name, declaration.type, declaration.properties)
    return _to_new_memory(
        "entity",
        line,
        digest(normalize_name(declaration.name)),
        occurred_at=declaration.occurred_at or ctx.now,
        ctx=ctx,
    )


def _relation_memory(triple: RelationTriple, entities: NameIndex, *, ctx: WriteContext) -> NewMemory:
    source, kind, target = triple
    line = render_relation_line(entities.name_of(source), kind, entities.name_of(target))
    return _to_new_memory("relation", line, hash_relation(triple), occurred_at=ctx.now, ctx=ctx)


def hash_relation(triple: RelationTriple) -> bytes:
    source, kind, target = triple
    return digest(str(source), kind, str(target))


def _to_new_memory(
    kind: Kind, line: str, content_hash: bytes, *, occurred_at: datetime, ctx: WriteContext
) -> NewMemory:
    """Return the memory of an entity or relation, which has no search text and no vector: it is found by name."""
    return NewMemory(
        kind=kind,
        forms=make_short_forms(line, count_tokens=ctx.count_tokens),
        full_text=line,
        indexed_text="",
        embedding_text=None,
        occurred_at=occurred_at,
        ctx=ctx,
        content_hash=content_hash,
    )
