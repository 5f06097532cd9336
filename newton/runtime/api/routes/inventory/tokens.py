"""Endpoints of the access tokens of an agent. They need the operator's token."""

from datetime import datetime
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import Field

from newton.agent.field_types import Name, Timestamp
from newton.heart.speakers import Speaker
from newton.operations.results import ItemList
from newton.runtime.access import tokens
from newton.runtime.access.tokens import MAX_USERS, TokenDraft, TokenScope, UserPolicy
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.auth import AdminAccess, AuthenticatedCaller
from newton.runtime.api.base_models import PathId, RequestModel, ResponseModel, with_example
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/agents/{name}/tokens", tags=["agents"])


class CreateTokenRequest(RequestModel):
    """The options of a token to create."""

    model_config = with_example(name="laptop", scope="read")

    name: Name = Field(description="A name for the token, such as the client or machine that uses it.")
    scope: TokenScope = Field(
        "write", description="`read` permits queries, `write` also storing and chats, `admin` all."
    )
    expires_at: Timestamp | None = Field(None, description="When the token expires. Default: never.")
    users: UserPolicy | None = Field(
        None,
        description="With `per_user`, each user that a request names has a separate memory; with `shared`, all users"
        " share the memory of the agent. Default: the token serves one user.",
    )
    max_users: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="With `per_user`, the number of users of the agent up to which the token adds new ones. Default:"
        f" {MAX_USERS}. Each hour it adds at most 6 % of them.",
    )
    speaker: Speaker = Field(
        "app",
        description="Who speaks through the token: `person` (a person's own tool), `app` (a program through which"
        " persons talk) or `model` (an agent, whose every word is its own).",
    )


class AgentTokenInfo(ResponseModel):
    """A token without its secret. It is valid until `expires_at` or `revoked_at`."""

    token_id: UUID
    name: str
    scope: TokenScope
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None
    users: UserPolicy | None
    max_users: int | None
    speaker: Speaker


class CreateTokenResponse(ResponseModel):
    """The created token. Only this response contains its text, because Newton stores a hash."""

    token: str
    name: str
    scope: TokenScope
    agent: str
    users: UserPolicy | None
    max_users: int | None
    speaker: Speaker
    expires_at: datetime | None


@router.get("")
async def list_tokens(name: str, request: Request, caller: AdminAccess) -> ItemList[AgentTokenInfo]:
    """List the tokens of an agent, including expired and revoked ones. Needs the operator's token."""
    newton = await _get_agent(name, request, caller)
    async with newton.scope.transaction() as tx:
        found = await tokens.list_tokens(tx, agent_id=newton.scope.agent_id)
    return ItemList(items=[AgentTokenInfo.from_source(one) for one in found])


@router.post("", status_code=201)
async def create_token(
    name: str, body: CreateTokenRequest, request: Request, caller: AdminAccess
) -> CreateTokenResponse:
    """Create a token for an agent. Only this response contains the token. Needs the operator's token."""
    newton = await _get_agent(name, request, caller)
    draft = TokenDraft(body.name, body.scope, body.expires_at, body.users, body.max_users, body.speaker)
    async with newton.scope.transaction() as tx:
        text = await tokens.create_token(tx, draft, agent_id=newton.scope.agent_id, now=newton.scope.now())
    return CreateTokenResponse.from_source(body, token=text, agent=name)


@router.delete("/{token_id}")
async def revoke_token(token_id: PathId, name: str, request: Request, caller: AdminAccess) -> AgentTokenInfo:
    """Revoke a token by its name, its id or the end of its id. Needs the operator's token."""
    newton = await _get_agent(name, request, caller)
    async with newton.scope.transaction() as tx:
        revoked = await tokens.revoke_token(tx, token_id, agent_id=newton.scope.agent_id, now=newton.scope.now())
    return AgentTokenInfo.from_source(revoked)


async def _get_agent(name: str, request: Request, caller: AuthenticatedCaller) -> AgentServices:
    """Return the services of the named agent.

    Raises ForbiddenError without the operator's token, and NotFoundError for an unknown agent.
    """
    caller.require_operator("Only the operator's token can list, create and revoke tokens.")
    agents: AgentRegistry = request.app.state.agents
    return await agents.get(name)
