"""Deletion of memories: recorded first, and together with everything derived from them."""

from collections.abc import Sequence
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, NotFoundError
from newton.memory.memory import WriteContext

SQL = load("newton.memory", "forgetting.sql")

MAX_NAMED_DERIVED = 3  # derived memories that a refusal names


async def forget(tx: Tx, memory_ids: Sequence[UUID], *, derived: bool, reason: str, ctx: WriteContext) -> list[UUID]:
    """Delete memories and return the ids of all that were deleted.

    With `derived`, also delete what was derived from them. Artifacts derived from them, and entities and relations
    without other evidence, are always deleted.

    Raises NotFoundError for an unknown id. Raises ConflictError for a decision, or if something derived remains."""
    rows = await SQL["find_existing"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    if missing := set(memory_ids) - {row["memory_id"] for row in rows}:
        raise NotFoundError(f"There is no memory {missing.pop()}.", hint="`newton recall … --json` shows ids.")
    derivatives = await SQL["find_derived"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    # artifacts are computed automatically and contain nothing of their own
    if (remaining := [row for row in derivatives if row["kind"] != "artifact"]) and not derived:
        named = "; ".join(f"{row['kind']} {row['memory_id']}: {row['micro']}" for row in remaining[:MAX_NAMED_DERIVED])
        raise ConflictError(
            f"{len(remaining)} memories are derived from it ({named}).", hint="Add --derived to forget them too."
        )
    if any(row["kind"] == "decision" for row in [*rows, *derivatives]):
        raise ConflictError(
            "A decision is never deleted.", hint="`newton decisions erase ID` deletes its text and keeps the record."
        )
    deleted = [*memory_ids, *(row["memory_id"] for row in derivatives)]
    orphans = await SQL["find_orphaned"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=deleted)
    deleted = list(dict.fromkeys([*deleted, *(row["memory_id"] for row in orphans)]))
    await SQL["record_forgotten"].execute(
        tx, agent_id=ctx.agent_id, memory_ids=deleted, now=ctx.now, reason=reason, origin=ctx.origin
    )
    await SQL["forget_recorded"].execute(tx, agent_id=ctx.agent_id)
    return deleted
