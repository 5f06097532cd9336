"""Who and what there is and how it belongs together, as people declare it, beside what is found in their words."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, InputError
from newton.heart import entities
from newton.heart.attributes import normal
from newton.heart.entities import Introduction, Triple
from newton.heart.happenings import entity_line
from newton.heart.naming import Index, Known, key
from newton.memory import store
from newton.memory.memory import Teller
from newton.memory.representations import forms
from newton.memory.store import Retold, Telling

SQL = load("newton.heart", "introducing.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bond:
    """Somebody says how two belong together. `ref` names this telling of it."""

    ref: str
    source: str
    type: str
    target: str
    at: datetime | None = None


async def introduce(tx: Tx, introductions: Sequence[Introduction], *, ctx: Teller) -> int:
    """Keeps who and what there is, and what is new of those that are known; returns how many that changed.

    Raises ConflictError when a name or an alias is that of another.
    """
    await entities.lock(tx, ctx=ctx)
    known = await entities.index(tx, agent_id=ctx.agent_id)
    changed = 0
    for introduction in introductions:
        met = known.called(introduction.name)
        _all_of_one(introduction, met, known)
        if met is None:
            (entity,) = await entities.insert(tx, [introduction], ctx=ctx)
            known.add(Known(entity, introduction.name, introduction.aliases))
            changed += 1
        elif await _enrich(tx, met, introduction, ctx=ctx):
            known.add(Known(met.entity_id, met.name, introduction.aliases))
            changed += 1
    return changed


def _all_of_one(introduction: Introduction, met: Known | None, known: Index) -> None:
    for alias in introduction.aliases:
        other = known.called(alias)
        if other and (met is None or other.entity_id != met.entity_id):
            raise ConflictError(
                f"{alias!r} is another name of {other.name!r} already.", hint="Leave it out, or name that one."
            )


async def _enrich(tx: Tx, met: Known, introduction: Introduction, *, ctx: Teller) -> bool:
    """Adds what is new to one that is known. False when nothing is."""
    row = await SQL["get_entity"].one(tx, agent_id=ctx.agent_id, memory_id=met.entity_id)
    assert row is not None, "the index holds only what is there"
    was = (row["type"], set(row["aliases"]), json.loads(row["properties"]))
    kind = row["type"] if introduction.type == "thing" else introduction.type
    aliases = {*was[1], *(alias for alias in introduction.aliases if key(alias) != key(met.name))}
    properties = {**was[2], **introduction.properties}
    if (kind, aliases, properties) == was:
        return False
    await SQL["update_entity"].run(
        tx,
        agent_id=ctx.agent_id,
        memory_id=met.entity_id,
        type=kind,
        aliases=sorted(aliases),
        properties=json.dumps(properties),
    )
    await entities.spell(tx, [Known(met.entity_id, met.name, tuple(sorted(aliases)))], ctx=ctx)
    line = entity_line(met.name, kind, properties)
    retold = Retold(memory_id=met.entity_id, forms=forms(line, count=ctx.count_tokens), full_text=line)
    await store.retell(tx, [retold], ctx=ctx)
    return True


async def bind(tx: Tx, bonds: Sequence[Bond], *, ctx: Teller) -> int:
    """Keeps how entities belong together, whom nobody knows yet included; returns how many tellings were new.

    Each telling of a bond is a piece of evidence for it. Raises ConflictError when a known ref comes with another bond.
    """
    await entities.lock(tx, ctx=ctx)
    known = await entities.index(tx, agent_id=ctx.agent_id)
    names = {key(name): name for bond in bonds for name in (bond.source, bond.target)}
    strangers = [Introduction(name=name) for name in names.values() if known.resolve(name) is None]
    for stranger, entity in zip(strangers, await entities.insert(tx, strangers, ctx=ctx), strict=True):
        known.add(Known(entity, stranger.name, ()))
    refs = [(bond.ref, entities.relation_hash(_triple(bond, known))) for bond in bonds]
    await store.told_before(tx, refs, agent_id=ctx.agent_id, kind="relation")
    triples = {bond.ref: _triple(bond, known) for bond in bonds}
    ids = await entities.relations(tx, set(triples.values()), known, ctx=ctx)
    tellings = [Telling(memory_id=ids[triple], ref=ref, source=ctx.origin) for ref, triple in triples.items()]
    counted = await store.confirm(tx, tellings, ctx=ctx)
    await entities.weigh(tx, set(ids.values()), ctx=ctx)
    return len(counted)


def _triple(bond: Bond, known: Index) -> Triple:
    source, target = known.resolve(bond.source), known.resolve(bond.target)
    if source is None or target is None or source.entity_id == target.entity_id:
        raise InputError(
            f"{bond.source!r} and {bond.target!r} are not two that can be told apart.", hint="Give their full names."
        )
    return source.entity_id, normal(bond.type), target.entity_id
