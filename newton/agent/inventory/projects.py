"""Projects of an agent: memories of their own, which also read that of the agent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from newton.agent.inventory.agent_overview import count_states
from newton.agent.scope import AgentScope
from newton.agent.services.confirmation import hash_preview, verify_preview
from newton.db.pool import Tx, visit_agent
from newton.errors import NotFoundError
from newton.memory import agents
from newton.memory.redaction.redactor import redact_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectSummary:
    """A project with the number of its memories."""

    name: str
    created_at: datetime
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectDeletion:
    """A project that is deleted with its memories, or that would be: then `token` confirms it."""

    name: str
    memories: int
    token: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectService:
    """Lists and deletes the projects of the agent in scope."""

    scope: AgentScope

    async def list_projects(self) -> Sequence[ProjectSummary]:
        """Return the projects of the agent, sorted by name. A project has none."""
        async with self.scope.transaction() as tx:
            return [
                await self._describe(tx, one) for one in await agents.list_projects(tx, agent_id=self.scope.agent_id)
            ]

    async def delete(self, name: str, *, token: str | None) -> tuple[UUID, ProjectDeletion]:
        """Permanently delete a project with all that it stores; return its id and what it contained.

        Without a token, nothing is deleted, and the result has the token. Raises NotFoundError for an unknown project,
        and ConflictError if it has changed since its token was returned.
        """
        async with self.scope.transaction() as tx:
            known = {one.name: one for one in await agents.list_projects(tx, agent_id=self.scope.agent_id)}
            project = known.get(redact_secrets(name.strip()))
            if project is None:
                raise NotFoundError(f"There is no project {name!r}.", hint="`newton projects` lists the projects.")
            described = await self._describe(tx, project)
            present = hash_preview(str(project.agent_id), described.name, str(described.memories))
            if token is None:
                return project.agent_id, ProjectDeletion(name=project.name, memories=described.memories, token=present)
            verify_preview(token, present)
            await agents.delete_project(tx, project.agent_id, agent_id=self.scope.agent_id)
        return project.agent_id, ProjectDeletion(name=project.name, memories=described.memories, token=None)

    async def _describe(self, tx: Tx, project: agents.Project) -> ProjectSummary:
        async with visit_agent(tx, project.agent_id, home=self.scope.agent_id):
            counts = await count_states(tx, agent_id=project.agent_id)
        memories = sum(one.memories for one in counts)
        return ProjectSummary(name=project.name, created_at=project.created_at, memories=memories)
