"""The HTTP routes of all operations, each derived from its declaration."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Path, Query, Request
from fastapi.responses import Response
from pydantic.fields import FieldInfo

from newton.agent.inputs import ToolInput
from newton.content.yaml_files import did_you_mean
from newton.db.pool import Tx
from newton.errors import InputError
from newton.operations.caller import OperationCaller
from newton.operations.declaration import Operation, load_operations
from newton.operations.runner import run_operation
from newton.runtime.api import idempotency
from newton.runtime.api.auth import AuthenticatedCaller, RequireScope
from newton.runtime.api.base_models import ORIGIN
from newton.runtime.api.idempotency import (
    EMBED_JOB,
    IdempotencyKey,
    IdempotentRequest,
    IdempotentResponse,
    identify_request,
    to_http_response,
)
from newton.runtime.hint_names import rename_commands
from newton.runtime.jobs import queue

CALLER, BODY, KEY, REQUEST = "caller", "body", "idempotency_key", "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecorder:
    """Stores the response of a request with an idempotency key, and queues the job that follows a change.

    `request` is None without a key. By default the job is the one that embeds new text.
    """

    caller: OperationCaller
    request: IdempotentRequest | None
    operation: Operation

    async def find(self, tx: Tx) -> str | None:
        if self.request is None:
            return None
        stored = await idempotency.claim(tx, self.request, now=self.caller.scope.now())
        return stored.text if stored else None

    async def save(self, tx: Tx, response: str) -> None:
        if self.request:
            now = self.caller.scope.now()
            await idempotency.save_response(
                tx, self.request, IdempotentResponse(self.operation.status, response), now=now
            )
        # new text is searchable by words at once, and by vectors after the job that embeds it
        job = self.operation.options.get("job", EMBED_JOB)
        await queue.enqueue_if_idle(tx, job, agent_id=self.caller.scope.agent_id)


def build_operation_router() -> APIRouter:
    """Return a router with the routes of the operations (functions of Newton) that HTTP offers."""
    router = APIRouter()
    for operation in load_operations().values():
        if operation.is_at("http"):
            router.add_api_route(
                operation.route,
                _build_endpoint(operation),
                methods=[operation.method],
                status_code=operation.status,
                response_model=operation.hints["return"],
                tags=[operation.noun],
                description=operation.description,
            )
    return router


def _build_endpoint(operation: Operation) -> Callable[..., Any]:
    """Return a function with the signature from which FastAPI reads the path, the query, the body and the caller."""

    async def endpoint(**fields: Any) -> Response:
        request, caller, key = fields.pop(REQUEST), fields.pop(CALLER), fields.pop(KEY, None)
        body: ToolInput | None = fields.pop(BODY, None)
        _reject_unknown(request, operation)
        given = {**fields, **({name: getattr(body, name) for name in type(body).model_fields} if body else {})}
        return await _respond(operation, operation.input_model.model_construct(**given), caller, request, key)

    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, annotation, default in _list_parameters(operation)
    ]
    endpoint.__signature__ = Signature(parameters)  # pyrefly: ignore[missing-attribute]  # FastAPI reads it
    endpoint.__name__, endpoint.__doc__ = operation.name, operation.description
    return endpoint


def _reject_unknown(request: Request, operation: Operation) -> None:
    """Raise InputError for a query parameter that the operation does not have: it must not be understood in part."""
    if unknown := sorted(request.query_params.keys() - operation.input_model.model_fields.keys()):
        hint = f"{did_you_mean(unknown[0], operation.input_model.model_fields)} `/openapi.json` describes the endpoint."
        raise InputError(f"query.{unknown[0]}: There is no such field.", hint=hint.strip(), param=unknown[0])


def _list_parameters(operation: Operation) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, the annotation and the default of each parameter of the endpoint of an operation."""
    yield REQUEST, Request, Parameter.empty
    yield CALLER, Annotated[AuthenticatedCaller, Depends(RequireScope(operation.scope))], Parameter.empty
    if operation.effect != "reads":
        yield KEY, IdempotencyKey, None
    takes_query = operation.method in ("GET", "DELETE")
    for name, info in operation.input_model.model_fields.items():
        if name in operation.path_fields:
            yield name, Annotated[operation.hints[name], Path(**_describe(info))], Parameter.empty
        elif takes_query:
            default = Parameter.empty if info.is_required() else info.default
            yield name, Annotated[operation.hints[name], Query(**_describe(info))], default
    if not takes_query and operation.parameters.keys() > set(operation.path_fields):
        model = operation.build_model(without=operation.path_fields)
        is_optional = not any(info.is_required() for info in model.model_fields.values())
        yield BODY, Annotated[model, Body()], model() if is_optional else Parameter.empty


def _describe(info: FieldInfo) -> dict[str, Any]:
    return {"description": info.description, "examples": info.examples}


async def _respond(
    operation: Operation, given: ToolInput, sender: AuthenticatedCaller, request: Request, key: str | None
) -> Response:
    for name, scope in operation.options.get("field_scopes", {}).items():
        if getattr(given, name) is not None:
            sender.require_scope(scope)
    caller = OperationCaller(
        newton=sender.newton,
        origin=ORIGIN,
        speaker=sender.speaker,
        deadline=sender.deadline,
    )
    keyed = await identify_request(request, sender, key)
    recorder = RequestRecorder(caller=caller, request=keyed, operation=operation)
    outcome = await run_operation(operation, given, caller, recorder=recorder)
    if outcome.replayed is not None:
        return to_http_response(IdempotentResponse(operation.status, outcome.replayed), replayed=True)
    text = operation.result_type.dump_json(outcome.result).decode()
    if operation.options.get("names_commands"):
        text = rename_commands(text, "http")
    return to_http_response(IdempotentResponse(operation.status, text))
