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


class AgentInfo(ResponseModel):
    """An agent."""

    agent_id: UUID
    name: str = Field(examples=["work"])


class AgentQueueInfo(ResponseModel):
    """An agent with the numbers of its queued and failed job runs.

    If it is the memory of a user, `parent` is the agent of that `user`; else both are null.
    """

    name: str
    created_at: datetime
    parent: str | None
    user: str | None
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


@router.get("/token")
async def get_token_info(request: Request, caller: ReadAccess) -> TokenInfo:
    """Return the agent and the scope of the token, and the chat model."""
    agents: AgentRegistry = request.app.state.agents
    model = agents.chat_model_of(caller.token_agent)
    return TokenInfo(agent=caller.token_agent.settings.agent, scope=caller.scope, model=model.name if model else None)
