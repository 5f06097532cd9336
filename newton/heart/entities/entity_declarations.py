"""Entities and relations declared by callers, in addition to those recognized in text."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError
from newton.heart.entities import entity_store
from newton.heart.entities.entity_store import EntityDeclaration, RelationTriple
from newton.heart.entities.name_recognition import NamedEntity, NameIndex, normalize_name
from newton.heart.events.event_types import render_entity_line
from newton.heart.facts.attributes import normalize_attribute
from newton.memory import store
from newton.memory.memory import WriteContext
from newton.memory.representations import make_short_forms
from newton.memory.store import Confirmation, MemoryUpdate

SQL = load("newton.heart.entities", "entity_declarations.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationDeclaration:
    """A declared relation between two entities. `ref` is its idempotency key."""

    ref: str
    source: str
    type: str
    target: str
    occurred_at: datetime | None = None


async def declare_entities(tx: Tx, declarations: Sequence[EntityDeclaration], *, ctx: WriteContext) -> int:
    """Store new entities and add what is new to known ones; return the number of changes.

    Raises ConflictError when a name or alias belongs to another entity.
    """
    await entity_store.lock(tx, ctx=ctx)
    known = await entity_store.load_index(tx, agent_id=ctx.agent_id)
    changed = 0
    for introduction in declarations:
        met = known.find_exact(introduction.name)
        _ensure_unambiguous(introduction, met, known)
        if met is None:
            (entity,) = await entity_store.insert_entities(tx, [introduction], ctx=ctx)
            known.add(NamedEntity(entity, introduction.name, introduction.aliases))
            changed += 1
        elif await _update_entity(tx, met, introduction, ctx=ctx):
            known.add(NamedEntity(met.entity_id, met.name, introduction.aliases))
            changed += 1
    return changed


def _ensure_unambiguous(declaration: EntityDeclaration, existing: NamedEntity | None, index: NameIndex) -> None:
    for alias in declaration.aliases:
        other = index.find_exact(alias)
        if other and (existing is None or other.entity_id != existing.entity_id):
            raise ConflictError(
                f"{alias!r} is already an alias of {other.name!r}.", hint="Remove the alias, or use that entity."
            )


async def _update_entity(tx: Tx, existing: NamedEntity, declaration: EntityDeclaration, *, ctx: WriteContext) -> bool:
    """Add what is new to a known entity. Return False when nothing is new."""
    row = await SQL["get_entity"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=existing.entity_id)
    assert row is not None, "the index holds only what is there"
    was = (row["type"], set(row["aliases"]), json.loads(row["properties"]))
    kind = row["type"] if declaration.type == "thing" else declaration.type
    aliases = {
        *was[1],
        *(alias for alias in declaration.aliases if normalize_name(alias) != normalize_name(existing.name)),
    }
    properties = {**was[2], **declaration.properties}
    if (kind, aliases, properties) == was:
        return False
    await SQL["update_entity"].execute(
        tx,
        agent_id=ctx.agent_id,
        memory_id=existing.entity_id,
        type=kind,
        aliases=sorted(aliases),
        properties=json.dumps(properties),
    )
    await entity_store.record_spellings(
        tx, [NamedEntity(existing.entity_id, existing.name, tuple(sorted(aliases)))], ctx=ctx
    )
    line = render_entity_line(existing.name, kind, properties)
    retold = MemoryUpdate(
        memory_id=existing.entity_id, forms=make_short_forms(line, count_tokens=ctx.count_tokens), full_text=line
    )
    await store.update_memories(tx, [retold], ctx=ctx)
    return True


async def declare_relations(tx: Tx, declarations: Sequence[RelationDeclaration], *, ctx: WriteContext) -> int:
    """Store relations, creating unknown entities, and return the number of new declarations.

    Each declaration counts as one piece of evidence. Raises ConflictError when a known ref has another relation.
    """
    await entity_store.lock(tx, ctx=ctx)
    known = await entity_store.load_index(tx, agent_id=ctx.agent_id)
    names = {normalize_name(name): name for bond in declarations for name in (bond.source, bond.target)}
    strangers = [EntityDeclaration(name=name) for name in names.values() if known.resolve(name) is None]
    for stranger, entity in zip(strangers, await entity_store.insert_entities(tx, strangers, ctx=ctx), strict=True):
        known.add(NamedEntity(entity, stranger.name, ()))
    refs = [(bond.ref, entity_store.hash_relation(_resolve_triple(bond, known))) for bond in declarations]
    await store.find_by_ref(tx, refs, agent_id=ctx.agent_id, kind="relation")
    triples = {bond.ref: _resolve_triple(bond, known) for bond in declarations}
    ids = await entity_store.ensure_relations(tx, set(triples.values()), known, ctx=ctx)
    tellings = [Confirmation(memory_id=ids[triple], ref=ref, source=ctx.origin) for ref, triple in triples.items()]
    counted = await store.confirm(tx, tellings, ctx=ctx)
    await entity_store.update_weights(tx, set(ids.values()), ctx=ctx)
    return len(counted)


def _resolve_triple(declaration: RelationDeclaration, index: NameIndex) -> RelationTriple:
    source, target = index.resolve(declaration.source), index.resolve(declaration.target)
    if source is None or target is None or source.entity_id == target.entity_id:
        raise InputError(
            f"{declaration.source!r} and {declaration.target!r} are not two distinct entities.",
            hint="Use their full names.",
        )
    return source.entity_id, normalize_attribute(declaration.type), target.entity_id
