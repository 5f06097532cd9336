"""Agents. Every row of the database belongs to exactly one."""

from datetime import datetime
from uuid import UUID

from newton import ids
from newton.db.pool import Database
from newton.db.queries import load
from newton.errors import NotFoundError

SQL = load("newton.memory", "agents.sql")


async def get_agent_id(db: Database, name: str) -> UUID:
    """Return the id of the agent with this name. Raises NotFoundError when there is none."""
    agent_id = ids.derive_agent_id(name)
    async with db.transaction(agent_id) as tx:
        if await SQL["agent_exists"].fetch_one(tx, agent_id=agent_id) is None:
            raise NotFoundError(f"There is no agent {name!r}.", hint="`newton agents` lists them.")
    return agent_id


async def get_or_create_agent(db: Database, name: str, *, now: datetime) -> UUID:
    """Return the id of the agent with this name; create the agent if it is new."""
    agent_id = ids.derive_agent_id(name)
    async with db.transaction(agent_id) as tx:
        await SQL["insert_agent"].execute(tx, agent_id=agent_id, name=name, now=now)
    return agent_id
