"""The caller of a request, whose share of the daemon the request uses."""

from collections import OrderedDict
from typing import NamedTuple
from uuid import UUID

from starlette.datastructures import Headers
from starlette.types import Scope

from newton.runtime.access.operator_token import is_same_token
from newton.runtime.access.tokens import hash_token

MAX_KNOWN = 10_000


class CallerKey(NamedTuple):
    """The token of a request, and the agent of the token. Both have a limited share of the daemon."""

    agent: str
    token: str


class KnownCallers:
    """The agents of the tokens that were verified last.

    They tell the agent of a request before it is authenticated, without a query. A token that is not verified yet
    has a share of its own, so that a forged one takes nothing from the agent that it names.
    """

    def __init__(self, operator_token: str) -> None:
        self._operator_token = operator_token
        self._agents: OrderedDict[bytes, UUID] = OrderedDict()

    def add(self, token: str, agent_id: UUID) -> None:
        """Remember the agent of a token that was verified."""
        key = hash_token(token)
        self._agents[key] = agent_id
        self._agents.move_to_end(key)
        if len(self._agents) > MAX_KNOWN:
            self._agents.popitem(last=False)

    def identify(self, scope: Scope) -> CallerKey:
        """Return the caller of a request. The operator has a share for each agent that the header selects."""
        headers = Headers(scope=scope)
        scheme, _, token = headers.get("authorization", "").strip().partition(" ")
        token = token.strip()
        if is_same_token(token, self._operator_token):
            operator = f"operator {headers.get('x-newton-agent', '').strip()}"
            return CallerKey(operator, operator)
        key = hash_token(token)
        unverified = f"{scheme.lower()} {key.hex()}"
        agent_id = self._agents.get(key)
        return CallerKey(f"agent {agent_id}" if agent_id else unverified, unverified)
