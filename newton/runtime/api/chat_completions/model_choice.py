"""The field `model` of a request: the name of an agent, of a model, or AGENT/MODEL."""

from typing import NamedTuple

from newton.content.yaml_models import did_you_mean
from newton.errors import ModelNotFoundError, ProviderError
from newton.memory import agents as agent_store
from newton.providers.chat import ChatModel
from newton.providers.windows.context_windows import ContextWindow, find_window, get_known_window
from newton.runtime.agent_registry import AgentRegistry
from newton.runtime.api.auth import AuthenticatedCaller
from newton.runtime.api.chat_completions.request_models import OWN_MODEL
from newton.runtime.wiring import AgentServices

SERVER_OWNER = "model-server"  # the owner of models that are not Newton's


class ModelChoice(NamedTuple):
    """The agent whose memory is used, and the model that answers; `model` is None if no model is configured."""

    newton: AgentServices
    model: ChatModel | None


async def choose_model(name: str, caller: AuthenticatedCaller, registry: AgentRegistry) -> ModelChoice:
    """Return the agent and the model that the field `model` of a request names.

    Only the operator's token can name another agent. Raises ModelNotFoundError for an unknown name.
    """
    newton, model_name = await choose_agent(name, caller, registry)
    if model_name is None:
        return ModelChoice(newton, newton.chat_model)
    try:
        return ModelChoice(newton, await newton.models.select(newton.chat_model, model_name))
    except ModelNotFoundError as error:
        raise _explain_unknown_model(error, model_name, newton) from None


def _explain_unknown_model(error: ModelNotFoundError, name: str, newton: AgentServices) -> ModelNotFoundError:
    """Return the error for a name that is no chat model, with a hint that also names `newton`, the default model."""
    if newton.scope.embedder and name == newton.scope.embedder.name:
        hint = f"Send it to `POST /v1/embeddings`, or use the model `{OWN_MODEL}`."
        return ModelNotFoundError(f"{name!r} is an embedding model, not a chat model.", hint=hint, param="model")
    near = "" if "Did you mean" in error.hint else did_you_mean(name, (OWN_MODEL, newton.settings.agent))
    own = "" if f"`{OWN_MODEL}`" in error.hint else f"The model `{OWN_MODEL}` is the default model of the agent."
    return ModelNotFoundError(error.what, hint=" ".join(filter(None, (near, error.hint, own))), param="model")


async def find_model_window(name: str, caller: AuthenticatedCaller) -> ContextWindow | None:
    """Return the context window of the model that a listed name stands for; None if nobody states it.

    Only the server of the default model may be asked.
    """
    newton = caller.token_agent
    if name in (OWN_MODEL, newton.settings.agent):
        window = await find_window(newton.chat_model)
    else:
        window = get_known_window(newton.models.get(name))
    return None if window.source == "default" else window


async def list_model_names(caller: AuthenticatedCaller, registry: AgentRegistry) -> dict[str, str]:
    """Return the values that a request may send as `model`, each with its owner for OpenAI's model list.

    They are `newton`, the agents that the token can use, the configured model servers, and their models.
    """
    own = caller.token_agent
    agents = await agent_store.list_names(own.scope.db) if caller.is_operator else [own.settings.agent]
    served = await _list_served(own)
    names = dict.fromkeys([OWN_MODEL, *agents], OWN_MODEL)
    return names | {name: SERVER_OWNER for name in served if name not in names}


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
    """Return the agent and the model that `name`, such as `AGENT/MODEL`, names; None if it names no model."""
    first, _, rest = name.partition("/")
    for agent, model_name in ((name, None), (first, rest or None)):
        if agent in (OWN_MODEL, caller.token_agent.settings.agent):
            return caller.newton, model_name
        if caller.is_operator and await agent_store.exists(caller.token_agent.scope.db, agent):
            return await registry.get(agent), model_name
    return caller.newton, name
