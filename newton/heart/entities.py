"""Who and what there is: found by name in what people said and what is known, without a model, with their relations."""

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
from newton.heart.attributes import normal
from newton.heart.happenings import Json, Payload, entity_line, relation_line
from newton.heart.naming import Index, Known, key, names_in, salience, spellings
from newton.ids import new_id
from newton.memory import store
from newton.memory.memory import Draft, Kind, Teller, digest
from newton.memory.representations import forms

SQL = load("newton.heart", "entities.sql")

JOB = "entities"
BATCH = 500
WRITING = timedelta(minutes=1)  # the longest time between making an id and writing it
DOUBT = 2.0  # so much evidence makes a relation weigh one half
TOGETHER = "mentioned with"
MOST_NAMES = 12  # of one memory; more is a list, and a list says little of who belongs to whom
DEEPEST = 5


class Readable(NamedTuple):
    """A memory as it is read for names. Of a line the speaker is one, of a fact its subject."""

    memory_id: UUID
    kind: Kind
    text: str
    occurred_at: datetime
    trust: str
    speaker: str | None
    subject: str | None
    attribute: str | None

    @property
    def declared(self) -> str | None:
        return self.subject or self.speaker


@dataclass(frozen=True, slots=True, kw_only=True)
class Introduction:
    """Somebody says who or what there is, under which other names, and what it is like."""

    name: str
    type: str = "thing"
    aliases: tuple[str, ...] = ()
    properties: Payload = field(default_factory=dict[str, Json])
    at: datetime | None = None


class Relation(NamedTuple):
    """How two entities belong together; `weight` in [0, 1) grows with the evidence."""

    memory_id: UUID
    source_id: UUID
    source: str
    type: str
    target_id: UUID
    target: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An entity as a list shows it."""

    memory_id: UUID
    name: str
    type: str
    aliases: Sequence[str]
    mentions: int
    mentioned_at: datetime
    state: str

    def salience(self, now: datetime) -> float:
        return salience(self.mentions, (now - self.mentioned_at).total_seconds() / 86_400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A relation found by going from the entities asked for, and how many steps away."""

    relation: Relation
    depth: int


class Progress(NamedTuple):
    """How many memories were read, and the last of them: where to go on."""

    memories: int
    last: UUID


async def read(tx: Tx, *, ctx: Teller, after: UUID | None = None) -> Progress:
    """Reads the next memories for names and relations: those after one, or else where the last reading ended.

    What is read twice counts once. The latest minute is read again another time, for ids are made before they are
    written, and one that is made earlier may come later.
    """
    agent_id = ctx.agent_id
    await lock(tx, ctx=ctx)
    start = after or await _watermark(tx, agent_id)
    rows = [
        Readable(*row) for row in await SQL["list_indexable"].all(tx, agent_id=agent_id, after=start, max_rows=BATCH)
    ]
    if not rows:
        return Progress(0, start)
    known = await index(tx, agent_id=agent_id)
    found = _named(rows, known)
    entities = await _entities(tx, rows, found, known, ctx=ctx)
    await _mention(tx, rows, found, entities, ctx=ctx)
    await _relate(tx, rows, found, entities, ctx=ctx)
    last = rows[-1].memory_id
    await SQL["set_watermark"].run(tx, agent_id=agent_id, job=JOB, memory_id=min(last, _settled(ctx.now)))
    return Progress(len(rows), last)


async def _watermark(tx: Tx, agent_id: UUID) -> UUID:
    row = await SQL["get_watermark"].one(tx, agent_id=agent_id, job=JOB)
    return row["memory_id"] if row else UUID(int=0)


def _settled(now: datetime) -> UUID:
    """An id before which all are written: the first 48 bits of an id are the milliseconds at which it was made."""
    return UUID(int=int((now - WRITING).timestamp() * 1_000) << 80)


async def index(tx: Tx, *, agent_id: UUID) -> Index:
    """Every entity, to be found by name."""
    return Index(Known(*row) for row in await SQL["list_entity_names"].all(tx, agent_id=agent_id))


async def listed(tx: Tx, *, agent_id: UUID, most: int) -> list[Listed]:
    """The entities most often named."""
    return [Listed(**row) for row in await SQL["list_entities"].all(tx, agent_id=agent_id, max_rows=most)]


