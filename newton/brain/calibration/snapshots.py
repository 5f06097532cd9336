"""Store of calibration snapshots, taken after reviews so that contexts need not compute them, and their notes."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton.brain import ledger, queries
from newton.brain.calibration.report import write_note
from newton.brain.calibration.scores import (
    compute_bias,
    to_series,
)
from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import TokenCounter

SQL = load("newton.brain.calibration", "snapshots.sql")


class CalibrationNote(NamedTuple):
    """A line of a context on how well stated confidence agrees with outcomes. `tokens` counts its newline too."""

    text: str
    tokens: int


async def take_snapshot(tx: Tx, *, agent_id: UUID, now: datetime, count_tokens: TokenCounter) -> None:
    """Compute the calibration of all reviewed decisions and store it, with a note for contexts, as a snapshot.

    Do nothing if no decision is reviewed.
    """
    # read the ledger head first, so that later reviews trigger another snapshot
    head = await ledger.get_head(tx, agent_id=agent_id)
    reviewed = await queries.list_reviewed_decisions(tx, agent_id=agent_id)
    pairs = to_series(reviewed)
    own = compute_bias(pairs)
    if own is None:
        return
    note = write_note(reviewed, count=count_tokens)
    await SQL["insert_snapshot"].execute(
        tx,
        agent_id=agent_id,
        seq=head.seq,
        created_at=now,
        reviewed_count=len(reviewed),
        brier=float(pairs.squared_errors.mean()),
        bias=own.size,
        note=note,
        note_tokens=note and count_tokens(f"{note}\n"),
    )


async def get_last_review_count(tx: Tx, *, agent_id: UUID) -> int:
    """Return the number of reviews in the last snapshot; 0 without a snapshot."""
    row = await SQL["get_last_reviewed_count"].fetch_one(tx, agent_id=agent_id)
    return row["judged"] if row else 0


async def read_note(tx: Tx, *, agent_id: UUID, moment: datetime | None = None) -> CalibrationNote | None:
    """Return the note (a line for contexts) of the latest snapshot, or of that at `moment`; None without a note."""
    row = await SQL["get_latest_note"].fetch_one(tx, agent_id=agent_id, moment=moment)
    return CalibrationNote(row["note"], row["note_tokens"]) if row and row["note"] else None
