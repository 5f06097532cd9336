"""Store of the corrections of the probability of an answer. An agent has its own; the latest one is in use."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.cognition.corrections.answer_correction import NO_CORRECTION, AnswerCorrection, CorrectionFit
from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id

SQL = load("newton.cognition.corrections", "correction_store.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCorrection(AnswerCorrection):
    """A correction in use, when it was fitted, to how many items, and the log losses of its validation."""

    fitted_at: datetime
    items: int
    loss_before: float
    loss_after: float


async def find_stored_correction(
    tx: Tx, *, agent_id: UUID, model: str, moment: datetime | None = None
) -> StoredCorrection | None:
    """Return the correction that is in use, or was at `moment`; None without one.

    A correction of another version of the shipped model is not used: `model` is its fingerprint.
    """
    row = await SQL["find_correction"].fetch_one(tx, agent_id=agent_id, model=model, moment=moment)
    return StoredCorrection(**row) if row else None


async def find_correction(tx: Tx, *, agent_id: UUID, model: str, moment: datetime | None = None) -> AnswerCorrection:
    """Return the correction that is in use, or was at `moment`; one that changes nothing if there is none."""
    stored = await find_stored_correction(tx, agent_id=agent_id, model=model, moment=moment)
    return AnswerCorrection(stored.slope, stored.intercept) if stored else NO_CORRECTION


async def add_correction(tx: Tx, fit: CorrectionFit, *, agent_id: UUID, model: str, now: datetime) -> None:
    """Store a fitted correction, which is in use from now on."""
    await SQL["insert_correction"].execute(
        tx,
        agent_id=agent_id,
        correction_id=new_id(),
        created_at=now,
        model=model,
        slope=fit.correction.slope,
        intercept=fit.correction.intercept,
        contexts=fit.contexts,
        items=fit.items,
        used=fit.used,
        loss_before=fit.loss_before,
        loss_after=fit.loss_after,
    )


async def remove_corrections(tx: Tx, *, agent_id: UUID, now: datetime) -> bool:
    """End the use of all corrections of the agent; return True if one was in use."""
    return bool(await SQL["remove_corrections"].fetch_all(tx, agent_id=agent_id, removed_at=now))
