"""The names that a request may send as `model`."""

from fastapi import APIRouter, Request

from newton.runtime.api import problems
from newton.runtime.api.auth import AuthenticatedCaller, ReadAccess
from newton.runtime.api.chat_completions.model_choice import choose_model, list_model_names
from newton.runtime.api.chat_completions.request_models import OWN_MODEL

router = APIRouter(
    prefix="/v1/models",
    tags=["openai"],
    responses={"default": {"model": problems.OpenAIErrorResponse, "description": "An error in the format of OpenAI."}},
)


@router.get("")
async def list_models(request: Request, caller: ReadAccess) -> dict[str, object]:
    """List the accepted values of `model`: `newton`, the agents of the token, the models of the model's server, and
    the embedding model."""
    names = [*await list_model_names(caller, request.app.state.agents), *_embedding_models(caller)]
    return {"object": "list", "data": [_model_object(name) for name in dict.fromkeys(names)]}


@router.get("/{model:path}")
async def get_model(model: str, request: Request, caller: ReadAccess) -> dict[str, object]:
    """Return one accepted value of `model`."""
    if model not in _embedding_models(caller):
        await choose_model(model, caller, request.app.state.agents)
    return _model_object(model)


def _embedding_models(caller: AuthenticatedCaller) -> list[str]:
    embedder = caller.newton.scope.embedder
    return [embedder.name] if embedder else []


def _model_object(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": OWN_MODEL}
