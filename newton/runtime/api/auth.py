"""Authentication of HTTP requests: the token determines the agent, the permissions and the user."""

from dataclasses import dataclass, field, replace
from typing import Annotated

from fastapi import Depends, Header, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from newton.deadline import DEFAULT_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS, RequestDeadline
from newton.errors import ForbiddenError, InputError, UnauthorizedError
from newton.heart.speakers import TRUST_OF_SPEAKER, Speaker
from newton.memory import hygiene
from newton.memory.memory import Trust
from newton.runtime.access import operator_token, tokens
from newton.runtime.access.tokens import SCOPES, TokenClaims, TokenScope
from newton.runtime.agent_registry import AgentRegistry, clean_user
from newton.runtime.api.middleware.admission import DEADLINE_KEY, TIMEOUT_HEADER
from newton.runtime.wiring import AgentServices

BEARER = HTTPBearer(
    auto_error=False, description="A token that `newton tokens create` printed, or the operator's token."
)
INVALID_TOKEN = UnauthorizedError(
    "The request has no valid token.",
    hint="Send `Authorization: Bearer TOKEN`; `newton tokens create NAME` creates a token.",
)
USERS_HINT = (
    "`newton tokens create NAME --per-user` creates a token with a memory for each user; with --shared-users, all users"
    " share the memory of the agent."
)
EMPTY_BODIES = (b"", b"{}", b"null")  # accepted everywhere, because some clients always send a body


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticatedCaller:
    """The sender of a request: the agent and scope of its token, and the memory that the request uses.

    `token` and `claims` are None for the operator's token. `selected` is the agent whose memory is used, if it is
    another than `token_agent`. `user` and `project` are those that the request names; `creates_project` is True if an
    unknown project is created. `deadline` is the moment until which memory is searched for the request;
    `has_own_timeout` is True if the caller has set it.
    """

    token_agent: AgentServices
    scope: TokenScope
    token: str | None = field(default=None, repr=False)
    claims: TokenClaims | None = None
    selected: AgentServices | None = None
    user: str | None = None
    project: str | None = None
    creates_project: bool = False
    deadline: RequestDeadline = field(default_factory=RequestDeadline.after)
    has_own_timeout: bool = False

    @property
    def turn_deadline(self) -> RequestDeadline | None:
        """Return the deadline that the caller has set, for a turn (a message and its reply); None if none was set.

        At the deadline the turn goes on with the memories found so far. Without one, the default time begins with the
        turn, because a turn may first wait for another turn of its session.
        """
        return self.deadline.accept_partial() if self.has_own_timeout else None

    @property
    def speaker(self) -> Speaker:
        """Return who speaks through the token: the operator's token is a person's."""
        return self.claims.speaker if self.claims else "person"

    @property
    def newton(self) -> AgentServices:
        """Return the services of the agent whose memory the request uses, with the trust of the speaker.

        Raises InputError if the token keeps a memory for each user and the request names no user.
        """
        if self.selected is None and self.needs_user:
            raise InputError(
                "This token keeps a memory for each user, and the request names no user.",
                hint="Send the header X-Newton-User, or `user` in a request of the OpenAI protocol.",
                param="user",
            )
        newton = replace(self.selected or self.token_agent, author=self.author)
        return newton if self.speaker != "model" else newton.with_trust(TRUST_OF_SPEAKER["model"])

    @property
    def needs_user(self) -> bool:
        """Return True if the token keeps a memory for each user."""
        return self.claims is not None and self.claims.users == "per_user"

    def for_agent(self, newton: AgentServices) -> "AuthenticatedCaller":
        """Return a copy of this caller that uses the memory of another agent."""
        return replace(self, selected=newton)

    async def enter_project(self, newton: AgentServices, agents: AgentRegistry) -> AgentServices:
        """Return the services of the project of an agent that the request names; those of the agent if it names none.

        Raises the errors of `AgentRegistry.get_for_project`.
        """
        if self.project is None:
            return newton
        return await agents.get_for_project(newton, self.project, creates=self.creates_project)

    async def for_user(self, user: str, agents: AgentRegistry) -> "AuthenticatedCaller":
        """Return a copy of this caller that uses the memory of a user.

        If the token's user policy is "per_user", this is a separate memory of the user, created on first use; otherwise
        it is the agent's memory. Raises InputError for an invalid user name or if the request already names another
        user, ForbiddenError if the token may not serve this user, and OverloadedError for too many new users.
        """
        user = clean_user(user)
        if self.user is not None:
            if user != self.user:
                raise InputError(
                    "The header X-Newton-User and the body name different users.",
                    hint="Name the same user in the header and the body, or only in one of them.",
                    param="user",
                )
            return self
        if self.claims is None or self.token is None:
            raise ForbiddenError("The operator's token cannot act for a user.", hint=USERS_HINT)
        if self.needs_user:
            memory = await agents.get_for_user(self.token_agent, user, token=self.token)
            return replace(self, selected=await self.enter_project(memory, agents), user=user)
        if self.claims.users is None and self.claims.first_user != tokens.hash_user(user):
            await self._bind_user(self.token, user)
        return replace(self, user=user)

    async def _bind_user(self, token: str, user: str) -> None:
        """Make this user the only one that the token serves. Raises ForbiddenError if it serves another user."""
        async with self.token_agent.scope.transaction() as tx:
            if not await tokens.bind_user(tx, token, user):
                what = "This token has served another user, whose memory this user may not see."
                raise ForbiddenError(what, hint=USERS_HINT)

    @property
    def author(self) -> str:
        """Return the name of the caller for the history of edits: "operator", or "token" and the token's name."""
        return f"token {self.claims.name}" if self.claims else "operator"

    @property
    def max_trust(self) -> Trust:
        """Return the highest trust level that texts of the caller may get."""
        return "operator" if self.is_operator else TRUST_OF_SPEAKER[self.speaker]

    @property
    def is_operator(self) -> bool:
        return self.token is None

    async def is_token_valid(self) -> bool:
        """Return whether the token is still valid. Event streams call this repeatedly."""
        scope = self.token_agent.scope
        if self.token is None:
            return True
        async with scope.db.single_statement() as tx:
            return await tokens.verify_token(tx, self.token, now=scope.now()) is not None

    def require_operator(self, reason: str) -> None:
        """Raise ForbiddenError with `reason` as its message unless the token is the operator's."""
        if not self.is_operator:
            raise ForbiddenError(reason, hint="Send the operator's token.")

    def require_person(self, reason: str) -> None:
        """Raise ForbiddenError with `reason` as its message if a model speaks through the token."""
        if self.speaker == "model":
            raise ForbiddenError(reason, hint="Ask the person to do it.")

    def has_scope(self, scope: TokenScope) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def require_scope(self, scope: TokenScope) -> None:
        """Raise ForbiddenError unless the token has the scope or a higher one."""
        if not self.has_scope(scope):
            raise ForbiddenError(
                f"This request needs a token with the scope {scope}; this token has the scope {self.scope}.",
                hint=f"`newton tokens create NAME --scope {scope}` creates such a token.",
            )


