"""Bundles at rest, and the turns they served."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic_core import to_json

from newton.cognition.bundle import Bundle
from newton.cognition.refresh import How
from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id

SQL = load("newton.cognition", "bundles.sql")

AnsweredBy = Literal["model", "memory", "censor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A turn that is over: which bundle went with the line at `asked`, and where in the session the reply stands."""

    agent_id: UUID
    session_id: UUID
    bundle_id: UUID
    at: datetime
    how: How
    because: str
    answered_by: AnsweredBy
    asked: int
    replied: int


async def keep(tx: Tx, bundle: Bundle) -> None:
    await SQL["insert_bundle"].run(
        tx,
        agent_id=bundle.agent_id,
        bundle_id=bundle.bundle_id,
        session_id=bundle.session_id,
        created_at=bundle.created_at,
        input=bundle.input,
        frame=bundle.frame.frame,
        profile=bundle.profile.name,
        budget=bundle.budget,
        tokens=bundle.tokens,
        text=bundle.text,
        trace=to_json(bundle.trace()).decode(),
    )


async def frame_of(tx: Tx, *, agent_id: UUID, session_id: UUID) -> str | None:
    """The frame the session was last looked at in."""
    row = await SQL["session_frame"].one(tx, agent_id=agent_id, session_id=session_id)
    return row["frame"] if row else None


async def served(tx: Tx, turn: Served) -> None:
    """Links a bundle with the lines of the turn that it served."""
    await SQL["insert_turn"].run(
        tx,
        agent_id=turn.agent_id,
        turn_id=new_id(),
        session_id=turn.session_id,
        bundle_id=turn.bundle_id,
        at=turn.at,
        how=turn.how,
        because=turn.because,
        answered_by=turn.answered_by,
        asked=turn.asked,
        replied=turn.replied,
    )
