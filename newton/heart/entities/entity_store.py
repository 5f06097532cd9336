"""Store of entities and relations. They are recognized by names in messages and facts, without a model."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import NamedTuple, Self
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import InputError
from newton.heart.entities.indexable_text import IndexableText
from newton.heart.entities.role_names import find_holders, find_roles
from newton.heart.entities.role_store import record_roles
from newton.heart.events.event_types import Json, Payload, render_entity_line, render_relation_line
from newton.heart.facts.attributes import normalize_attribute
from newton.memory import store
from newton.memory.memory import TRUST_TIERS, UNTRUSTED_TIERS, Kind, NewMemory, Trust, WriteContext, digest
from newton.memory.representations import make_short_forms
from newton.memory.store import PlannedTransition
from newton.text.names import NamedEntity, NameIndex, compute_salience, find_names, list_spellings, normalize_name

SQL = load("newton.heart.entities", "entity_store.sql")

INDEX_JOB = "entities"
BATCH = 500
MAX_WRITE_DELAY = timedelta(minutes=1)  # longest time between the creation of an id and its insertion
WEIGHT_PRIOR = 2.0  # pieces of evidence at which a relation has weight 0.5
MENTIONED_WITH = "mentioned with"
MAX_NAMES = 12  # per memory; more names are a list, which says little about relations
MAX_DEPTH = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityDeclaration:
    """An entity to store, with its type, aliases and properties."""

    name: str
    type: str = "thing"
    aliases: tuple[str, ...] = ()
    properties: Payload = field(default_factory=dict[str, Json])
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EntityRelation:
    """A relation between two entities. `weight`, in [0, 1), grows with the facts and declarations that state it.

    `trust` is the highest trust of those who state it. `is_current` is false if every fact that states it is superseded
    or retracted. `depth` is the distance in relations from the entity that was asked for.
    """

    memory_id: UUID
    source_id: UUID
    source: str
    type: str
    target_id: UUID
    target: str
    weight: float
    trust: Trust
    is_current: bool = True
    depth: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class EntitySummary:
    """An entity with the number of its mentions and the time of the latest one.

    `salience` is high if it is mentioned often and recently.
    """

    memory_id: UUID
    name: str
    type: str
    aliases: Sequence[str]
    mentions: int
    mentioned_at: datetime
    state: str
    salience: float = 0.0

    def at(self, now: datetime) -> Self:
        """Return a copy with the salience at a time."""
        return replace(self, salience=round(compute_salience(self.mentions, now - self.mentioned_at), 3))


class IndexProgress(NamedTuple):
    """The number of memories that one call indexed, and the id of the last one; the next call continues after it."""

    memories: int
    last: UUID


async def index_mentions(tx: Tx, *, ctx: WriteContext, after: UUID | None = None) -> IndexProgress:
    """Find and store the entities and relations that the next batch of memories names. Idempotent.

    The batch begins after the memory `after`, by default where the last call ended. Memories of the last minute are
    indexed again by the next call, because an id is created before its row is committed. A quarantined memory is
    indexed once it is released.
    """
    agent_id = ctx.agent_id
    await store.lock_entities(tx, agent_id=agent_id)
    watermark = await SQL["get_watermark"].fetch_one(tx, agent_id=agent_id, job=INDEX_JOB)
    start = after or (watermark["memory_id"] if watermark else UUID(int=0))
    rows = await SQL["list_indexable"].fetch_all(tx, agent_id=agent_id, after=start, max_rows=BATCH)
    if not rows:
        return IndexProgress(0, start)
    index = await load_index(tx, agent_id=agent_id)
    texts = _collect_names([IndexableText(*row[:-1]) for row in rows], index)
    await _ensure_entities(tx, texts, index, ctx=ctx)
    await _record_mentions(tx, texts, index, ctx=ctx)
    in_roles = await record_roles(tx, [memory for memory, _ in texts], index, ctx=ctx)
    await _insert_mentions(tx, [(entity_id, one.memory_id, one.occurred_at) for one, entity_id in in_roles], ctx=ctx)
    await _record_relations(tx, texts, index, ctx=ctx)
    last = rows[-1]["place"]
    # older than every uncommitted id: the first 48 bits of an id are its time in milliseconds
    oldest = UUID(int=int((ctx.now - MAX_WRITE_DELAY).timestamp() * 1_000) << 80)
    await SQL["set_watermark"].execute(tx, agent_id=agent_id, job=INDEX_JOB, memory_id=min(last, oldest))
    return IndexProgress(len(rows), last)


async def load_index(tx: Tx, *, agent_id: UUID) -> NameIndex:
    """Return an index that finds every entity of the agent by its names."""
    return NameIndex(NamedEntity(*row) for row in await SQL["list_entity_names"].fetch_all(tx, agent_id=agent_id))


async def list_entities(tx: Tx, *, agent_id: UUID, limit: int) -> list[EntitySummary]:
    """Return up to `limit` entities, those with the most mentions first."""
    return [EntitySummary(**row) for row in await SQL["list_entities"].fetch_all(tx, agent_id=agent_id, max_rows=limit)]


async def list_session_entities(tx: Tx, *, agent_id: UUID, session_id: UUID, limit: int) -> list[EntitySummary]:
    """Return up to `limit` entities that a session mentions, the most mentioned in it first."""
    query = SQL["list_session_entities"]
    rows = await query.fetch_all(tx, agent_id=agent_id, session_id=session_id, max_rows=limit)
    return [EntitySummary(**row) for row in rows]


async def find_relations(
    tx: Tx, entity_ids: Iterable[UUID], *, agent_id: UUID, depth: int, now: datetime
) -> list[EntityRelation]:
    """Return the relations within `depth` steps of the entities, in both directions, nearest and current first."""
    relations: dict[UUID, EntityRelation] = {}
    front = visited = set(entity_ids)
    for step in range(1, min(depth, MAX_DEPTH) + 1):
        rows = await SQL["list_relations"].fetch_all(tx, agent_id=agent_id, entity_ids=list(front), now=now)
        new = [EntityRelation(*row, depth=step) for row in rows if row["memory_id"] not in relations]
        relations |= {relation.memory_id: relation for relation in new}
        front = {end for relation in new for end in (relation.source_id, relation.target_id)} - visited
        visited = visited | front
        if not front:
            break
    return list(relations.values())


_NamedText = tuple[IndexableText, Sequence[str]]


def _collect_names(memories: Sequence[IndexableText], index: NameIndex) -> list[_NamedText]:
    """Return each memory with the distinct names in it, beginning with that of its speaker or subject.

    A name that may be capitalized only because it begins a sentence counts if an entity has it, or if it is certainly a
    name elsewhere in the batch.
    """
    mentions = [find_names(memory.text) for memory in memories]
    certain = {normalize_name(memory.declared_name) for memory in memories if memory.declared_name}
    certain |= {normalize_name(name.text) for names in mentions for name in names if name.is_certain}
    texts: list[_NamedText] = []
    for memory, names in zip(memories, mentions, strict=True):
        distinct = {normalize_name(memory.declared_name): memory.declared_name} if memory.declared_name else {}
        holders = find_holders(memory.text) if memory.is_of_user else ()
        distinct |= {normalize_name(holder.name): holder.name for holder in holders}
        keys = [(normalize_name(name.text), name.text) for name in names if not find_roles(name.text)]
        distinct |= {key: name for key, name in keys if key in certain or index.resolve(name)}
        texts.append((memory, [name for key, name in distinct.items() if key][:MAX_NAMES]))
    return texts


async def _ensure_entities(tx: Tx, texts: Sequence[_NamedText], index: NameIndex, *, ctx: WriteContext) -> None:
    """Insert an entity for each name of a batch that no entity has, and add it to the index."""
    unknown: dict[str, EntityDeclaration] = {}
    for memory, names in texts:
        for name in names:
            if index.resolve(name) is None:
                declaration = EntityDeclaration(name=name, occurred_at=memory.occurred_at)
                unknown.setdefault(normalize_name(name), declaration)
    await insert_into_index(tx, list(unknown.values()), index, ctx=ctx)


async def insert_into_index(
    tx: Tx, declarations: Sequence[EntityDeclaration], index: NameIndex, *, ctx: WriteContext
) -> None:
    """Insert new entities, which have no aliases yet, and add them to the index."""
    ids = await insert_entities(tx, declarations, ctx=ctx)
    for declaration, entity_id in zip(declarations, ids, strict=True):
        index.add(NamedEntity(entity_id, declaration.name, ()))


async def insert_entities(tx: Tx, declarations: Sequence[EntityDeclaration], *, ctx: WriteContext) -> list[UUID]:
    """Insert new entities and return their ids in the same order. Raises InputError for a name without words."""
    for one in declarations:
        if not normalize_name(one.name):
            raise InputError(f"Invalid entity name {one.name!r}.", hint="Give a name with letters or digits.")
    drafts = [_entity_memory(declaration, ctx=ctx) for declaration in declarations]
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
    entities = [NamedEntity(i, one.name, one.aliases) for i, one in zip(ids, declarations, strict=True)]
    await record_spellings(tx, entities, ctx=ctx)
    return ids


async def record_spellings(tx: Tx, entities: Sequence[NamedEntity], *, ctx: WriteContext) -> None:
    """Store the spellings of entities. A database index on them finds the entities that a text names."""
    pairs = [
        (spelling, one.entity_id) for one in entities for spelling in sorted(list_spellings(one.name, one.aliases))
    ]
    if pairs:
        spellings, entity_ids = zip(*pairs, strict=True)
        await SQL["insert_names"].execute(tx, agent_id=ctx.agent_id, spellings=spellings, entity_ids=entity_ids)


async def _record_mentions(tx: Tx, texts: Sequence[_NamedText], index: NameIndex, *, ctx: WriteContext) -> None:
    mentions = [
        (entity.entity_id, memory.memory_id, memory.occurred_at)
        for memory, names in texts
        for name in names
        if (entity := index.resolve(name))
    ]
    await _insert_mentions(tx, mentions, ctx=ctx)


async def _insert_mentions(tx: Tx, mentions: Sequence[tuple[UUID, UUID, datetime]], *, ctx: WriteContext) -> None:
    if mentions:
        entity_ids, memory_ids, times = zip(*mentions, strict=True)
        await SQL["insert_mentions"].execute(
            tx, agent_id=ctx.agent_id, entity_ids=entity_ids, memory_ids=memory_ids, times=times
        )


RelationTriple = tuple[UUID, str, UUID]


async def _record_relations(tx: Tx, texts: Sequence[_NamedText], index: NameIndex, *, ctx: WriteContext) -> None:
    """Store the relations that facts state.

    The attribute of a fact relates its subject to the first name in it. Each further name is "mentioned with" the one
    before.
    """
    evidence = [
        (triple, memory)
        for memory, names in texts
        if memory.kind == "fact"
        for triple in _relation_triples(memory, names, index)
    ]
    by_trust = sorted(evidence, key=lambda pair: TRUST_TIERS.index(pair[1].trust))
    for trust, stated in groupby(by_trust, key=lambda pair: pair[1].trust):  # a relation is as trusted as its best fact
        pairs, trust_ctx = list(stated), replace(ctx, trust=trust)
        ids = await ensure_relations(tx, {triple for triple, _ in pairs}, index, ctx=trust_ctx)
        await store.add_links(tx, "evidence", [(one.memory_id, ids[triple]) for triple, one in pairs], ctx=ctx)
        await update_weights(tx, set(ids.values()), ctx=ctx)
        if trust not in UNTRUSTED_TIERS:
            reason = "a trusted statement says the same"
            event = ("released", "ACTIVE", "ACTIVE", reason)
            release = [PlannedTransition(one, *event, releases=True) for one in ids.values()]
            await store.apply_transitions(tx, release, ctx=ctx)


async def update_weights(tx: Tx, relation_ids: Iterable[UUID], *, ctx: WriteContext) -> None:
    """Compute the weights of relations again, from the facts and declarations that state them."""
    await SQL["update_weights"].execute(tx, agent_id=ctx.agent_id, memory_ids=list(relation_ids), doubt=WEIGHT_PRIOR)


def _relation_triples(memory: IndexableText, names: Sequence[str], index: NameIndex) -> list[RelationTriple]:
    ids = dict.fromkeys(entity.entity_id for name in names if (entity := index.resolve(name)))
    triples = [(source, MENTIONED_WITH, target) for source, target in pairwise(ids)]
    if memory.subject and memory.attribute and triples:
        source, _, target = triples[0]
        triples[0] = (source, normalize_attribute(memory.attribute), target)
    return triples


async def ensure_relations(
    tx: Tx, triples: Iterable[RelationTriple], index: NameIndex, *, ctx: WriteContext
) -> dict[RelationTriple, UUID]:
    """Insert the relations that are not stored yet; return the id of each relation by its triple.

    A triple is the id of the source, the type and the id of the target.
    """
    ordered = sorted(triples)
    rows = await SQL["find_relations"].fetch_all(tx, agent_id=ctx.agent_id, **_to_columns(ordered))
    ids: dict[RelationTriple, UUID] = {
        (row["source_id"], row["type"], row["target_id"]): row["memory_id"] for row in rows
    }
    drafts = {triple: _relation_memory(triple, index, ctx=ctx) for triple in ordered if triple not in ids}
    await store.remember(tx, agent_id=ctx.agent_id, memories=list(drafts.values()))
    new = {triple: draft.memory_id for triple, draft in drafts.items()}
    await SQL["insert_relations"].execute(
        tx, agent_id=ctx.agent_id, memory_ids=list(new.values()), **_to_columns(list(new))
    )
    return ids | new


def _to_columns(triples: Sequence[RelationTriple]) -> dict[str, object]:
    return {
        "source_ids": [source for source, _, _ in triples],
        "types": [kind for _, kind, _ in triples],
        "target_ids": [target for _, _, target in triples],
    }


def _entity_memory(declaration: EntityDeclaration, *, ctx: WriteContext) -> NewMemory:
    line = render_entity_line(declaration.name, declaration.type, declaration.properties)
    occurred_at = declaration.occurred_at or ctx.now
    return _to_new_memory("entity", line, digest(normalize_name(declaration.name)), occurred_at=occurred_at, ctx=ctx)


def _relation_memory(triple: RelationTriple, index: NameIndex, *, ctx: WriteContext) -> NewMemory:
    source, kind, target = triple
    line = render_relation_line(index.name_of(source), kind, index.name_of(target))
    return _to_new_memory("relation", line, hash_relation(triple), occurred_at=ctx.now, ctx=ctx)


def hash_relation(triple: RelationTriple) -> bytes:
    return digest(*map(str, triple))


def _to_new_memory(
    kind: Kind, line: str, content_hash: bytes, *, occurred_at: datetime, ctx: WriteContext
) -> NewMemory:
    """Return an entity or relation as a memory, without search text and vector: it is found by names only."""
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