async def around(tx: Tx, entity_ids: Iterable[UUID], *, agent_id: UUID, depth: int) -> list[Reached]:
    """The relations around entities, in both directions, breadth first to a depth; a cycle is gone round once."""
    seen: set[UUID] = set()
    front, reached = set(entity_ids), list[Reached]()
    visited = set(front)
    for step in range(1, min(depth, DEEPEST) + 1):
        rows = await SQL["list_relations"].all(tx, agent_id=agent_id, entity_ids=list(front))
        fresh = [Relation(*row) for row in rows if row["memory_id"] not in seen]
        reached += [Reached(relation=relation, depth=step) for relation in fresh]
        seen |= {relation.memory_id for relation in fresh}
        front = {end for relation in fresh for end in (relation.source_id, relation.target_id)} - visited
        visited |= front
        if not front:
            break
    return reached


def _named(rows: Sequence[Readable], known: Index) -> dict[UUID, list[str]]:
    """The names of each memory, the declared one first, each once.

    A word that may only begin a sentence is a name when it is known as one, or stands as one elsewhere.
    """
    names = {memory.memory_id: names_in(memory.text) for memory in rows}
    sure = {key(memory.declared) for memory in rows if memory.declared}
    sure |= {key(name.text) for found in names.values() for name in found if name.sure}
    told: dict[UUID, list[str]] = {}
    for memory in rows:
        meant = [n.text for n in names[memory.memory_id] if n.sure or key(n.text) in sure or known.resolve(n.text)]
        each = {key(name): name for name in ([memory.declared] if memory.declared else []) + meant if key(name)}
        told[memory.memory_id] = list(each.values())[:MOST_NAMES]
    return told


async def _entities(
    tx: Tx, rows: Sequence[Readable], found: Mapping[UUID, Sequence[str]], index: Index, *, ctx: Teller
) -> Index:
    """Every entity there is, those of the batch included."""
    fresh: dict[str, tuple[str, datetime]] = {}
    for memory in rows:
        for name in found[memory.memory_id]:
            if index.resolve(name) is None:
                fresh.setdefault(key(name), (name, memory.occurred_at))
    new = [Introduction(name=name, at=at) for name, at in fresh.values()]
    for introduction, entity in zip(new, await insert(tx, new, ctx=ctx), strict=True):
        index.add(Known(entity, introduction.name, ()))
    return index


async def insert(tx: Tx, introductions: Sequence[Introduction], *, ctx: Teller) -> list[UUID]:
    """Writes entities of which none is known; returns their ids in the same order. Raises InputError for a name without
    words."""
    for one in introductions:
        if not key(one.name):
            raise InputError(f"{one.name!r} is no name.", hint="Give it letters or digits.")
    drafts = [_entity(introduction, ctx=ctx) for introduction in introductions]
    await store.remember(tx, agent_id=ctx.agent_id, drafts=drafts)
    rows = [
        {
            "memory_id": str(draft.memory_id),
            "name": one.name,
            "key": key(one.name),
            "type": one.type,
            "aliases": one.aliases,
            "properties": one.properties,
            "mentioned_at": draft.occurred_at.isoformat(),
        }
        for one, draft in zip(introductions, drafts, strict=True)
    ]
    await SQL["insert_entities"].run(tx, agent_id=ctx.agent_id, entities=json.dumps(rows))
    ids = [draft.memory_id for draft in drafts]
    await spell(tx, [Known(i, one.name, one.aliases) for i, one in zip(ids, introductions, strict=True)], ctx=ctx)
    return ids


async def spell(tx: Tx, known: Sequence[Known], *, ctx: Teller) -> None:
    """Notes the words by which entities may be meant, so that they are found in a text without reading all of them."""
    spelt = [(words, one.entity_id) for one in known for words in sorted(spellings(one.name, one.aliases))]
    await SQL["insert_names"].run(
        tx,
        agent_id=ctx.agent_id,
        spellings=[words for words, _ in spelt],
        entity_ids=[entity for _, entity in spelt],
    )


async def _mention(
    tx: Tx, rows: Sequence[Readable], found: Mapping[UUID, Sequence[str]], entities: Index, *, ctx: Teller
) -> None:
    met = [
        (known.entity_id, memory.memory_id, memory.occurred_at)
        for memory in rows
        for name in found[memory.memory_id]
        if (known := entities.resolve(name))
    ]
    if met:
        await SQL["insert_mentions"].run(
            tx,
            agent_id=ctx.agent_id,
            entity_ids=[entity for entity, _, _ in met],
            memory_ids=[memory for _, memory, _ in met],
            times=[at for _, _, at in met],
        )


