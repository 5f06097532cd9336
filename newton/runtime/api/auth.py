"""Authentication: the token determines the agent and the scope."""

from typing import Annotated

from fastapi import Depends, Header, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from newton.db.pool import Tx
from newton.errors import ForbiddenError, InputError, UnauthorizedError
from newton.memory import hygiene
from newton.runtime.access import operator_token, tokens
from newton.runtime.access.tokens import SCOPES, TokenScope
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.wiring import AgentServices

BEARER = HTTPBearer(auto_error=False, description="A token of `newton tokens create`, or the operator's token.")
INVALID_TOKEN = UnauthorizedError(
    "The request has no valid token.",
    hint="Send `Authorization: Bearer TOKEN`; `newton tokens create NAME` creates one.",
)
EMPTY_BODIES = (b"", b"{}", b"null")  # accepted everywhere, because some clients always send a body


class AuthenticatedCaller:
    """The services of the caller's agent, and the scope of the token."""

    def __init__(self, newton: AgentServices, scope: TokenScope, *, token: str | None = None) -> None:
        self.newton, self._token = newton, token
        self.scope: TokenScope = scope

    def for_agent(self, newton: AgentServices) -> "AuthenticatedCaller":
        """Return this caller with the services of another agent."""
        return AuthenticatedCaller(newton, self.scope, token=self._token)

    @property
    def is_operator(self) -> bool:
        return self._token is None

    async def is_token_valid(self, tx: Tx) -> bool:
        """Return whether the token is still valid. Long-running requests call it repeatedly."""
        now = self.newton.scope.now()
        return self._token is None or await tokens.verify_token(tx, self._token, now=now) is not None

    def require_operator(self, reason: str) -> None:
        """Raise ForbiddenError unless the token is the operator's."""
        if not self.is_operator:
            raise ForbiddenError(reason, hint="Send the operator's token.")

    def has_scope(self, scope: TokenScope) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def require_scope(self, scope: TokenScope) -> None:
        """Raise ForbiddenError when the token lacks the scope."""
        if not self.has_scope(scope):
            raise ForbiddenError(
                f"This request needs a token with the scope {scope}; this token has the scope {self.scope}.",
                hint=f"`newton tokens create NAME --scope {scope}` creates one.",
            )


async def get_caller(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)],
    agent: Annotated[
        str | None, Header(alias="X-Newton-Agent", description="The agent; only the operator's token may set it.")
    ] = None,
) -> AuthenticatedCaller:
    """Return the caller. Raises UnauthorizedError without a valid token, InputError for an unexpected body,
    ForbiddenError when a token names another agent, and NotFoundError for an unknown agent."""
    agents: AgentRegistry = request.app.state.agents
    claims = await authenticate(request, credentials, agent)
    assert credentials is not None, "authenticate() rejects a missing token"
    await _reject_unexpected_body(request)
    if claims is None:
        name = agents.default.settings.agent if agent is None else hygiene.clean_ref(agent, what="agent")
        caller = AuthenticatedCaller(await agents.get(name), "admin")
    else:
        caller = AuthenticatedCaller(await agents.get(claims.agent), claims.scope, token=credentials.credentials)
    request.state.agent_id = caller.newton.scope.agent_id  # for the request log
    return caller


async def authenticate(
    request: Request, credentials: HTTPAuthorizationCredentials | None, agent: str | None
) -> tokens.TokenClaims | None:
    """Return the claims of the token, or None for the operator's. Raises UnauthorizedError without a valid token, and
    ForbiddenError when a token names another agent."""
    if credentials is None:
        raise INVALID_TOKEN
    if operator_token.is_same_token(credentials.credentials, request.app.state.operator_token):
        return None
    claims = await _verify_token(request.app.state.agents, credentials.credentials)
    if agent is not None and agent != claims.agent:
        raise ForbiddenError(
            "The token belongs to another agent.", hint="Omit --agent or X-Newton-Agent: the token sets the agent."
        )
    return claims


async def _reject_unexpected_body(request: Request) -> None:
    """Raise InputError if a request to an endpoint without body has one: ignoring the body would hide a mistake."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or route.body_field or "requestBody" in (route.openapi_extra or {}):
        return
    if (await request.body()).strip() not in EMPTY_BODIES:
        what = f"{request.method} {route.path_format} takes no body."
        raise InputError(what, hint="Omit the body; `/openapi.json` describes the endpoint.")


async def _verify_token(agents: AgentRegistry, text: str) -> tokens.TokenClaims:
    if tokens.parse_token_ids(text) is None:
        raise INVALID_TOKEN  # without a database query
    async with agents.default.scope.db.single_statement() as tx:
        claims = await tokens.verify_token(tx, text, now=agents.default.scope.now())
    if claims is None:
        raise INVALID_TOKEN
    return claims


class RequireScope:
    """FastAPI dependency that returns the caller. It raises ForbiddenError when the token lacks the scope."""

    def __init__(self, scope: TokenScope) -> None:
        self.scope: TokenScope = scope

    def __call__(self, caller: Annotated[AuthenticatedCaller, Depends(get_caller)]) -> AuthenticatedCaller:
        caller.require_scope(self.scope)
        return caller


ReadAccess = Annotated[AuthenticatedCaller, Depends(RequireScope("read"))]
WriteAccess = Annotated[AuthenticatedCaller, Depends(RequireScope("write"))]
AdminAccess = Annotated[AuthenticatedCaller, Depends(RequireScope("admin"))]
