"""Where the agent is when an input comes: the session's frame and last lines, and what is being decided."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from newton.brain.calibration import snapshots
from newton.brain.calibration.snapshots import CalibrationNote
from newton.cognition.request import ContextBuildRequest, ContextFilters
from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.recall import fetch_pending_decisions, fetch_pending_decisions_as_of, fetch_preceding
from newton.memory.search_types import RetrievedMemory

SQL = load("newton.cognition.sources", "session_state.sql")

MAX_FOCUS_LINES = 12
OPEN_DECISION_AGE = timedelta(days=3)  # so long a decision that is not carried out is taken to be in the making
MAX_OPEN_DECISIONS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """Where the agent is: the session's last frame, its lines just out of view (the nearest first), the decisions that
    are being made, and what the record of decisions advises."""

    frame: str | None = None
    focus: Sequence[RetrievedMemory] = ()
    open_decisions: Sequence[RetrievedMemory] = ()
    calibration_note: CalibrationNote | None = None

    def apply_filters(self, filters: ContextFilters) -> "SessionState":
        """Without what the caller does not want."""
        return replace(
            self,
            focus=[found for found in self.focus if filters.allows(found)],
            open_decisions=[found for found in self.open_decisions if filters.allows(found)],
        )


async def read_session_state(tx: Tx, request: ContextBuildRequest, *, now: datetime) -> SessionState:
    """`now` is the moment for which the context is made."""
    agent_id, session_id = request.agent_id, request.session_id
    return SessionState(
        frame=session_id
        and await find_session_frame(tx, agent_id=agent_id, session_id=session_id, moment=request.as_of),
        focus=await _read_focus(tx, request),
        open_decisions=await _read_open_decisions(tx, request, since=now - OPEN_DECISION_AGE),
        calibration_note=await snapshots.read_note(tx, agent_id=agent_id, moment=request.as_of),
    )


async def _read_open_decisions(tx: Tx, request: ContextBuildRequest, *, since: datetime) -> Sequence[RetrievedMemory]:
    if request.as_of is None:
        return await fetch_pending_decisions(tx, agent_id=request.agent_id, since=since, limit=MAX_OPEN_DECISIONS)
    return await fetch_pending_decisions_as_of(
        tx, agent_id=request.agent_id, since=since, moment=request.as_of, limit=MAX_OPEN_DECISIONS
    )


async def _read_focus(tx: Tx, request: ContextBuildRequest) -> Sequence[RetrievedMemory]:
    view = request.sent_messages
    if view is None:
        return ()
    return await fetch_preceding(
        tx, agent_id=request.agent_id, thread_id=view.session_id, position=view.first_position, limit=MAX_FOCUS_LINES
    )


async def find_session_frame(tx: Tx, *, agent_id: UUID, session_id: UUID, moment: datetime | None = None) -> str | None:
    """The frame the session was last looked at in, or last by a moment."""
    row = await SQL["get_session_frame"].fetch_one(tx, agent_id=agent_id, session_id=session_id, moment=moment)
    return row["frame"] if row else None
