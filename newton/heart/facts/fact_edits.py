"""Changes of stored facts: core marks, subjects, times, ends of validity, retractions and merged duplicates."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import InputError, NotFoundError
from newton.heart.entities import entity_store
from newton.heart.entities.entity_lookup import resolve_subjects
from newton.heart.facts.attributes import normalize_subject
from newton.heart.lifecycle.engine import LifecycleContext, lock_attributes, review
from newton.memory import store
from newton.memory.memory import PERSON_TIERS, UNTRUSTED_TIERS, WriteContext
from newton.memory.store import MemoryConfirmation, PlannedTransition, apply_transitions

SQL = load("newton.heart.facts", "fact_edits.sql")


async def set_core(tx: Tx, memory_ids: Sequence[UUID], *, is_core: bool, ctx: LifecycleContext) -> None:
    """Mark facts as core, the state of the most important facts, or remove the mark.

    A fact that enough independent sources confirm stays core without the mark.
    """
    await SQL["set_core"].execute(tx, agent_id=ctx.agent_id, memory_ids=memory_ids, is_core=is_core)
    if not is_core:
        rows = await SQL["list_core"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
        reason = "a person removed the core mark"
        steps = [
            PlannedTransition(
                row["memory_id"], "unmarked", "CORE", "CONFIRMED" if row["confirmations"] else "NEW", reason
            )
            for row in rows
        ]
        await apply_transitions(tx, steps, ctx=ctx)
    await review(tx, ctx, "fact", memory_ids)


async def retract_facts(tx: Tx, memory_ids: Sequence[UUID], *, ctx: LifecycleContext) -> None:
    """Mark facts as wrong. Facts that they superseded become current again."""
    rows = await SQL["set_retracted"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids, is_retracted=True)
    reason = "no person stated or retracted it"
    steps = [
        PlannedTransition(row["memory_id"], "withdrawn", row["state"], "INACTIVE", reason)
        for row in rows
        if row["state"] != "INACTIVE" and not {ctx.trust, row["trust"]} & PERSON_TIERS
    ]
    await apply_transitions(tx, steps, ctx=ctx)
    await review(tx, ctx, "fact", memory_ids)


async def undo_retractions(tx: Tx, memory_ids: Sequence[UUID], *, ctx: LifecycleContext) -> None:
    """Undo the retraction of facts: their states follow from their evidence again."""
    await SQL["set_retracted"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids, is_retracted=False)
    reason = "its retraction was undone"
    steps = [PlannedTransition(one, "restored", "INACTIVE", "NEW", reason) for one in memory_ids]
    await apply_transitions(tx, steps, ctx=ctx)
    await review(tx, ctx, "fact", memory_ids)


async def restore_withdrawn(tx: Tx, memory_ids: Sequence[UUID], *, ctx: LifecycleContext) -> None:
    """Undo the retraction of facts that no person stated or retracted, if it is a person who states them now."""
    if ctx.trust in PERSON_TIERS:
        rows = await SQL["list_withdrawn"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
        await undo_retractions(tx, [row["memory_id"] for row in rows], ctx=ctx)


async def renew_validity(tx: Tx, confirmations: Sequence[tuple[UUID, datetime]], *, ctx: WriteContext) -> None:
    """Set the time of the last statement of facts, unless the trust of the writer is `tool` or `web`.

    What no person states counts from now at the latest, so that no date makes it newer than what a person says next.
    """
    if ctx.trust not in UNTRUSTED_TIERS:
        memory_ids, times = zip(*confirmations, strict=True)
        times = times if ctx.trust in PERSON_TIERS else [min(one, ctx.now) for one in times]
        fields = {"memory_ids": memory_ids, "asserted_at": times, "trust": ctx.trust}
        await SQL["reconfirm"].execute(tx, agent_id=ctx.agent_id, **fields)


async def list_misdated(
    tx: Tx, stated: Sequence[tuple[UUID, datetime, datetime | None]], *, ctx: WriteContext
) -> set[UUID]:
    """Return the facts in the words of others that hold at another time than a person now says (start, end)."""
    if not stated or ctx.trust not in PERSON_TIERS:
        return set()
    memory_ids, starts, ends = zip(*stated, strict=True)
    fields = {"memory_ids": memory_ids, "starts": starts, "ends": ends}
    return {row["memory_id"] for row in await SQL["list_misdated"].fetch_all(tx, agent_id=ctx.agent_id, **fields)}


async def merge_duplicates(tx: Tx, pairs: Sequence[tuple[UUID, UUID]], *, ctx: LifecycleContext) -> None:
    """Merge the first fact of each pair into the second, which also receives the confirmations of the first."""
    if not pairs:
        return
    duplicates, originals = zip(*pairs, strict=True)
    rows = await SQL["set_duplicates"].fetch_all(
        tx, agent_id=ctx.agent_id, duplicate_ids=duplicates, original_ids=originals
    )
    await SQL["flatten_duplicates"].execute(tx, agent_id=ctx.agent_id)
    merged = [(row["memory_id"], row["original_id"]) for row in rows]
    await store.add_links(tx, "corroborates", merged, ctx=ctx)
    for row in rows:
        confirmation = MemoryConfirmation(
            memory_id=row["original_id"], ref=f"memory:{row['memory_id']}", source=row["source"]
        )
        await store.confirm(tx, [confirmation], ctx=replace(ctx, origin=row["origin"], trust=row["trust"]))
    await SQL["copy_confirmations"].execute(
        tx,
        agent_id=ctx.agent_id,
        memory_ids=[duplicate for duplicate, _ in merged],
        duplicate_ids=[original for _, original in merged],
    )
    await review(tx, ctx, "fact", [memory_id for pair in merged for memory_id in pair])


async def set_subject(tx: Tx, memory_id: UUID, subject: str | None, *, ctx: LifecycleContext) -> str | None:
    """Set the subject of a fact, or remove it with None; return the former subject.

    With a single-valued attribute, the fact may then supersede a fact on the new subject or be superseded by it, and a
    fact on the former subject that it superseded becomes current again. Raises NotFoundError if the memory is no fact,
    and InputError if the subject of such an attribute is removed.
    """
    row = await SQL["get_subject"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=memory_id)
    if row is None:
        raise NotFoundError(f"There is no fact {memory_id}.", hint="Find ids with `newton list --kind fact`.")
    if subject is None and row["single_valued"]:
        what = f"The fact states the single-valued attribute {row['attribute']!r}, which needs a subject."
        raise InputError(what, hint="Give another subject instead of removing it.", param="subject")
    old_key, new_key = row["subject_key"], normalize_subject(subject) if subject else None
    if subject:
        new_key = (await resolve_subjects(tx, [subject], agent_id=ctx.agent_id)).get(subject, new_key)
    if row["single_valued"] and new_key:
        await lock_attributes(tx, sorted({(old_key, row["attribute"]), (new_key, row["attribute"])}), ctx=ctx)
    former = {"subject_key": old_key, "attribute": row["attribute"]}
    others = await SQL["list_values"].fetch_all(tx, agent_id=ctx.agent_id, **former)
    await SQL["set_subject"].execute(
        tx, agent_id=ctx.agent_id, memory_id=memory_id, subject=subject, subject_key=new_key
    )
    await review(tx, ctx, "fact", sorted({memory_id, *(one["memory_id"] for one in others)}))
    await entity_store.index_mentions(tx, ctx=ctx, after=UUID(int=memory_id.int - 1))
    return row["subject"]


async def move_subjects(tx: Tx, former_keys: Sequence[str], subject: str, *, ctx: LifecycleContext) -> int:
    """Make facts stored under other names (`former_keys`) of a person or thing facts about `subject`; return the count.

    The facts keep the name as they state it. Of a single-valued attribute, the newest value of all names is current
    afterwards.
    """
    key = normalize_subject(subject)
    keys = [one for one in former_keys if one != key]
    rows = await SQL["list_of_subjects"].fetch_all(tx, agent_id=ctx.agent_id, subject_keys=keys)
    if not rows:
        return 0
    single = {row["attribute"] for row in rows if row["single_valued"]}
    locked = {(name, attribute) for attribute in single for name in (key, *keys)}
    await lock_attributes(tx, sorted(locked), ctx=ctx)
    moved = [row["memory_id"] for row in rows]
    await SQL["move_subjects"].execute(tx, agent_id=ctx.agent_id, memory_ids=moved, subject_key=key)
    of_subject = await SQL["list_of_subjects"].fetch_all(tx, agent_id=ctx.agent_id, subject_keys=[key])
    await review(tx, ctx, "fact", [row["memory_id"] for row in of_subject])
    return len(moved)


async def set_end(tx: Tx, memory_id: UUID, valid_to: datetime | None, *, ctx: LifecycleContext) -> None:
    """Set the end of validity of a fact, or remove it with None. A later repetition makes it valid again."""
    await SQL["set_end"].execute(tx, agent_id=ctx.agent_id, memory_id=memory_id, valid_to=valid_to)
    await review(tx, ctx, "fact", [memory_id])
