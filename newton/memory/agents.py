"""Agents. Every row of the database belongs to exactly one agent."""

import hashlib
import re
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from newton import ids
from newton.db.pool import Database, Tx, visit_agent
from newton.db.queries import load
from newton.errors import InputError, NotFoundError
from newton.memory.redaction.redactor import redact_secrets

SQL = load("newton.memory", "agents.sql")

MAX_AGENT_PART, MAX_USER_PART = 100, 40  # characters in the name of a user's memory
USER_HASH_LENGTH = 20  # hexadecimal digits: nobody finds a user name with the hash of another
NAME_PATTERN = re.compile(r"[^\W_][\w.-]*")  # fits into a header, a URL and the name of a model


class StoredAgent(NamedTuple):
    """The row of an agent: the name of its default model, and, of a user's memory or a project, the id of its parent.

    `project` is the name of the project whose memory the agent stores; None for any other agent.
    """

    model: str | None
    parent_id: UUID | None
    project: str | None


class DependentAgent(NamedTuple):
    """An agent that stores the memory of a user or of a project of another agent."""

    agent_id: UUID
    name: str
    is_project: bool


class Project(NamedTuple):
    """A project of an agent: the id of the agent that stores its memory, its name, and when it was created."""

    agent_id: UUID
    name: str
    created_at: datetime


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


async def list_dependents(db: Database, parent_id: UUID) -> list[DependentAgent]:
    """Return the agents that store the memories of users and projects of an agent, and of the projects of its users."""
    found, parent_ids = list[DependentAgent](), [parent_id]
    async with db.worker_transaction() as tx:
        while parent_ids:
            rows = await SQL["list_dependents"].fetch_all(tx, parent_ids=parent_ids)
            found += [DependentAgent(*row) for row in rows]
            parent_ids = [row["agent_id"] for row in rows]
    return found


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


async def read_agent(db: Database, agent_id: UUID) -> StoredAgent:
    """Return what is stored of an agent. Raises NotFoundError for an unknown agent."""
    async with db.transaction(agent_id) as tx:
        row = await SQL["read_agent"].fetch_one(tx, agent_id=agent_id)
    if row is None:
        raise NotFoundError("The agent does not exist any more.", hint="`newton agents` lists the agents.")
    return StoredAgent(*row)


async def set_model(db: Database, agent_id: UUID, model: str | None) -> None:
    """Set the name of the agent's default model; None removes it."""
    async with db.transaction(agent_id) as tx:
        await SQL["set_model"].execute(tx, agent_id=agent_id, model=model)


async def insert_user_agent(tx: Tx, name: str, *, parent_id: UUID, user: str, now: datetime) -> bool:
    """Create the agent `name`, which stores the memories of one user of another agent; return False if it exists."""
    row = {"name": name, "now": now, "parent_agent_id": parent_id, "user_name": redact_secrets(user)}
    return await SQL["insert_user_agent"].fetch_one(tx, agent_id=ids.derive_agent_id(name), **row) is not None


async def create_project(tx: Tx, name: str, *, parent_id: UUID, parent: str, now: datetime) -> UUID:
    """Create a project of an agent, unless it exists, in the open transaction of that agent; return its id.

    `parent` is the name of the agent `parent_id`.
    """
    agent, plain = name_project_agent(parent, name), redact_secrets(name)
    project_id = ids.derive_agent_id(agent)
    async with visit_agent(tx, project_id, home=parent_id):
        row = {"name": agent, "now": now, "parent_agent_id": parent_id, "project_name": plain}
        await SQL["insert_project_agent"].fetch_one(tx, agent_id=project_id, **row)
    await SQL["insert_project"].execute(tx, agent_id=parent_id, project_agent_id=project_id, name=plain, now=now)
    return project_id


async def list_projects(tx: Tx, *, agent_id: UUID) -> list[Project]:
    """Return the projects of an agent, sorted by name."""
    return [Project(*row) for row in await SQL["list_projects"].fetch_all(tx, agent_id=agent_id)]


async def delete_agent(tx: Tx, agent_id: UUID) -> None:
    """Permanently delete an agent with all its rows and tokens, in a transaction that uses its rows."""
    await SQL["delete_agent"].execute(tx, agent_id=agent_id)


async def delete_project(tx: Tx, project_id: UUID, *, agent_id: UUID) -> None:
    """Permanently delete a project of an agent with its memory, in the open transaction of that agent."""
    async with visit_agent(tx, project_id, home=agent_id):
        await delete_agent(tx, project_id)
    await SQL["delete_project"].execute(tx, agent_id=agent_id, project_agent_id=project_id)


def name_user_agent(agent: str, user: str) -> str:
    """Return the name of the agent that stores the memories of one user of another agent.

    It is the name of that agent, the letters and digits of the user's name, and a hash of both that makes it unique.
    """
    return _name_dependent(agent, user, f"{agent}\0{user}")


def name_project_agent(agent: str, project: str) -> str:
    """Return the name of the agent that stores the memories of one project of another agent.

    It is formed as that of a user's memory. The hash has two zero characters, so no user's is the same.
    """
    return _name_dependent(agent, project, f"{agent}\0project\0{project}")


def _name_dependent(agent: str, name: str, hashed: str) -> str:
    digits = hashlib.sha256(hashed.encode()).hexdigest()[:USER_HASH_LENGTH]
    readable = re.sub(r"[^a-z0-9]+", "-", name.lower())[:MAX_USER_PART].strip("-")
    return ".".join(filter(None, (agent[:MAX_AGENT_PART], readable, digits)))
