"""What the record of decisions says, worked out when an outcome comes in: a context only reads it."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.brain import ledger, queries
from newton.brain.calibration.bias import compute_bias
from newton.brain.calibration.report import write_note
from newton.brain.calibration.series import to_series
from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import TokenCounter

SQL = load("newton.brain.calibration", "snapshots.sql")


class CalibrationNote(NamedTuple):
    """The calibration note, one line, and the tokens of that line with its end."""

    text: str
    tokens: int


async def take_snapshot(tx: Tx, *, agent_id: UUID, now: datetime, count_tokens: TokenCounter) -> None:
    """Writes down what the record says now. Nothing, while no outcome is known."""
    # the end of the ledger first: what comes in meanwhile is then known too, and gets a snapshot of its own
    head = await ledger.get_head(tx, agent_id=agent_id)
    judged = await queries.list_reviewed_decisions(tx, agent_id=agent_id)
    pairs = to_series(judged)
    own = compute_bias(pairs)
    if own is None:
        return
    said = write_note(judged, count=count_tokens)
    await SQL["insert_snapshot"].execute(
        tx,
        agent_id=agent_id,
        seq=head.seq,
        created_at=now,
        reviewed_count=len(judged),
        brier=float(pairs.squared_errors.mean()),
        bias=own.size,
        note=said,
        note_tokens=said and count_tokens(f"{said}\n"),
    )


async def get_last_review_count(tx: Tx, *, agent_id: UUID) -> int:
    """How many decisions had an outcome when the last snapshot was taken."""
    row = await SQL["get_last_reviewed_count"].fetch_one(tx, agent_id=agent_id)
    return row["judged"] if row else 0


async def read_note(tx: Tx, *, agent_id: UUID, moment: datetime | None = None) -> CalibrationNote | None:
    """What the latest snapshot, or the latest by a moment, advises; None when it advises nothing."""
    row = await SQL["get_latest_note"].fetch_one(tx, agent_id=agent_id, moment=moment)
    return CalibrationNote(row["note"], row["note_tokens"]) if row and row["note"] else None
