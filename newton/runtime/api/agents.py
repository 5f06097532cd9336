"""Agents, begun on purpose."""

from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import Field

from newton.memory import hygiene
from newton.runtime.api.caller import Admin
from newton.runtime.api.shapes import Answer, Given
from newton.runtime.minds import Minds
from newton.runtime.transfer.given import Name

router = APIRouter(prefix="/v1/agents", tags=["agents"])


class ToSummon(Given):
    """What the agent is called."""

    name: Name = Field(examples=["work"])


class Named(Answer):
    """An agent that is there."""

    agent_id: UUID
    name: str = Field(examples=["work"])


@router.post("", status_code=201)
async def begin(asked: ToSummon, request: Request, caller: Admin) -> Named:
    """Begin an agent, whom `X-Newton-Agent` may name from then on; one that is there already stays as it is. For the
    operator's token alone."""
    caller.must_operate("Agents are begun by the operator.")
    minds: Minds = request.app.state.minds
    newton = await minds.begin(hygiene.ref(asked.name, what="agent"))
    return Named(agent_id=newton.scope.agent_id, name=newton.settings.agent)
