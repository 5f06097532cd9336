"""Routes of agents and tokens."""

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import Field

from newton.agent.field_types import Name
from newton.memory import hygiene
from newton.runtime.access.tokens import TokenScope
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.auth import AdminAccess, ReadAccess
from newton.runtime.api.base_models import ItemList, RequestModel, ResponseModel
from newton.runtime.jobs.claims import list_agent_queues

router = APIRouter(prefix="/v1", tags=["agents"])


class CreateAgentRequest(RequestModel):
    """The name of the agent."""

    name: Name = Field(examples=["work"])


class AgentModelRequest(RequestModel):
    """The default model of an agent; null for the configured one."""

    model: Name | None = Field(examples=["fast"])


class AgentModelInfo(ResponseModel):
    """The default model of an agent; null for the configured one."""

    name: str = Field(examples=["work"])
    model: str | None


class AgentInfo(ResponseModel):
    """An agent."""

    agent_id: UUID
    name: str = Field(examples=["work"])


class AgentQueueInfo(ResponseModel):
    """An agent with the numbers of its queued and failed job runs.

    If it is the memory of a user, `parent` is the agent of that `user`; else both are null. `model` is its default
    model; null for the configured one.
    """

    name: str
    created_at: datetime
    parent: str | None
    user: str | None
    model: str | None
    queued_runs: int
    dead_runs: int


class TokenInfo(ResponseModel):
    """The agent and the scope of the token, and the chat model. `model` is null when no chat model is configured."""

    agent: str
    scope: TokenScope
    model: str | None


@router.get("/agents")
async def list_agents(caller: AdminAccess) -> ItemList[AgentQueueInfo]:
    """List the agents of the database with their job runs. Needs the operator's token."""
    caller.require_operator("Only the operator lists agents.")
    agents = await list_agent_queues(caller.newton.scope.db)
    return ItemList(items=[AgentQueueInfo.from_source(one, queued_runs=one.live, dead_runs=one.dead) for one in agents])


@router.post("/agents", status_code=201)
async def create_agent(body: CreateAgentRequest, request: Request, caller: AdminAccess) -> AgentInfo:
    """Create an agent that `X-Newton-Agent` can select. An existing agent is unchanged. Needs the operator's token."""
    caller.require_operator("Only the operator creates agents.")
    agents: AgentRegistry = request.app.state.agents
    newton = await agents.create(hygiene.clean_ref(body.name, what="agent"))
    return AgentInfo(agent_id=newton.scope.agent_id, name=newton.settings.agent)


@router.put("/agents/{name}/model")
async def set_agent_model(name: str, body: AgentModelRequest, request: Request, caller: AdminAccess) -> AgentModelInfo:
    """Set the default model of an agent. Needs the operator's token."""
    caller.require_operator("Only the operator sets the model of an agent.")
    agents: AgentRegistry = request.app.state.agents
    newton = await agents.set_model(await agents.get(hygiene.clean_ref(name, what="agent")), body.model)
    return AgentModelInfo(name=newton.settings.agent, model=newton.default_model)


@router.get("/token")
async def get_token_info(caller: ReadAccess) -> TokenInfo:
    """Return the agent and the scope of the token, and the chat model."""
    model = caller.token_agent.chat_model
    return TokenInfo(agent=caller.token_agent.settings.agent, scope=caller.scope, model=model.name if model else None)
