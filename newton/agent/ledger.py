"""What models cost one agent."""

from datetime import datetime
from uuid import UUID

from newton.db.pool import Tx
from newton.db.queries import load
from newton.ids import new_id
from newton.providers.chat import Reply

SQL = load("newton.agent", "ledger.sql")


async def spent(tx: Tx, *, agent_id: UUID, now: datetime) -> int:
    """Tokens asked and answered since midnight UTC."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    row = await SQL["spent"].one(tx, agent_id=agent_id, since=midnight)
    assert row is not None
    return row["tokens"]


async def record(tx: Tx, reply: Reply, *, agent_id: UUID, purpose: str, now: datetime) -> None:
    await SQL["record"].run(
        tx,
        agent_id=agent_id,
        usage_id=new_id(),
        at=now,
        model=reply.model,
        purpose=purpose,
        input_tokens=reply.input_tokens,
        output_tokens=reply.output_tokens,
        estimated=reply.estimated,
    )
