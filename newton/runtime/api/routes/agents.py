"""Agents, begun on purpose."""

from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import Field

from newton.memory import hygiene
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.auth import AdminAccess
from newton.runtime.api.schemas import RequestModel, ResponseModel
from newton.runtime.transfer.schema import Name

router = APIRouter(prefix="/v1/agents", tags=["agents"])


class CreateAgentRequest(RequestModel):
    """What the agent is called."""

    name: Name = Field(examples=["work"])


class AgentInfo(ResponseModel):
    """An agent that is there."""

    agent_id: UUID
    name: str = Field(examples=["work"])


@router.post("", status_code=201)
async def create_agent(body: CreateAgentRequest, request: Request, caller: AdminAccess) -> AgentInfo:
    """Begin an agent, whom `X-Newton-Agent` may name from then on; one that is there already stays as it is. For the
    operator's token alone."""
    caller.require_operator("Agents are begun by the operator.")
    minds: AgentRegistry = request.app.state.agents
    newton = await minds.create(hygiene.clean_ref(body.name, what="agent"))
    return AgentInfo(agent_id=newton.scope.agent_id, name=newton.settings.agent)
