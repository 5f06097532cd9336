"""Record of who was given text of tools and the web: what a model states afterwards has at most the trust of that text.

A reader is a session (its id) or, for calls without one, the token with which a model calls.
"""

from collections.abc import Sequence
from datetime import timedelta

from newton.db.pool import Tx
from newton.db.queries import load
from newton.memory.memory import Trust, WriteContext, lowest_known_trust

SQL = load("newton.memory", "foreign_readings.sql")

TOKEN_MEMORY = timedelta(hours=4)  # how long a call without a session counts


async def record_reading(tx: Tx, trust: Trust, readers: Sequence[str], *, ctx: WriteContext) -> None:
    """Record that text of this trust, `tool` or `web`, was given to readers."""
    await SQL["record"].execute(tx, agent_id=ctx.agent_id, readers=readers, trust=trust, now=ctx.now)


async def find_lowest_read(
    tx: Tx, *, sessions: Sequence[str], tokens: Sequence[str], ctx: WriteContext
) -> Trust | None:
    """Return the lowest trust of the foreign text that was given to any of the readers; None if there was none."""
    rows = await SQL["find"].fetch_all(
        tx,
        agent_id=ctx.agent_id,
        sessions=sessions,
        tokens=tokens,
        since=ctx.now - TOKEN_MEMORY,
    )
    return lowest_known_trust(row["trust"] for row in rows)
