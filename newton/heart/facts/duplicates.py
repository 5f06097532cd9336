"""Merging of facts that say the same: the newer one becomes a duplicate that confirms the original."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.lifecycle.engine import LifecycleContext, review
from newton.memory import store
from newton.memory.store import MemoryConfirmation

SQL = load("newton.heart.facts", "duplicates.sql")


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
