"""Explicit declarations of entities and relations, in addition to those that are recognized in texts."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError
from newton.heart.entities import entity_store
from newton.heart.entities.entity_store import EntityDeclaration, RelationTriple
from newton.heart.events.event_types import render_entity_line
from newton.heart.facts.attributes import normalize_attribute
from newton.memory import store
from newton.memory.memory import WriteContext
from newton.memory.representations import make_short_forms
from newton.memory.store import MemoryConfirmation, MemoryUpdate
from newton.text.names import NamedEntity, NameIndex, normalize_name

SQL = load("newton.heart.entities", "entity_declarations.sql")


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
