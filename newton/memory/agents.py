"""Agents. Every row of the database belongs to exactly one."""

import re
from datetime import datetime
from uuid import UUID

from newton import ids
from newton.db.pool import Database
from newton.db.queries import load
from newton.errors import InputError

SQL = load("newton.memory", "agents.sql")

NAME_PATTERN = re.compile(r"[^\W_][\w.-]*")  # fits into a header, a URL and the name of a model


async def exists(db: Database, name: str) -> bool:
    """Return whether there is an agent with this name."""
    agent_id = ids.derive_agent_id(name)
    async with db.transaction(agent_id) as tx:
        return await SQL["agent_exists"].fetch_one(tx, agent_id=agent_id) is not None


async def list_names(db: Database) -> list[str]:
    """Return the names of all agents, sorted."""
    async with db.worker_transaction() as tx:
        return [row["name"] for row in await SQL["list_names"].fetch_all(tx)]


async def get_or_create_agent(db: Database, name: str, *, now: datetime) -> UUID:
    """Return the id of the agent with this name; create the agent if it is new. Raises InputError for a bad name."""
    if not NAME_PATTERN.fullmatch(name):
        hint = "Use letters, digits, '.', '_' and '-', beginning with a letter or digit."
        raise InputError(f"{name!r} is not a valid name of an agent.", hint=hint)
    agent_id = ids.derive_agent_id(name)
    async with db.transaction(agent_id) as tx:
        await SQL["insert_agent"].execute(tx, agent_id=agent_id, name=name, now=now)
    return agent_id
