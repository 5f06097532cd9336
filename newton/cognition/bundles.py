"""Bundles at rest."""

from uuid import UUID

from pydantic_core import to_json

from newton.cognition.bundle import Bundle
from newton.db.pool import Tx
from newton.db.queries import load

SQL = load("newton.cognition", "bundles.sql")


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
