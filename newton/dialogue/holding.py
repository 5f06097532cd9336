"""One turn of a session at a time, whichever process takes it; and what a turn that was cut off has left open."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.providers.chat import Call

SQL = load("newton.dialogue", "holding.sql")


class Signed(NamedTuple):
    """A line that was found by its sign."""

    session_id: UUID
    position: int
    sign: str


async def hold(tx: Tx, holder: UUID, *, agent_id: UUID, session_id: UUID, seconds: float) -> bool:
    """Whether the turn is the holder's, from now on for so many seconds; asking again keeps it."""
    row = await SQL["hold"].one(tx, agent_id=agent_id, session_id=session_id, holder=holder, seconds=seconds)
    return row is not None


async def release(tx: Tx, holder: UUID, *, agent_id: UUID, session_id: UUID) -> None:
    await SQL["release"].run(tx, agent_id=agent_id, session_id=session_id, holder=holder)


async def open_calls(tx: Tx, *, agent_id: UUID, session_id: UUID) -> list[Call]:
    """The calls of a session that nobody has answered, in their order."""
    return [Call(*row) for row in await SQL["open_calls"].all(tx, agent_id=agent_id, session_id=session_id)]


async def signed(tx: Tx, signs: Sequence[str], *, agent_id: UUID, ref: str) -> list[Signed]:
    """The lines with these signs in the session `ref` and in those whose names begin with it and `~`."""
    return [Signed(*row) for row in await SQL["signed"].all(tx, agent_id=agent_id, ref=ref, signs=list(signs))]
