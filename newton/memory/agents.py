"""Agents: each is one mind, and every row belongs to exactly one."""

from datetime import datetime
from uuid import UUID

from newton import ids
from newton.db.pool import Database
from newton.db.queries import load
from newton.errors import NotFoundError

SQL = load("newton.memory", "agents.sql")


async def known(db: Database, name: str) -> UUID:
    """The agent of that name. Raises NotFoundError when there is none."""
    agent_id = ids.agent_id(name)
    async with db.work(agent_id) as tx:
        if await SQL["agent_exists"].one(tx, agent_id=agent_id) is None:
            raise NotFoundError(f"There is no agent {name!r}.", hint="`newton agents` lists them.")
    return agent_id


async def agent(db: Database, name: str, *, now: datetime) -> UUID:
    """The agent of that name, begun if it is new."""
    agent_id = ids.agent_id(name)
    async with db.work(agent_id) as tx:
        await SQL["insert_agent"].run(tx, agent_id=agent_id, name=name, now=now)
    return agent_id
