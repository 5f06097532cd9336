"""What the record of decisions says, worked out when an outcome comes in: a context only reads it."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.brain import ledger, reading
from newton.brain.calibration.bias import bias
from newton.brain.calibration.report import note
from newton.brain.calibration.series import series
from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import Count

SQL = load("newton.brain", "snapshots.sql")


class Advice(NamedTuple):
    """The calibration note, one line, and the tokens of that line with its end."""

    text: str
    tokens: int


async def take(tx: Tx, *, agent_id: UUID, now: datetime, count: Count) -> None:
    """Writes down what the record says now. Nothing, while no outcome is known."""
    # the end of the ledger first: what comes in meanwhile is then known too, and gets a snapshot of its own
    head = await ledger.head(tx, agent_id=agent_id)
    judged = await reading.judged(tx, agent_id=agent_id)
    pairs = series(judged)
    own = bias(pairs)
    if own is None:
        return
    said = note(judged, count=count)
    await SQL["insert_snapshot"].run(
        tx,
        agent_id=agent_id,
        seq=head.seq,
        created_at=now,
        reviewed_count=len(judged),
        brier=float(pairs.squared.mean()),
        bias=own.size,
        note=said,
        note_tokens=said and count(f"{said}\n"),
    )


async def last_judged(tx: Tx, *, agent_id: UUID) -> int:
    """How many decisions had an outcome when the last snapshot was taken."""
    row = await SQL["get_last_reviewed_count"].one(tx, agent_id=agent_id)
    return row["judged"] if row else 0


async def advice(tx: Tx, *, agent_id: UUID, moment: datetime | None = None) -> Advice | None:
    """What the latest snapshot, or the latest by a moment, advises; None when it advises nothing."""
    row = await SQL["get_latest_note"].one(tx, agent_id=agent_id, moment=moment)
    return Advice(row["note"], row["note_tokens"]) if row and row["note"] else None
