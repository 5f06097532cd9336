"""Endpoints that list, create, describe and delete agents, and one that describes the token in use."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import Field

from newton.agent.field_types import Name
from newton.agent.inventory.agent_overview import AgentInventory, AgentOverview
from newton.agent.llm.failing_models import list_failing_models
from newton.heart.speakers import Speaker
from newton.memory import hygiene
from newton.memory.memory import Kind
from newton.operations.results import ItemList
from newton.runtime.access.tokens import TokenScope
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.auth import AdminAccess, ReadAccess
from newton.runtime.api.base_models import RequestModel, ResponseModel
from newton.runtime.jobs.claims import list_agent_queues

router = APIRouter(prefix="/v1", tags=["agents"])


class CreateAgentRequest(RequestModel):
    """The name of the agent to create."""

    name: Name = Field(examples=["work"])


class AgentModelRequest(RequestModel):
    """The default model of an agent. Null stands for the model in the configuration."""

    model: Name | None = Field(examples=["fast"])


class AgentModelInfo(ResponseModel):
    """The default model of an agent. Null stands for the model in the configuration."""

    name: str = Field(examples=["work"])
    model: str | None


class AgentInfo(ResponseModel):
    """The id and the name of an agent."""

    agent_id: UUID
    name: str = Field(examples=["work"])


class AgentQueueInfo(ResponseModel):
    """An agent with the counts of its queued and failed job runs.

    An agent can be the separate memory of one user of another agent: `user` is then the name of this user, and `parent`
    that of the other agent. Else both are null. `model` is its default model; null stands for the configured one.
    """

    name: str
    created_at: datetime
    parent: str | None
    user: str | None
    project: str | None
    model: str | None
    queued_runs: int
    dead_runs: int


class MemoryCount(ResponseModel):
    """The number of memories of one kind in one state."""

    kind: Kind
    state: str
    quarantined: bool
    memories: int


class AgentOverviewResponse(ResponseModel):
    """The counts of memories, sessions and messages of an agent, and their size.

    `users` is the number of users with a separate memory, `projects` that of the projects of the agent and its users.
    """

    agent_id: UUID
    name: str
    created_at: datetime
    last_activity_at: datetime | None = Field(description="The time of the last message, memory or use of a memory.")
    memories: int
    counts: list[MemoryCount]
    sessions: int
    messages: int
    users: int
    projects: int
    size_bytes: int = Field(description="The size of the memories, messages, vectors and contexts, without indexes.")


class DeleteAgentResponse(ResponseModel):
    """The deleted agent. In a preview, the agent that would be deleted, and the `token` that confirms the deletion."""

    is_deleted: bool
    agent: AgentOverviewResponse
    token: str | None


class FailingModelInfo(ResponseModel):
    """A model whose latest `calls` calls in the background for a purpose failed. `failure` is why the last one did.

    `description` is a sentence for a person.
    """

    purpose: str = Field(examples=["extract"])
    model: str
    description: str
    failure: str
    calls: int
    failing_since: datetime
    last_failure_at: datetime


class TokenInfo(ResponseModel):
    """The agent and the scope of a token, and the agent's chat model. `model` is null if none is configured.

    `failing_models` are models that fail in background jobs; these go on without them until they answer again.
    """

    agent: str
    scope: TokenScope
    speaker: Speaker
    model: str | None
    failing_models: list[FailingModelInfo]


@router.get("/agents")
async def list_agents(caller: AdminAccess) -> ItemList[AgentQueueInfo]:
    """List the agents of the database with the counts of their job runs. Needs the operator's token."""
    caller.require_operator("Only the operator's token can list agents.")
    agents = await list_agent_queues(caller.newton.scope.db)
    return ItemList(items=[AgentQueueInfo.from_source(one, queued_runs=one.live, dead_runs=one.dead) for one in agents])


@router.post("/agents", status_code=201)
async def create_agent(body: CreateAgentRequest, request: Request, caller: AdminAccess) -> AgentInfo:
    """Create an agent, which `X-Newton-Agent` can then select. Needs the operator's token.

    An existing agent is not changed.
    """
    caller.require_operator("Only the operator's token can create agents.")
    agents: AgentRegistry = request.app.state.agents
    newton = await agents.create(hygiene.clean_ref(body.name, what="agent"))
    return AgentInfo(agent_id=newton.scope.agent_id, name=newton.settings.agent)


@router.get("/agents/{name}")
async def get_agent(name: str, caller: AdminAccess) -> AgentOverviewResponse:
    """Return how many memories, sessions and messages an agent stores. Needs the operator's token."""
    caller.require_operator("Only the operator's token can describe an agent.")
    return _to_overview(await AgentInventory(scope=caller.newton.scope).describe(name))


@router.delete("/agents/{name}")
async def delete_agent(
    name: str,
    request: Request,
    caller: AdminAccess,
    token: Annotated[
        str | None, Query(max_length=100, description="The token that the preview returned. It confirms the deletion.")
    ] = None,
) -> DeleteAgentResponse:
    """Permanently delete an agent with its tokens, users and projects. Needs the operator's token.

    Without `token`, nothing is deleted: the response is a preview with the token that confirms the deletion. The
    default agent of the daemon cannot be deleted.
    """
    caller.require_operator("Only the operator's token can delete agents.")
    agents: AgentRegistry = request.app.state.agents
    inventory = AgentInventory(scope=agents.default.scope)
    if token is None:
        overview = await inventory.describe(name)
        return DeleteAgentResponse(is_deleted=False, agent=_to_overview(overview), token=overview.token)
    overview = await inventory.delete(name, token=token)
    for agent_id in overview.agent_ids:
        agents.discard(agent_id)
        agents.default.chain_heads.delete(agent_id)
    return DeleteAgentResponse(is_deleted=True, agent=_to_overview(overview), token=None)


def _to_overview(overview: AgentOverview) -> AgentOverviewResponse:
    counts = [MemoryCount.from_source(one) for one in overview.states]
    return AgentOverviewResponse.from_source(overview, counts=counts)


@router.put("/agents/{name}/model")
async def set_agent_model(name: str, body: AgentModelRequest, request: Request, caller: AdminAccess) -> AgentModelInfo:
    """Set the default model of an agent. Needs the operator's token."""
    caller.require_operator("Only the operator's token can set the model of an agent.")
    agents: AgentRegistry = request.app.state.agents
    newton = await agents.set_model(await agents.get(hygiene.clean_ref(name, what="agent")), body.model)
    return AgentModelInfo(name=newton.settings.agent, model=newton.default_model)


@router.get("/token")
async def get_token_info(caller: ReadAccess) -> TokenInfo:
    """Return the agent and the scope of the token, the agent's chat model, and the models that fail."""
    agent = caller.token_agent
    async with agent.scope.transaction() as tx:
        failing = await list_failing_models(tx, agent_id=agent.scope.agent_id)
    return TokenInfo(
        agent=agent.settings.agent,
        scope=caller.scope,
        speaker=caller.speaker,
        model=agent.chat_model.name if agent.chat_model else None,
        failing_models=[FailingModelInfo.from_source(one) for one in failing],
    )
