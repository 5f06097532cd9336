"""Endpoints that list the names that a request may send as `model`."""

from fastapi import APIRouter, Request

from newton.runtime.api import problems
from newton.runtime.api.auth import AuthenticatedCaller, ReadAccess
from newton.runtime.api.chat_completions.request_models import OWN_MODEL
from newton.runtime.api.chat_completions.turn_request import (
    SERVER_OWNER,
    choose_model,
    find_model_window,
    list_model_names,
)

router = APIRouter(
    prefix="/v1/models",
    tags=["openai"],
    responses=problems.OPENAI_ERRORS,
)


@router.get("")
async def list_models(request: Request, caller: ReadAccess) -> dict[str, object]:
    """List the accepted values of `model`.

    They are `newton`, the agents that the token can use, the models of the model servers, and the embedding model. A
    chat model has its context window in tokens, and the source of this number, if it is known.
    """
    owners = await list_model_names(caller, request.app.state.agents)
    data = [await _chat_model_object(name, owner, caller) for name, owner in owners.items()]
    others = {name: owner for name, owner in _embedding_model(caller).items() if name not in owners}
    return {"object": "list", "data": [*data, *(_model_object(name, owner) for name, owner in others.items())]}


@router.get("/{model:path}")
async def get_model(model: str, request: Request, caller: ReadAccess) -> dict[str, object]:
    """Return a model by its id, in OpenAI's format. Requests may name it in the field `model`."""
    registry, owners = request.app.state.agents, _embedding_model(caller)
    if model in owners:
        return _model_object(model, owners[model])
    await choose_model(model, caller.for_agent(caller.token_agent), registry)
    owners = await list_model_names(caller, registry)
    return await _chat_model_object(model, owners.get(model, OWN_MODEL), caller)


def _embedding_model(caller: AuthenticatedCaller) -> dict[str, str]:
    """Return the name of the embedding model with its owner; an empty mapping if there is none."""
    newton = caller.token_agent
    embedder, provider = newton.scope.embedder, newton.settings.embedding_provider
    return {embedder.name: SERVER_OWNER if provider == "openai" else OWN_MODEL} if embedder else {}


async def _chat_model_object(name: str, owner: str, caller: AuthenticatedCaller) -> dict[str, object]:
    window = await find_model_window(name, caller)
    found = {"context_window": window.tokens, "context_window_source": window.source} if window else {}
    return {**_model_object(name, owner), **found}


def _model_object(name: str, owner: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": owner}
