"""The model that a request names: an agent, a model of the model's server, or both."""

from typing import NamedTuple

from newton.errors import ProviderError
from newton.memory import agents as agent_store
from newton.providers.chat import ChatModel
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.auth import AuthenticatedCaller
from newton.runtime.api.chat_completions.request_models import OWN_MODEL
from newton.runtime.wiring import AgentServices

SERVER_OWNER = "model-server"  # the owner of models that are not Newton's


class ModelChoice(NamedTuple):
    """The agent whose memory is used, and the model that answers; None if no model is configured."""

    newton: AgentServices
    model: ChatModel | None


async def choose_model(name: str, caller: AuthenticatedCaller, registry: AgentRegistry) -> ModelChoice:
    """Return the agent and the model for the name in a request.

    Only the operator's token can name another agent. Raises ModelNotFoundError for an unknown name.
    """
    newton, model_name = await choose_agent(name, caller, registry)
    default = newton.chat_model
    return ModelChoice(newton, default if model_name is None else await newton.models.select(default, model_name))


async def list_model_names(caller: AuthenticatedCaller, registry: AgentRegistry) -> dict[str, str]:
    """Return the names that a request may use, each with its owner.

    They are `newton`, the agents of the token, the upstreams, and the models of their servers.
    """
    own = caller.token_agent
    agents = await agent_store.list_names(own.scope.db) if caller.is_operator else [own.settings.agent]
    served = await _list_served(own)
    return dict.fromkeys(served, SERVER_OWNER) | dict.fromkeys([OWN_MODEL, *agents], OWN_MODEL)


async def _list_served(newton: AgentServices) -> list[str]:
    model = newton.chat_model
    if model is None:
        return []
    try:
        return await newton.models.list_names(model) or [model.name]
    except ProviderError:
        return [model.name]


async def choose_agent(
    name: str, caller: AuthenticatedCaller, registry: AgentRegistry
) -> tuple[AgentServices, str | None]:
    """Return the agent for the name in a request, and the name of a model if there is one in it."""
    first, _, rest = name.partition("/")
    for agent, model_name in ((name, None), (first, rest or None)):
        if agent in (OWN_MODEL, caller.token_agent.settings.agent):
            return caller.newton, model_name
        if caller.is_operator and await agent_store.exists(caller.token_agent.scope.db, agent):
            return await registry.get(agent), model_name
    return caller.newton, name
