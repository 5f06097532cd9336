"""Lookup of the entities that an input or the subject of a fact names, with their relations and mentions."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, islice
from typing import NamedTuple
from uuid import UUID

from pydantic import JsonValue

from newton.db.pool import Tx
from newton.db.queries import Record, load
from newton.heart.entities.entity_store import MAX_DEPTH, MENTIONED_WITH, EntityRelation, EntitySummary
from newton.heart.entities.role_names import find_roles, name_role
from newton.heart.facts.attributes import normalize_attribute, normalize_subject
from newton.memory.memory import Kind
from newton.memory.memory_reader import fetch_memories
from newton.memory.search_types import RetrievedMemory
from newton.memory.store import END_OF_TIME
from newton.text.names import (
    HALF_LIFE_DAYS,
    SALIENCE_PRIOR,
    NamedEntity,
    NameIndex,
    compute_salience,
    find_names,
    list_candidate_spellings,
    list_spellings,
    normalize_name,
)
from newton.text.words import MAX_COMPARED_CHARACTERS, extract_stems, stem_overlap

SQL = load("newton.heart.entities", "entity_lookup.sql")

OTHER_SUBJECT_FACTOR = 0.9  # of the relevance of the best fact on the named subject


def demote_other_subjects(text: str, memories: Sequence[RetrievedMemory]) -> Sequence[RetrievedMemory]:
    """Rank facts on other subjects below the best fact on a subject that the text names; return all, best first.

    A fact is on another subject if it begins with a name and contains none of the names in the text.
    """
    names = {word for mention in find_names(text) for word in mention.text.casefold().split()}
    facts = [found for found in memories if found.kind == "fact"] if names else []
    named = {found.memory_id for found in facts if any(name in found.summary.casefold() for name in names)}
    if not named:
        return memories
    limit = OTHER_SUBJECT_FACTOR * max(found.relevance for found in facts if found.memory_id in named)
    above = [found for found in facts if found.memory_id not in named and found.relevance > limit]
    others = {found.memory_id for found in above if _begins_with_name(found.summary)}
    demoted = [f._replace(relevance=limit) if f.memory_id in others else f for f in memories]
    return sorted(demoted, key=lambda f: (-f.relevance, f.memory_id))


def _begins_with_name(text: str) -> bool:
    return any(mention.start == 0 for mention in find_names(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMention:
    """A memory that mentions an entity."""

    memory_id: UUID
    kind: Kind
    state: str
    text: str
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRecord(EntitySummary):
    """An entity with its properties and relations, and the latest memories that mention it."""

    properties: Mapping[str, JsonValue]
    relations: Sequence[EntityRelation]
    mentioned_in: Sequence[EntityMention]


async def read_entity(tx: Tx, entity_id: UUID, *, agent_id: UUID) -> tuple[EntitySummary, dict[str, JsonValue]]:
    """Return an entity and its properties. The entity must exist."""
    row = await SQL["get_entity"].fetch_one(tx, agent_id=agent_id, entity_id=entity_id)
    assert row is not None, "the entity was found in the same transaction"
    fields = dict(row)
    properties: dict[str, JsonValue] = json.loads(fields.pop("properties"))
    return EntitySummary(**fields), properties


async def list_mentions(tx: Tx, entity_id: UUID, *, agent_id: UUID, limit: int) -> list[UUID]:
    """Return the ids of up to `limit` current memories that mention an entity, latest first."""
    rows = await SQL["list_mentions"].fetch_all(tx, agent_id=agent_id, entity_id=entity_id, max_rows=limit)
    return [row["memory_id"] for row in rows]


MAX_RELATIONS_PER_STEP = 200  # read per step, because an entity may have thousands
MAX_CANDIDATES_PER_STEP = 8  # returned per step
MAX_ROLE_FACTS = 50  # the latest that name an entity with a role


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityQuery:
    """A query for the entities and relations that are relevant to an input text.

    It asks for the entities that the text names, for up to `max_salient` others that are mentioned often and recently,
    and for relations up to `max_depth` steps from the named ones. Other entities of `preferred_types`, and at each step
    relations of `preferred_relation_types`, come first. Memories in `excluded_ids` are skipped. Without a `moment`, the
    current state is read.
    """

    agent_id: UUID
    text: str
    now: datetime
    max_salient: int
    max_depth: int
    moment: datetime | None = None
    excluded_ids: Sequence[UUID] = ()
    preferred_types: Sequence[str] = ()
    preferred_relation_types: Sequence[str] = ()

    @property
    def relation_type_names(self) -> list[str]:
        """Return the preferred relation types as relations store them: in lower case, with spaces."""
        return [normalize_attribute(one) for one in self.preferred_relation_types]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMatches:
    """The entities and relations that are relevant to an input.

    `memories` are their memories. `mentioned_ids` are the entities that the input names, `entity_types` their types,
    and `salient_ids` other entities, most salient first. `salience` maps entities to theirs and relations to their
    weights. `distances` maps relations to their steps from a named entity, `evidence` to the facts that state them.
    Relations that only say that two names occur together, and entities of which only the name is known, are not among
    the memories.
    """

    memories: Sequence[RetrievedMemory] = ()
    mentioned_ids: frozenset[UUID] = frozenset()
    salient_ids: Sequence[UUID] = ()
    entity_types: frozenset[str] = frozenset()
    salience: Mapping[UUID, float] = field(default_factory=dict[UUID, float])
    distances: Mapping[UUID, int] = field(default_factory=dict[UUID, int])
    evidence: Mapping[UUID, Sequence[UUID]] = field(default_factory=dict[UUID, Sequence[UUID]])


class EntityRow(NamedTuple):
    """An entity with the number and the latest time of its mentions.

    `is_described` is True if more than its name is known.
    """

    memory_id: UUID
    name: str
    aliases: Sequence[str]
    type: str
    mentions: int
    mentioned_at: datetime
    is_described: bool


class RelationRow(NamedTuple):
    """A relation with the ids of its two entities and of the facts that state it."""

    memory_id: UUID
    source_id: UUID
    type: str
    target_id: UUID
    weight: float
    evidence_ids: Sequence[UUID]


async def find_entities(tx: Tx, query: EntityQuery) -> EntityMatches:
    """Return the entities that the input names as whole words, their relations, and other salient entities."""
    mentioned = {one.memory_id: one for one in await find_named_entities(tx, query)}
    salient = {one.memory_id: one for one in await _find_salient(tx, query) if one.memory_id not in mentioned}
    entities = mentioned | salient
    relations, distances = await _follow_relations(tx, mentioned.keys(), query)
    described = [i for i, entity in entities.items() if entity.is_described and i not in query.excluded_ids]
    found = list[RetrievedMemory]()
    if described or relations:
        found = await fetch_memories(tx, [*described, *relations], agent_id=query.agent_id, moment=query.moment)
    stems = extract_stems(query.text)
    scored = [one._replace(relevance=stem_overlap(stems, one.summary)) for one in found]
    told = await _find_role_facts(tx, mentioned.values(), query)
    salience = {i: compute_salience(one.mentions, query.now - one.mentioned_at) for i, one in entities.items()}
    return EntityMatches(
        memories=[
            *_select_relations(scored, relations, distances, preferred_types=query.relation_type_names),
            *told,
        ],
        mentioned_ids=frozenset(mentioned),
        salient_ids=list(salient),
        entity_types=frozenset(entity.type for entity in mentioned.values()) - {"thing"},
        salience=salience | {i: relation.weight for i, relation in relations.items()},
        distances=distances,
        evidence={i: relation.evidence_ids for i, relation in relations.items()},
    )


async def find_named_entities(tx: Tx, query: EntityQuery) -> list[EntityRow]:
    """Return the entities that are named in the first MAX_COMPARED_CHARACTERS characters of the input."""
    text = query.text[:MAX_COMPARED_CHARACTERS]
    text = " . ".join([text, *find_roles(text)])  # a role has one name in all languages
    if not (spellings := list_candidate_spellings(text)):
        return []
    rows = await SQL["find_by_name"].fetch_all(tx, agent_id=query.agent_id, spellings=spellings)
    entities = {row["memory_id"]: EntityRow(*row) for row in rows}
    index = NameIndex(NamedEntity(i, one.name, tuple(one.aliases)) for i, one in entities.items())
    return [entities[memory_id] for memory_id in index.find_mentions(text)]


async def _find_role_facts(tx: Tx, entities: Iterable[EntityRow], query: EntityQuery) -> list[RetrievedMemory]:
    """Return the facts that name an entity with a role otherwise than the input does, the best matches first."""
    ids = [one.memory_id for one in entities if any(map(find_roles, one.aliases))]
    if not ids:
        return []
    rows = await SQL["list_fact_mentions"].fetch_all(
        tx, agent_id=query.agent_id, entity_ids=ids, excluded_ids=query.excluded_ids, max_rows=MAX_ROLE_FACTS
    )
    found = await fetch_memories(tx, [row["memory_id"] for row in rows], agent_id=query.agent_id, moment=query.moment)
    stems = extract_stems(query.text)
    scored = [one._replace(relevance=stem_overlap(stems, one.summary)) for one in found]
    return sorted(scored, key=lambda one: -one.relevance)[:MAX_CANDIDATES_PER_STEP]


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
        preferred_types=list(query.preferred_types),
        max_rows=query.max_salient,
    )
    return [EntityRow(*row) for row in rows]


async def _follow_relations(
    tx: Tx, start: Collection[UUID], query: EntityQuery
) -> tuple[dict[UUID, RelationRow], dict[UUID, int]]:
    """Return the relations that a breadth-first search from `start` finds, and the distance of each in steps."""
    relations, distances = dict[UUID, RelationRow](), dict[UUID, int]()
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
            preferred_types=query.relation_type_names,
            max_rows=MAX_RELATIONS_PER_STEP,
        )
        neighbours = [RelationRow(*row) for row in rows]
        for relation in neighbours:
            if relation.type != MENTIONED_WITH and relation.memory_id not in distances:
                relations[relation.memory_id], distances[relation.memory_id] = relation, step
        front = {end for relation in neighbours for end in (relation.source_id, relation.target_id)} - visited
        visited |= front
    return relations, distances


def _select_relations(
    memories: Sequence[RetrievedMemory],
    relations: Mapping[UUID, RelationRow],
    distances: Mapping[UUID, int],
    *,
    preferred_types: Collection[str],
) -> list[RetrievedMemory]:
    """Return all entities and, for each distance, the relations that match the input best, up to a limit.

    Of relations that match equally well, those of `preferred_types` come first, then those with the largest weight.
    """

    def rank(one: RetrievedMemory) -> tuple[int, float, bool, float, UUID]:
        relation = relations[one.memory_id]
        is_other = relation.type not in preferred_types
        return distances[one.memory_id], -one.relevance, is_other, -relation.weight, one.memory_id

    selection = [one for one in memories if one.memory_id not in relations]
    ranked = sorted((one for one in memories if one.memory_id in relations), key=rank)
    for _, group in groupby(ranked, key=lambda one: distances[one.memory_id]):
        selection += islice(group, MAX_CANDIDATES_PER_STEP)
    return selection


async def resolve_subjects(tx: Tx, subjects: Iterable[str], *, agent_id: UUID) -> dict[str, str]:
    """Map each subject that is an alias of exactly one entity, and no entity's name, to the key of its name."""
    given = {subject: name_role(subject) for subject in sorted(set(subjects))}
    if not given:
        return {}
    rows = await _find_entities(tx, given.values(), agent_id=agent_id)
    names = {normalize_name(row["name"]) for row in rows}
    keys: dict[str, str] = {}
    for subject, called in given.items():
        name = normalize_name(called)
        owners = [row["name"] for row in rows if name in map(normalize_name, row["aliases"])]
        if name not in names and len(owners) == 1:
            keys[subject] = normalize_subject(owners[0])
    return keys


async def list_subject_keys(tx: Tx, subject: str, *, agent_id: UUID) -> list[str]:
    """Return the keys (normalized names) under which facts about a person or thing may be stored: of all its names."""
    name = normalize_name(called := name_role(subject))
    rows = await _find_entities(tx, [called], agent_id=agent_id)
    groups = [(row["name"], *row["aliases"]) for row in rows]
    groups = [names for names in groups if name == normalize_name(names[0])] or groups
    known = [one for names in groups if name in map(normalize_name, names) for one in names]
    return sorted({normalize_subject(one) for one in (subject, *known)})


async def _find_entities(tx: Tx, names: Iterable[str], *, agent_id: UUID) -> list[Record]:
    """Return the entities that one of the names may refer to."""
    spellings = sorted({spelling for name in names for spelling in list_spellings(name, ())})
    return await SQL["find_by_name"].fetch_all(tx, agent_id=agent_id, spellings=spellings)
