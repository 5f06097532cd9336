"""Activations: one record for each use of a procedure and each match of a censor, with its result."""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import NotFoundError
from newton.heart.lifecycle.engine import LifecycleContext, review
from newton.ids import new_id

SQL = load("newton.heart", "activations.sql")

TrackedKind = Literal["procedure", "censor"]
ActivationResult = Literal["success", "failure", "neutral", "false_positive"]


async def record_activations(
    tx: Tx, kind: TrackedKind, memory_ids: Sequence[UUID], *, stage: str, ctx: LifecycleContext
) -> list[UUID]:
    """Record one use of each procedure, or one match of each censor; return the activation ids in the same order.

    The transitions that become due, such as the escalation of a censor, are applied at once.
    """
    if not memory_ids:
        return []
    activation_ids = [new_id() for _ in memory_ids]
    await SQL["insert_activations"].execute(
        tx, agent_id=ctx.agent_id, memory_ids=memory_ids, activation_ids=activation_ids, stage=stage, now=ctx.now
    )
    await SQL["count_use"].execute(tx, agent_id=ctx.agent_id, memory_ids=memory_ids, now=ctx.now)
    await review(tx, ctx, kind, memory_ids)
    return activation_ids


async def record_result(
    tx: Tx,
    kind: TrackedKind,
    memory_id: UUID,
    result: ActivationResult,
    *,
    activation: UUID | None = None,
    ctx: LifecycleContext,
) -> None:
    """Store the result of one activation of a memory.

    Without `activation`, it is the latest one that has no result yet. Raises NotFoundError if there is none.
    """
    rows = await SQL["set_result"].fetch_all(
        tx, agent_id=ctx.agent_id, memory_id=memory_id, activation_id=activation, result=result, now=ctx.now
    )
    if not rows:
        raise NotFoundError(
            f"The {kind} has no recorded use that still lacks a result.", hint=f"Record a use of the {kind} first."
        )
    await review(tx, ctx, kind, [memory_id])
