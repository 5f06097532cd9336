"""Where the agent is when an input comes: the session's frame and last lines, and what is being decided."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from newton.brain import snapshots
from newton.brain.snapshots import Advice
from newton.cognition import bundles
from newton.cognition.filters import Filters
from newton.cognition.request import Request
from newton.db.pool import Tx
from newton.memory.recall import Found, before, being_made, made_then

FOCUS_LINES = 12
DECIDING = timedelta(days=3)  # so long a decision that is not carried out is taken to be in the making
MOST_OPEN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Where the agent is: the session's last frame, its lines just out of view (the nearest first), the decisions that
    are being made, and what the record of decisions advises."""

    frame: str | None = None
    focus: Sequence[Found] = ()
    open: Sequence[Found] = ()
    advice: Advice | None = None

    def admitted(self, wanted: Filters) -> "Situation":
        """Without what the caller does not want."""
        return replace(
            self,
            focus=[found for found in self.focus if wanted.passes(found)],
            open=[found for found in self.open if wanted.passes(found)],
        )


async def situation(tx: Tx, request: Request, *, now: datetime) -> Situation:
    """`now` is the moment for which the context is made."""
    agent_id, session_id = request.agent_id, request.session_id
    return Situation(
        frame=session_id and await bundles.frame_of(tx, agent_id=agent_id, session_id=session_id, moment=request.as_of),
        focus=await _focus(tx, request),
        open=await _open(tx, request, since=now - DECIDING),
        advice=await snapshots.advice(tx, agent_id=agent_id, moment=request.as_of),
    )


async def _open(tx: Tx, request: Request, *, since: datetime) -> Sequence[Found]:
    if request.as_of is None:
        return await being_made(tx, agent_id=request.agent_id, since=since, most=MOST_OPEN)
    return await made_then(tx, agent_id=request.agent_id, since=since, moment=request.as_of, most=MOST_OPEN)


async def _focus(tx: Tx, request: Request) -> Sequence[Found]:
    view = request.in_view
    if view is None:
        return ()
    return await before(tx, agent_id=request.agent_id, thread=view.session_id, place=view.first, most=FOCUS_LINES)
