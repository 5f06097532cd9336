"""Reading of the session's state: its last frame, messages that are not sent to the model, and pending decisions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from newton.brain.calibration import snapshots
from newton.brain.calibration.snapshots import CalibrationNote
from newton.cognition.pending_approvals import PendingApproval
from newton.cognition.relevance_model import NO_CORRECTION, AnswerCorrection, find_correction, load_relevance_model
from newton.cognition.request import ContextBuildRequest, ContextFilters
from newton.db.pool import Tx
from newton.db.queries import load
from newton.dialogue import context_injections
from newton.dialogue.brief import brief_store
from newton.dialogue.brief.brief_items import BriefItem
from newton.dialogue.context_injections import ContextInjection
from newton.memory.memory_reader import fetch_pending_decisions, fetch_pending_decisions_as_of, fetch_preceding
from newton.memory.search_types import RetrievedMemory

SQL = load("newton.cognition.sources", "session_state.sql")

MAX_FOCUS_LINES = 12
MAX_WORKING_LINES = 24  # messages of the working memory, the last used first
OPEN_DECISION_AGE = timedelta(days=3)  # an older open decision is no longer pending
MAX_OPEN_DECISIONS = 3
RETELLING_INTERVAL = timedelta(days=14)  # after which the person is told again of what still waits for approval


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """The last frame of a session, its messages that are not sent (latest first), and decisions that await an outcome.

    `brief` are the open items of its brief whose messages are not sent.
    `calibration_note` says how well the stated confidence of decisions matched their outcomes; None without one.
    `injections` are memories and texts that a caller has put into the context of the session. `answer_correction`
    is the agent's correction of the probability of an answer. `pending_approvals` are those that the person was not
    told about within `RETELLING_INTERVAL`, in any session.
    """

    frame: str | None = None
    focus: Sequence[RetrievedMemory] = ()
    open_decisions: Sequence[RetrievedMemory] = ()
    brief: Sequence[BriefItem] = ()
    calibration_note: CalibrationNote | None = None
    injections: Sequence[ContextInjection] = ()
    answer_correction: AnswerCorrection = NO_CORRECTION
    pending_approvals: Sequence[PendingApproval] = ()

    def apply_filters(self, filters: ContextFilters) -> "SessionState":
        """Return the state without the messages and decisions that the filters exclude."""
        return replace(
            self,
            focus=[found for found in self.focus if filters.allows(found)],
            open_decisions=[found for found in self.open_decisions if filters.allows(found)],
        )


async def read_session_state(tx: Tx, request: ContextBuildRequest, *, now: datetime) -> SessionState:
    """Read the state of the request's session. `now` is the time for which the context is built."""
    agent_id, session_id = request.agent_id, request.session_id
    since = None if request.is_private or request.as_of else now - RETELLING_INTERVAL
    last = await _read_last_context(tx, agent_id=agent_id, session_id=session_id, moment=request.as_of, since=since)
    return SessionState(
        frame=last.frame,
        pending_approvals=last.pending,
        focus=await _read_focus(tx, request),
        open_decisions=await _read_open_decisions(tx, request, since=now - OPEN_DECISION_AGE),
        brief=await _read_brief(tx, request),
        calibration_note=await snapshots.read_note(tx, agent_id=agent_id, moment=request.as_of),
        injections=await context_injections.list_injections(
            tx, agent_id=agent_id, session_id=session_id, moment=request.as_of
        )
        if session_id
        else (),
        answer_correction=await find_correction(
            tx, agent_id=agent_id, model=load_relevance_model().answer_fingerprint, moment=request.as_of
        ),
    )


async def _read_open_decisions(tx: Tx, request: ContextBuildRequest, *, since: datetime) -> Sequence[RetrievedMemory]:
    if request.as_of is None:
        return await fetch_pending_decisions(tx, agent_id=request.agent_id, since=since, limit=MAX_OPEN_DECISIONS)
    return await fetch_pending_decisions_as_of(
        tx, agent_id=request.agent_id, since=since, moment=request.as_of, limit=MAX_OPEN_DECISIONS
    )


async def _read_brief(tx: Tx, request: ContextBuildRequest) -> Sequence[BriefItem]:
    if request.session_id is None:
        return ()
    items = await brief_store.list_items(
        tx, agent_id=request.agent_id, session_id=request.session_id, moment=request.as_of, only_open=True
    )
    sent = request.sent_messages
    return [
        item
        for item in items
        if sent is None or item.memory_id is None or not sent.covers(item.position, item.position)
    ]


async def _read_focus(tx: Tx, request: ContextBuildRequest) -> Sequence[RetrievedMemory]:
    view = request.sent_messages
    if view is None:
        return ()
    agent_id, thread_id, position = request.agent_id, view.session_id, view.first_position
    preceding = await fetch_preceding(
        tx, agent_id=agent_id, thread_id=thread_id, position=position, limit=MAX_FOCUS_LINES
    )
    if request.as_of is not None:
        return preceding
    rows = await SQL["list_working_messages"].fetch_all(
        tx, agent_id=agent_id, thread_id=thread_id, position=position, max_rows=MAX_WORKING_LINES
    )
    working = {found.memory_id: found for found in (RetrievedMemory(*row) for row in rows)}
    unused = [found for found in preceding if found.memory_id not in working]
    return sorted((*unused, *working.values()), key=lambda found: -(found.position or 0))


async def find_session_frame(tx: Tx, *, agent_id: UUID, session_id: UUID, moment: datetime | None = None) -> str | None:
    """Return the last frame of the session, up to `moment` if given; None without one."""
    return (await _read_last_context(tx, agent_id=agent_id, session_id=session_id, moment=moment)).frame


async def list_pending_approvals(
    tx: Tx, *, agent_id: UUID, session_id: UUID, position: int, now: datetime
) -> Sequence[PendingApproval]:
    """Return the pending approvals to report in the answer to the message at `position` of a session.

    Those that a context or an earlier message reported within `RETELLING_INTERVAL` are left out.
    """
    last = await _read_last_context(
        tx, agent_id=agent_id, session_id=session_id, since=now - RETELLING_INTERVAL, position=position
    )
    return last.pending


class _LastContext(NamedTuple):
    """The frame of the last context of a session, and the pending approvals that are not reported yet."""

    frame: str | None
    pending: Sequence[PendingApproval]


async def _read_last_context(
    tx: Tx,
    *,
    agent_id: UUID,
    session_id: UUID | None,
    moment: datetime | None = None,
    since: datetime | None = None,
    position: int | None = None,
) -> _LastContext:
    rows = await SQL["get_last_context"].fetch_all(
        tx, agent_id=agent_id, session_id=session_id, moment=moment, since=since, position=position
    )
    fields = PendingApproval._fields
    pending = [PendingApproval(*(row[name] for name in fields)) for row in rows if row["item_id"]]
    return _LastContext(rows[0]["frame"], pending)
