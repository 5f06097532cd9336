"""Agents. Every row of the database belongs to exactly one agent."""

import hashlib
import re
from datetime import datetime
from uuid import UUID

from newton import ids
from newton.db.pool import Database, Tx
from newton.db.queries import load
from newton.errors import InputError, NotFoundError
from newton.memory.redaction.redactor import redact_secrets

SQL = load("newton.memory", "agents.sql")

MAX_AGENT_PART, MAX_USER_PART = 100, 40  # characters in the name of a user's memory
USER_HASH_LENGTH = 20  # hexadecimal digits: nobody finds a user name with the hash of another
NAME_PATTERN = re.compile(r"[^\W_][\w.-]*")  # fits into a header, a URL and the name of a model


async def exists(db: Database, name: str) -> bool:
    """Return whether an agent with this name exists."""
    agent_id = ids.derive_agent_id(name)
    async with db.transaction(agent_id) as tx:
        return await SQL["agent_exists"].fetch_one(tx, agent_id=agent_id) is not None


async def list_names(db: Database) -> list[str]:
    """Return the names of all agents, sorted."""
    async with db.worker_transaction() as tx:
        return [row["name"] for row in await SQL["list_names"].fetch_all(tx)]


async def get_created_at(tx: Tx, *, agent_id: UUID) -> datetime | None:
    """Return the time at which the agent was created; None if the agent does not exist."""
    row = await SQL["get_created_at"].fetch_one(tx, agent_id=agent_id)
    return row["created_at"] if row else None


async def list_user_agents(db: Database, parent_id: UUID) -> dict[UUID, str]:
    """Return the names, by id, of the agents that each store the memories of one user of the agent `parent_id`."""
    async with db.worker_transaction() as tx:
        rows = await SQL["list_user_agents"].fetch_all(tx, parent_agent_id=parent_id)
    return {row["agent_id"]: row["name"] for row in rows}


async def count_user_agents(db: Database, parent_id: UUID, *, since: datetime) -> tuple[int, int]:
    """Return how many users of an agent have a memory of their own, and how many of them got it after `since`."""
    async with db.worker_transaction() as tx:
        row = await SQL["count_user_agents"].fetch_one(tx, parent_agent_id=parent_id, since=since)
    return (row["total"], row["recent"]) if row else (0, 0)


async def get_or_create_agent(db: Database, name: str, *, now: datetime) -> UUID:
    """Return the id of the agent with this name; create the agent if it is new. Raises InputError for a bad name."""
    if not NAME_PATTERN.fullmatch(name):
        hint = "Use letters, digits, '.', '_' and '-', beginning with a letter or digit."
        raise InputError(f"{name!r} is not a valid name of an agent.", hint=hint)
    agent_id = ids.derive_agent_id(name)
    async with db.transaction(agent_id) as tx:
        await SQL["insert_agent"].execute(tx, agent_id=agent_id, name=name, now=now)
    return agent_id


async def read_model(db: Database, agent_id: UUID) -> str | None:
    """Return the name of the agent's default model; None if none is set. Raises NotFoundError for an unknown agent."""
    async with db.transaction(agent_id) as tx:
        row = await SQL["read_model"].fetch_one(tx, agent_id=agent_id)
    if row is None:
        raise NotFoundError("The agent does not exist any more.", hint="`newton agents` lists the agents.")
    return row["model"]


async def set_model(db: Database, agent_id: UUID, model: str | None) -> None:
    """Set the name of the agent's default model; None removes it."""
    async with db.transaction(agent_id) as tx:
        await SQL["set_model"].execute(tx, agent_id=agent_id, model=model)


async def insert_user_agent(tx: Tx, name: str, *, parent_id: UUID, user: str, now: datetime) -> bool:
    """Create the agent `name`, which stores the memories of one user of another agent; return False if it exists."""
    row = {"name": name, "now": now, "parent_agent_id": parent_id, "user_name": redact_secrets(user)}
    return await SQL["insert_user_agent"].fetch_one(tx, agent_id=ids.derive_agent_id(name), **row) is not None


def name_user_agent(agent: str, user: str) -> str:
    """Return the name of the agent that stores the memories of one user of another agent.

    It is the name of that agent, the letters and digits of the user's name, and a hash of both that makes it unique.
    """
    hashed = hashlib.sha256(f"{agent}\0{user}".encode()).hexdigest()[:USER_HASH_LENGTH]
    readable = re.sub(r"[^a-z0-9]+", "-", user.lower())[:MAX_USER_PART].strip("-")
    return ".".join(filter(None, (agent[:MAX_AGENT_PART], readable, hashed)))
