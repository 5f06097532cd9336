"""Changes of entities: explicit declarations of entities and relations, and the merge of two that are the same."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field, JsonValue

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError
from newton.heart.entities import entity_lookup, entity_store
from newton.heart.entities.entity_store import EntityDeclaration, EntityRelation, RelationTriple
from newton.heart.events.event_types import render_entity_line, render_relation_line
from newton.heart.facts.attributes import normalize_attribute, normalize_subject
from newton.memory import store
from newton.memory.memory import WriteContext
from newton.memory.representations import make_short_forms
from newton.memory.store import MemoryConfirmation, MemoryUpdate
from newton.text.names import NamedEntity, NameIndex, normalize_name

SQL = load("newton.heart.entities", "entity_changes.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationDeclaration:
    """A declared relation between two entities, given by name. `ref` is the idempotency key."""

    ref: str
    source: str
    type: str
    target: str
    occurred_at: datetime | None = None


async def declare_entities(tx: Tx, declarations: Sequence[EntityDeclaration], *, ctx: WriteContext) -> int:
    """Insert or update entities; return how many were new or changed.

    Raises ConflictError if an alias is a name or alias of another entity.
    """
    await store.lock_entities(tx, agent_id=ctx.agent_id)
    index = await entity_store.load_index(tx, agent_id=ctx.agent_id)
    changes = 0
    for declaration in declarations:
        existing = index.find_exact(declaration.name)
        _ensure_unambiguous(declaration, existing, index)
        if existing is None:
            (entity_id,) = await entity_store.insert_entities(tx, [declaration], ctx=ctx)
            index.add(NamedEntity(entity_id, declaration.name, declaration.aliases))
        elif await _update_entity(tx, existing, declaration, ctx=ctx):
            index.add(existing._replace(aliases=declaration.aliases))
        else:
            continue
        changes += 1
    return changes


def _ensure_unambiguous(declaration: EntityDeclaration, existing: NamedEntity | None, index: NameIndex) -> None:
    for alias in declaration.aliases:
        other = index.find_exact(alias)
        if other and (existing is None or other.entity_id != existing.entity_id):
            hint = f"Remove the alias, or add it to {other.name!r} instead."
            raise ConflictError(f"{alias!r} is already a name of {other.name!r}.", hint=hint)


async def _update_entity(tx: Tx, existing: NamedEntity, declaration: EntityDeclaration, *, ctx: WriteContext) -> bool:
    """Add the type, aliases and properties of a declaration to an entity; return False if nothing changes."""
    entity_id, name, _ = existing
    row = await SQL["get_entity"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=entity_id)
    assert row is not None, "every entity of the index is stored"
    before = (row["type"], set(row["aliases"]), json.loads(row["properties"]))
    kind = row["type"] if declaration.type == "thing" else declaration.type
    aliases = before[1] | {alias for alias in declaration.aliases if normalize_name(alias) != normalize_name(name)}
    properties = {**before[2], **declaration.properties}
    if (kind, aliases, properties) == before:
        return False
    columns = {"type": kind, "aliases": sorted(aliases), "properties": json.dumps(properties)}
    await SQL["update_entity"].execute(tx, agent_id=ctx.agent_id, memory_id=entity_id, **columns)
    await entity_store.record_spellings(tx, [existing._replace(aliases=tuple(sorted(aliases)))], ctx=ctx)
    line = render_entity_line(name, kind, properties)
    forms = make_short_forms(line, count_tokens=ctx.count_tokens)
    await store.update_memories(tx, [MemoryUpdate(memory_id=entity_id, forms=forms, full_text=line)], ctx=ctx)
    return True


async def declare_relations(tx: Tx, declarations: Sequence[RelationDeclaration], *, ctx: WriteContext) -> int:
    """Store relations and the entities that they name; return the number of new declarations.

    Each new declaration adds to the weight of its relation. Raises ConflictError if a `ref` is stored with another
    relation, and InputError if both names mean one entity.
    """
    await store.lock_entities(tx, agent_id=ctx.agent_id)
    index = await entity_store.load_index(tx, agent_id=ctx.agent_id)
    names = {normalize_name(name): name for relation in declarations for name in (relation.source, relation.target)}
    unknown = [EntityDeclaration(name=name) for name in names.values() if index.resolve(name) is None]
    await entity_store.insert_into_index(tx, unknown, index, ctx=ctx)
    triples = [(relation.ref, _resolve_triple(relation, index)) for relation in declarations]
    refs = [(ref, entity_store.hash_relation(triple)) for ref, triple in triples]
    await store.find_by_ref(tx, refs, agent_id=ctx.agent_id, kind="relation")
    ids = await entity_store.ensure_relations(tx, {triple for _, triple in triples}, index, ctx=ctx)
    evidence = [MemoryConfirmation(memory_id=ids[t], ref=ref, source=ctx.origin) for ref, t in dict(triples).items()]
    counted = await store.confirm(tx, evidence, ctx=ctx)
    await entity_store.update_weights(tx, set(ids.values()), ctx=ctx)
    return len(counted)


def _resolve_triple(declaration: RelationDeclaration, index: NameIndex) -> RelationTriple:
    source, target = index.resolve(declaration.source), index.resolve(declaration.target)
    if source is None or target is None or source.entity_id == target.entity_id:
        message = f"{declaration.source!r} and {declaration.target!r} are not two distinct entities."
        raise InputError(message, hint="Name two entities by their full names.")
    return source.entity_id, normalize_attribute(declaration.type), target.entity_id


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMergePlan:
    """The effects of merging the entity `merged` into the entity `kept`.

    `aliases` and `properties` are those of the kept entity afterwards. `moved` are the relations, as they are now, that
    the kept entity takes over. `known` are those that it has already; they are deleted, and their evidence is added to
    its own. `between` are relations between both entities, which are deleted. `mentions` and `facts` count the memories
    that mention the merged entity, and the facts about it, which keep the name that they state. Giving back `token`
    confirms the merge.
    """

    kept: str
    kept_id: UUID
    merged: str
    merged_id: UUID
    type: str
    aliases: tuple[str, ...]
    properties: Mapping[str, JsonValue]
    moved: Sequence[EntityRelation]
    known: Sequence[EntityRelation]
    between: Sequence[EntityRelation]
    mentions: int
    facts: int
    subject_keys: Annotated[Sequence[str], Field(exclude=True)] = ()  # subjects of facts that name the merged entity
    token: str = ""

    @property
    def state_parts(self) -> tuple[str, ...]:
        """Return the texts of which the token is a hash; one of them changes whenever the effects of the merge do."""
        relations = [str(one.memory_id) for one in (*self.moved, *self.known, *self.between)]
        counts = (str(self.mentions), str(self.facts))
        return (str(self.kept_id), str(self.merged_id), *self.aliases, *counts, *relations)


async def plan_merge(tx: Tx, merged_id: UUID, kept_id: UUID, *, agent_id: UUID) -> EntityMergePlan:
    """Return what merging one entity into another would change. Both must exist.

    Raises InputError if they are one entity.
    """
    merged, merged_properties = await entity_lookup.read_entity(tx, merged_id, agent_id=agent_id)
    kept, kept_properties = await entity_lookup.read_entity(tx, kept_id, agent_id=agent_id)
    if merged_id == kept_id:
        raise InputError(f"Both names mean {kept.name!r} already.", hint="Name two different entities.")
    merged_relations = await SQL["list_all_relations"].fetch_all(tx, agent_id=agent_id, entity_id=merged_id)
    kept_relations = await SQL["list_all_relations"].fetch_all(tx, agent_id=agent_id, entity_id=kept_id)
    triples = {(row["source_id"], row["type"], row["target_id"]) for row in kept_relations}
    groups: dict[str, list[EntityRelation]] = {"moved": [], "known": [], "between": []}
    for relation in (EntityRelation(*row) for row in merged_relations):
        triple = _move_triple(relation, merged_id, kept_id)
        group = "between" if triple[0] == triple[2] else "known" if triple in triples else "moved"
        groups[group].append(relation)
    names = {normalize_name(name): name for name in (merged.name, *merged.aliases, *kept.aliases)}
    names.pop(normalize_name(kept.name), None)
    keys = sorted({normalize_subject(name) for name in (merged.name, *merged.aliases)})
    counts = await SQL["count_records"].fetch_one(tx, agent_id=agent_id, entity_id=merged_id, subject_keys=keys)
    assert counts is not None, "a query without a table returns one row"
    return EntityMergePlan(
        kept=kept.name,
        kept_id=kept_id,
        merged=merged.name,
        merged_id=merged_id,
        type=merged.type if kept.type == "thing" else kept.type,
        aliases=tuple(sorted(names.values())),
        properties={**merged_properties, **kept_properties},
        mentions=counts["mentions"],
        facts=counts["facts"],
        subject_keys=keys,
        moved=groups["moved"],
        known=groups["known"],
        between=groups["between"],
    )


async def merge_entities(tx: Tx, plan: EntityMergePlan, *, ctx: WriteContext) -> None:
    """Merge two entities by a plan made in this transaction, but not the facts about them: see `move_subjects`."""
    merged_id, kept_id = plan.merged_id, plan.kept_id
    moved = [(one.memory_id, _move_triple(one, merged_id, kept_id)) for one in plan.moved]
    await SQL["merge_entities"].execute(
        tx,
        agent_id=ctx.agent_id,
        kept_id=kept_id,
        merged_id=merged_id,
        relation_ids=[memory_id for memory_id, _ in moved],
        hashes=[entity_store.hash_relation(triple) for _, triple in moved],
        now=ctx.now,
        origin=ctx.origin,
    )
    columns = {"type": plan.type, "aliases": list(plan.aliases), "properties": json.dumps(plan.properties)}
    query = SQL["update_entity"]
    await query.execute(tx, agent_id=ctx.agent_id, memory_id=kept_id, **columns)
    await entity_store.record_spellings(tx, [NamedEntity(kept_id, plan.kept, plan.aliases)], ctx=ctx)
    await _render_again(tx, plan, ctx=ctx)
    relations = await SQL["list_all_relations"].fetch_all(tx, agent_id=ctx.agent_id, entity_id=kept_id)
    await entity_store.update_weights(tx, [row["memory_id"] for row in relations], ctx=ctx)


async def _render_again(tx: Tx, plan: EntityMergePlan, *, ctx: WriteContext) -> None:
    """Update the texts of the kept entity and of the moved relations, which contain its name."""
    lines = {plan.kept_id: render_entity_line(plan.kept, plan.type, plan.properties)}
    for one in plan.moved:
        source, target = (
            plan.kept if end == plan.merged_id else name
            for end, name in ((one.source_id, one.source), (one.target_id, one.target))
        )
        lines[one.memory_id] = render_relation_line(source, one.type, target)
    updates = [
        MemoryUpdate(memory_id=i, forms=make_short_forms(line, count_tokens=ctx.count_tokens), full_text=line)
        for i, line in lines.items()
    ]
    await store.update_memories(tx, updates, ctx=ctx)


def _move_triple(relation: EntityRelation, merged_id: UUID, kept_id: UUID) -> RelationTriple:
    source, target = (kept_id if end == merged_id else end for end in (relation.source_id, relation.target_id))
    return source, relation.type, target
