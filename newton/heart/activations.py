"""Activations: records of procedure uses and censor matches, with their results."""

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
    """Record an activation of each memory, update the memories' states and return the activation ids."""
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
    """Store the result of an activation. Default: the latest activation without a result. Raises NotFoundError."""
    rows = await SQL["set_result"].fetch_all(
        tx, agent_id=ctx.agent_id, memory_id=memory_id, activation_id=activation, result=result, now=ctx.now
    )
    if not rows:
        raise NotFoundError(f"The {kind} has no activation without a result.", hint="Record a use before its result.")
    await review(tx, ctx, kind, [memory_id])
