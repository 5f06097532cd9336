"""Who calls: the agent comes from the token, and a token may do what its scope says."""

import difflib
from typing import Annotated

from fastapi import Depends, Header, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from newton.db.pool import Tx
from newton.errors import ForbiddenError, InputError, NotFoundError, UnauthorizedError
from newton.memory import hygiene
from newton.runtime.access import operator, tokens
from newton.runtime.access.tokens import SCOPES, Scope
from newton.runtime.jobs.claiming import everyone
from newton.runtime.minds import Minds
from newton.runtime.wiring import Newton

BEARER = HTTPBearer(auto_error=False, description="A token of `newton tokens create`, or the operator's.")
NO_TOKEN = UnauthorizedError(
    "The request has no valid token.",
    hint="Send `Authorization: Bearer TOKEN`; `newton tokens create NAME` makes one.",
)
NOTHING = (b"", b"{}", b"null")  # what clients send that always send something


class Caller:
    """Newton for the agent that the caller speaks for, and how far they may go."""

    def __init__(self, newton: Newton, scope: Scope, *, token: str | None = None) -> None:
        self.newton, self._token = newton, token
        self.scope: Scope = scope

    @property
    def operator(self) -> bool:
        return self._token is None

    async def stands(self, tx: Tx) -> bool:
        """Whether the token is still valid, for who asked long ago."""
        return self._token is None or await tokens.bearer(tx, self._token, now=self.newton.scope.now()) is not None

    def must_operate(self, why: str) -> None:
        """Raises ForbiddenError for any token but the operator's."""
        if not self.operator:
            raise ForbiddenError(why, hint="Show the operator's token.")

    def may(self, scope: Scope) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def must(self, scope: Scope) -> None:
        """Raises ForbiddenError when the token does not reach so far."""
        if not self.may(scope):
            raise ForbiddenError(
                f"That needs a token with the scope {scope}, and this one has {self.scope}.",
                hint=f"`newton tokens create NAME --scope {scope}` makes one.",
            )


async def caller(
    request: Request,
    given: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)],
    agent: Annotated[
        str | None, Header(alias="X-Newton-Agent", description="Which agent; the operator's token alone may say.")
    ] = None,
) -> Caller:
    """Raises UnauthorizedError without a valid token, InputError for a body that nobody reads,
    ForbiddenError for a token that names another's agent, and NotFoundError for an agent that nobody has begun."""
    minds: Minds = request.app.state.minds
    known = await proven(request, given, agent)
    assert given is not None, "nothing is proven without a token"
    await _no_surplus(request)
    if known is None:
        name = minds.first.settings.agent if agent is None else hygiene.ref(agent, what="agent")
        return _known(request, Caller(await _named(minds, name), "admin"))
    return _known(request, Caller(await minds.of(known.agent), known.scope, token=given.credentials))


async def proven(
    request: Request, given: HTTPAuthorizationCredentials | None, agent: str | None
) -> tokens.Bearer | None:
    """Whose token it is, or None for the operator's. Raises UnauthorizedError without a valid one, and ForbiddenError
    for one that names another's agent."""
    if given is None:
        raise NO_TOKEN
    if operator.same(given.credentials, request.app.state.operator_token):
        return None
    known = await _bearer(request.app.state.minds, given.credentials)
    if agent is not None and agent != known.agent:
        raise ForbiddenError(
            "The token is another agent's.", hint="Leave --agent, or X-Newton-Agent, out: the token says whose it is."
        )
    return known


async def _named(minds: Minds, name: str) -> Newton:
    try:
        return await minds.of(name)
    except NotFoundError as error:
        near = difflib.get_close_matches(name, [one.name for one in await everyone(minds.first.scope.db)], n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        hint = f"{meant}`newton agents begin NAME` or `POST /v1/agents` begins another."
        raise NotFoundError(error.what, hint=hint) from None


async def _no_surplus(request: Request) -> None:
    """Raises InputError for a body where none is read: who sends one expects something of it."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute) or route.body_field or "requestBody" in (route.openapi_extra or {}):
        return
    if (await request.body()).strip() not in NOTHING:
        raise InputError(
            f"{request.method} {route.path_format} takes no body.",
            hint="Leave it out; `/openapi.json` says what the endpoint takes.",
        )


def _known(request: Request, caller: Caller) -> Caller:
    """The log names the agent, once the token has proven it."""
    request.state.agent_id = caller.newton.scope.agent_id
    return caller


async def _bearer(minds: Minds, text: str) -> tokens.Bearer:
    if tokens.agent_of(text) is None:
        raise NO_TOKEN  # nothing is asked for it
    async with minds.first.scope.db.statement() as tx:
        known = await tokens.bearer(tx, text, now=minds.first.scope.now())
    if known is None:
        raise NO_TOKEN
    return known


class Needs:
    """A dependency: the caller, whose token reaches so far. Raises ForbiddenError otherwise."""

    def __init__(self, scope: Scope) -> None:
        self.scope: Scope = scope

    def __call__(self, caller: Annotated[Caller, Depends(caller)]) -> Caller:
        caller.must(self.scope)
        return caller


Reader = Annotated[Caller, Depends(Needs("read"))]
Writer = Annotated[Caller, Depends(Needs("write"))]
Admin = Annotated[Caller, Depends(Needs("admin"))]
