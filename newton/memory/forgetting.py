"""Forgetting: explicit, written down first, and with everything that was made from what is forgotten, or not at all."""

from collections.abc import Sequence
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ConflictError, NotFoundError
from newton.memory.memory import WriteContext

SQL = load("newton.memory", "forgetting.sql")

MAX_NAMED_DERIVED = 3  # derived memories that a refusal names


async def forget(tx: Tx, memory_ids: Sequence[UUID], *, derived: bool, reason: str, ctx: WriteContext) -> list[UUID]:
    """Takes the memories away for good, with `derived` also what was made from them; returns the ids of all that went.

    Artifacts go in any case with a line they were made of.

    Names and relations that were found in nothing else go along.

    Raises NotFoundError for an unknown one, and ConflictError for a decision, or when something was made from them and
    is to stay.
    """
    rows = await SQL["find_existing"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    if missing := set(memory_ids) - {row["memory_id"] for row in rows}:
        raise NotFoundError(f"There is no memory {missing.pop()}.", hint="`newton recall … --json` shows ids.")
    made = await SQL["find_derived"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=memory_ids)
    # nobody asked for an artifact, and it says nothing of its own
    if (staying := [row for row in made if row["kind"] != "artifact"]) and not derived:
        named = "; ".join(f"{row['kind']} {row['memory_id']}: {row['micro']}" for row in staying[:MAX_NAMED_DERIVED])
        raise ConflictError(
            f"{len(staying)} memories were made from it ({named}).",
            hint="Forget them too with --derived, or forget nothing.",
        )
    if any(row["kind"] == "decision" for row in [*rows, *made]):
        raise ConflictError(
            "A decision is never deleted.",
            hint="`newton decisions erase ID` takes its words away and keeps the record.",
        )
    gone = [*memory_ids, *(row["memory_id"] for row in made)]
    bare = await SQL["find_orphaned"].fetch_all(tx, agent_id=ctx.agent_id, memory_ids=gone)
    gone = list(dict.fromkeys([*gone, *(row["memory_id"] for row in bare)]))
    await SQL["record_forgotten"].execute(
        tx, agent_id=ctx.agent_id, memory_ids=gone, now=ctx.now, reason=reason, origin=ctx.origin
    )
    await SQL["forget_recorded"].execute(tx, agent_id=ctx.agent_id)
    return gone