Triple = tuple[UUID, str, UUID]


async def _relate(
    tx: Tx,
    rows: Sequence[Readable],
    found: Mapping[UUID, Sequence[str]],
    entities: Index,
    *,
    ctx: Teller,
) -> None:
    """Facts relate their subject to the first they name, by their attribute; others were named together."""
    evidence = [
        (triple, memory.memory_id)
        for memory in rows
        if memory.kind == "fact"
        for triple in _triples(memory, found[memory.memory_id], entities)
    ]
    if not evidence:
        return
    ids = await relations(tx, {triple for triple, _ in evidence}, entities, ctx=ctx)
    await store.connect(tx, "evidence", [(memory_id, ids[triple]) for triple, memory_id in evidence], ctx=ctx)
    await weigh(tx, set(ids.values()), ctx=ctx)


async def lock(tx: Tx, *, ctx: Teller) -> None:
    """Until the end of the unit of work nobody else writes entities and relations."""
    await SQL["lock_entities"].run(tx, agent_id=ctx.agent_id)


async def weigh(tx: Tx, relation_ids: Iterable[UUID], *, ctx: Teller) -> None:
    """Gives relations the weight that their evidence has: facts, and tellings of the relation itself."""
    await SQL["update_weights"].run(tx, agent_id=ctx.agent_id, memory_ids=list(relation_ids), doubt=DOUBT)


def _triples(memory: Readable, names: Sequence[str], entities: Index) -> list[Triple]:
    ids = [known.entity_id for name in names if (known := entities.resolve(name))]
    ids = list(dict.fromkeys(ids))
    pairs = list(pairwise(ids))
    if memory.subject and memory.attribute and pairs:
        value, *others = pairs
        return [(value[0], normal(memory.attribute), value[1]), *((one, TOGETHER, other) for one, other in others)]
    return [(one, TOGETHER, other) for one, other in pairs]


async def relations(tx: Tx, triples: Iterable[Triple], entities: Index, *, ctx: Teller) -> dict[Triple, UUID]:
    wanted = sorted(triples)
    columns = {
        "source_ids": [source for source, _, _ in wanted],
        "types": [kind for _, kind, _ in wanted],
        "target_ids": [target for _, _, target in wanted],
    }
    rows = await SQL["find_relations"].all(tx, agent_id=ctx.agent_id, **columns)
    ids: dict[Triple, UUID] = {(row["source_id"], row["type"], row["target_id"]): row["memory_id"] for row in rows}
    drafts = {triple: _relation(triple, entities, ctx=ctx) for triple in wanted if triple not in ids}
    await store.remember(tx, agent_id=ctx.agent_id, drafts=list(drafts.values()))
    await SQL["insert_relations"].run(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[draft.memory_id for draft in drafts.values()],
        source_ids=[source for source, _, _ in drafts],
        types=[kind for _, kind, _ in drafts],
        target_ids=[target for _, _, target in drafts],
    )
    return ids | {triple: draft.memory_id for triple, draft in drafts.items()}


def _entity(introduction: Introduction, *, ctx: Teller) -> Draft:
    line = entity_line(introduction.name, introduction.type, introduction.properties)
    return _draft("entity", line, digest(key(introduction.name)), at=introduction.at or ctx.now, ctx=ctx)


def _relation(triple: Triple, entities: Index, *, ctx: Teller) -> Draft:
    source, kind, target = triple
    line = relation_line(entities.name_of(source), kind, entities.name_of(target))
    return _draft("relation", line, relation_hash(triple), at=ctx.now, ctx=ctx)


def relation_hash(triple: Triple) -> bytes:
    source, kind, target = triple
    return digest(str(source), kind, str(target))


def _draft(kind: Kind, line: str, content_hash: bytes, *, at: datetime, ctx: Teller) -> Draft:
    """Entities and relations are found by name and by going from one to the next, so neither words nor a vector."""
    return Draft(
        memory_id=new_id(),
        kind=kind,
        state="ACTIVE",
        forms=forms(line, count=ctx.count_tokens),
        full_text=line,
        indexed="",
        cue=None,
        occurred_at=at,
        created_at=ctx.now,
        origin=ctx.origin,
        trust=ctx.trust,
        content_hash=content_hash,
    )