async def get_caller(
    request: Request,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)],
    agent: Annotated[
        str | None,
        Header(
            alias="X-Newton-Agent",
            description="The name of the agent. Only the operator's token may set it.",
        ),
    ] = None,
    user: Annotated[
        str | None,
        Header(alias="X-Newton-User", description="The user whose memory is used, if the token serves several users."),
    ] = None,
    project: Annotated[
        str | None,
        Header(
            alias="X-Newton-Project",
            description="The project of the agent, or of the user, whose memory is used. It also reads the memory of"
            " the agent or the user. A request that may write creates it.",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        Header(
            alias=TIMEOUT_HEADER,
            gt=0,
            le=MAX_TIMEOUT_SECONDS,
            description="Seconds that the request waits in the queue of the daemon and for memory. Then a context and a"
            " search fail with the status 503; a turn goes on with what was found. Default:"
            f" {DEFAULT_TIMEOUT_SECONDS:g}.",
        ),
    ] = None,
) -> AuthenticatedCaller:
    """Return the sender of a request.

    Raises UnauthorizedError without a valid token, InputError for a body that the endpoint does not take,
    ForbiddenError if the token may not use the named agent, user or project, and NotFoundError for an unknown one.
    """
    agents: AgentRegistry = request.app.state.agents
    claims = await authenticate(request, credentials, agent)
    assert credentials is not None, "authenticate() rejects a missing token"
    await _reject_unexpected_body(request)
    if claims is None:
        name = agents.default.settings.agent if agent is None else hygiene.clean_ref(agent, what="agent")
        caller = AuthenticatedCaller(token_agent=await agents.get(name), scope="admin")
    else:
        caller = AuthenticatedCaller(
            token_agent=await agents.get(claims.agent),
            scope=claims.scope,
            token=credentials.credentials,
            claims=claims,
        )
    deadline = request.scope.get(DEADLINE_KEY) or RequestDeadline.after(timeout or DEFAULT_TIMEOUT_SECONDS)
    caller = replace(caller, deadline=deadline, has_own_timeout=timeout is not None)
    creates = caller.has_scope("write") and request.method not in ("GET", "HEAD")
    caller = replace(caller, project=project, creates_project=creates)
    if user is not None:
        caller = await caller.for_user(user, agents)
    if project is not None and caller.selected is None and not caller.needs_user:
        caller = caller.for_agent(await caller.enter_project(caller.token_agent, agents))
    request.state.agent_id = (caller.selected or caller.token_agent).scope.agent_id  # for the request log
    return caller


async def authenticate(
    request: Request, credentials: HTTPAuthorizationCredentials | None, agent: str | None
) -> tokens.TokenClaims | None:
    """Verify the token and return its claims, or None for the operator's token.

    Raises UnauthorizedError without a valid token, and ForbiddenError if `agent` is not the agent of the token.
    """
    if credentials is None:
        raise INVALID_TOKEN
    if operator_token.is_same_token(credentials.credentials, request.app.state.operator_token):
        return None
    claims = await _verify_token(request.app.state.agents, credentials.credentials)
    request.app.state.callers.add(credentials.credentials, claims.agent_id)
    if agent is not None and agent != claims.agent:
        raise ForbiddenError(
            "The token belongs to another agent.", hint="Omit --agent or X-Newton-Agent: the token sets the agent."
        )
    return claims


async def _reject_unexpected_body(request: Request) -> None:
    """Raise InputError if a request has a body but its endpoint takes none, because this is a mistake of the client."""
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
    """A FastAPI dependency that returns the caller. It raises ForbiddenError if the token has not the scope."""

    def __init__(self, scope: TokenScope) -> None:
        self.scope: TokenScope = scope

    def __call__(self, caller: Annotated[AuthenticatedCaller, Depends(get_caller)]) -> AuthenticatedCaller:
        caller.require_scope(self.scope)
        return caller


ReadAccess = Annotated[AuthenticatedCaller, Depends(RequireScope("read"))]
WriteAccess = Annotated[AuthenticatedCaller, Depends(RequireScope("write"))]
AdminAccess = Annotated[AuthenticatedCaller, Depends(RequireScope("admin"))]
