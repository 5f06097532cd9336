"""Operations on projects: memories of their own, which also read that of the agent."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from newton.agent.inventory.projects import ProjectDeletion, ProjectSummary
from newton.operations.agent.permissions import FOR_PERSONS
from newton.operations.declaration import operation
from newton.operations.fields import PlanToken
from newton.operations.results import ItemList
from newton.operations.text_format import pluralize

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

ProjectName = Annotated[str, Field(min_length=1, max_length=100, description="The name of the project.")]


def _format_summary(project: ProjectSummary) -> str:
    memories = pluralize(project.memories, "memory", "memories")
    return f"{project.name}  since {project.created_at:%Y-%m-%d} · {memories}"


def _format_deletion(result: ProjectDeletion) -> str:
    verb = "Deleted" if result.token is None else "To be deleted permanently:"
    return f"{verb} the project {result.name} with {pluralize(result.memories, 'memory', 'memories')}."


@operation(
    "GET /v1/projects",
    "reads",
    name="projects",
    command="projects list",
    text=_format_summary,
    empty="No projects. `newton remember TEXT --project NAME` creates one.",
    names_commands=True,
)
async def list_projects(caller: "OperationCaller") -> ItemList[ProjectSummary]:
    """List the projects of the agent. Each has a memory of its own, and also reads that of the agent.

    Example: newton projects
    """
    return ItemList(items=await caller.projects.list_projects())


@operation(
    "DELETE /v1/projects/{name}",
    "destroys",
    act="govern",
    name="delete_project",
    command="projects delete",
    text=_format_deletion,
    absent=FOR_PERSONS,
)
async def delete_project(caller: "OperationCaller", name: ProjectName, *, token: PlanToken = None) -> ProjectDeletion:
    """Permanently delete a project with all that it stores, and its tokens. The memory of the agent is kept.

    Without a token, the result is what would be deleted, and the token that deletes it.

    Example: newton projects delete shop
    """
    project_id, result = await caller.projects.delete(name, token=token)
    if token is not None:
        caller.newton.chain_heads.delete(project_id)
    return result
