"""Look up the entities that an input names and then, step by step, their relations."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.entities.entity_store import MAX_DEPTH, MENTIONED_WITH
from newton.heart.entities.name_recognition import (
    HALF_LIFE_DAYS,
    SALIENCE_PRIOR,
    NameIndex,
    compute_salience,
    list_candidate_spellings,
)
from newton.heart.entities.name_recognition import NamedEntity as Called
from newton.heart.procedure_matching import MAX_INPUT_CHARACTERS, extract_stems, stem_overlap
from newton.memory.recall import fetch_memories
from newton.memory.search_types import RetrievedMemory
from newton.memory.transitions import END_OF_TIME

SQL = load("newton.heart.entities", "entity_lookup.sql")

MAX_RELATIONS_PER_STEP = 200  # relations read per step: a hub may have thousands
MAX_CANDIDATES_PER_STEP = 8  # relations returned per step


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityQuery:
    """The input, the moment, the number of unnamed salient entities and the depth of relations.

    Memories in `excluded_ids` are skipped. Without a `moment` the current state is used.
    """

    agent_id: UUID
    text: str
    now: datetime
    max_salient: int
    max_depth: int
    moment: datetime | None = None
    excluded_ids: Sequence[UUID] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMatches:
    """The entities and relations found.

    `unasked` lists the most salient entities that the input does not name, `steps` the distance of each relation, and
    `types` those of the named entities. Entities known by name only, and relations of mere co-occurrence, are followed
    but not returned.
    """

    memories: Sequence[RetrievedMemory] = ()
    mentioned_ids: frozenset[UUID] = frozenset()
    salient_ids: Sequence[UUID] = ()
    entity_types: frozenset[str] = frozenset()
    salience: Mapping[UUID, float] = field(default_factory=dict[UUID, float])
    distances: Mapping[UUID, int] = field(default_factory=dict[UUID, int])


class EntityRow(NamedTuple):
    """An entity with the inputs of its salience; `told` is True when more than its name is known."""

    memory_id: UUID
    name: str
    aliases: Sequence[str]
    type: str
    mentions: int
    mentioned_at: datetime
    is_described: bool


class RelationRow(NamedTuple):
    """A relation with both ends."""

    memory_id: UUID
    source_id: UUID
    type: str
    target_id: UUID
    weight: float


async def find_entities(tx: Tx, query: EntityQuery) -> EntityMatches:
    """Find entities by name and alias as whole words, with their relations, weighted by evidence."""
    about = {one.memory_id: one for one in await find_named_entities(tx, query)}
    mentioned = list(about)
    about |= {one.memory_id: one for one in await _find_salient(tx, query) if one.memory_id not in about}
    bonds, steps = await _follow_relations(tx, mentioned, query)
    told = [
        one.memory_id for one in about.values() if one.is_described and one.memory_id not in set(query.excluded_ids)
    ]
    found = list[RetrievedMemory]()
    if told or bonds:
        found = await fetch_memories(tx, [*told, *bonds], agent_id=query.agent_id, moment=query.moment)
    wanted = extract_stems(query.text)
    scored = [one._replace(relevance=stem_overlap(wanted, one.summary)) for one in found]
    matters = {
        i: compute_salience(one.mentions, _days_between(query.now, one.mentioned_at)) for i, one in about.items()
    }
    return EntityMatches(
        memories=_select_relations(scored, bonds, steps),
        mentioned_ids=frozenset(mentioned),
        salient_ids=[one for one in about if one not in set(mentioned)],
        entity_types=frozenset(about[one].type for one in mentioned) - {"thing"},
        salience=matters | {bond.memory_id: bond.weight for bond in bonds.values()},
        distances=steps,
    )


async def find_named_entities(tx: Tx, query: EntityQuery) -> list[EntityRow]:
    """Return the entities that the beginning of the input names."""
    text = query.text[:MAX_INPUT_CHARACTERS]
    if not (spellings := list_candidate_spellings(text)):
        return []
    rows = [
        EntityRow(*row) for row in await SQL["find_by_name"].fetch_all(tx, agent_id=query.agent_id, spellings=spellings)
    ]
    by_id = {one.memory_id: one for one in rows}
    called = NameIndex(Called(one.memory_id, one.name, tuple(one.aliases)) for one in rows)
    return [by_id[memory_id] for memory_id in called.find_mentions(text)] if rows else []


async def _find_salient(tx: Tx, query: EntityQuery) -> list[EntityRow]:
    if query.max_salient < 1:
        return []
    rows = await SQL["list_most_salient"].fetch_all(
        tx,
        agent_id=query.agent_id,
        now=query.now,
        enough=SALIENCE_PRIOR,
        half_life=HALF_LIFE_DAYS,
        excluded_ids=query.excluded_ids,
        max_rows=query.max_salient,
    )
    return [EntityRow(*row) for row in rows]


async def _follow_relations(
    tx: Tx, start: Collection[UUID], query: EntityQuery
) -> tuple[dict[UUID, RelationRow], dict[UUID, int]]:
    """Search relations breadth first, and return them with their distances. Each entity is expanded once."""
    bonds, steps = dict[UUID, RelationRow](), dict[UUID, int]()
    front, visited = set(start), set(start)
    for step in range(1, min(query.max_depth, MAX_DEPTH) + 1):
        if not front:
            break
        rows = await SQL["list_relations_at"].fetch_all(
            tx,
            agent_id=query.agent_id,
            entity_ids=list(front),
            moment=query.moment or END_OF_TIME,
            excluded_ids=query.excluded_ids,
            max_rows=MAX_RELATIONS_PER_STEP,
        )
        reached = [RelationRow(*row) for row in rows]
        for bond in reached:
            if bond.type != MENTIONED_WITH and bond.memory_id not in steps:
                bonds[bond.memory_id], steps[bond.memory_id] = bond, step
        front = {end for bond in reached for end in (bond.source_id, bond.target_id)} - visited
        visited |= front
    return bonds, steps


def _select_relations(
    memories: Sequence[RetrievedMemory], relations: Mapping[UUID, RelationRow], distances: Mapping[UUID, int]
) -> list[RetrievedMemory]:
    """Return all entities and, per step, the relations that fit the input best; ties by weight."""
    entities = [one for one in memories if one.memory_id not in relations]
    ranked = sorted(
        (one for one in memories if one.memory_id in relations),
        key=lambda one: (distances[one.memory_id], -one.relevance, -relations[one.memory_id].weight, one.memory_id),
    )
    places: dict[int, int] = {}
    for one in ranked:
        step = distances[one.memory_id]
        places[step] = places.get(step, 0) + 1
        if places[step] <= MAX_CANDIDATES_PER_STEP:
            entities.append(one)
    return entities


def _days_between(now: datetime, then: datetime) -> float:
    return (now - then).total_seconds() / 86_400
