"""Base classes of request and response models, the query parameters of list endpoints, and ids in paths."""

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, JsonValue, StringConstraints

from newton.memory.lookup import MIN_ID_DIGITS
from newton.runtime.tools.views import ViewModel

ORIGIN = "http"  # the origin of everything that is written over HTTP
MAX_PAGE_SIZE = 200


def with_example(**fields: JsonValue) -> ConfigDict:
    """Return a pydantic configuration that adds an example with these fields to the OpenAPI schema."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


class RequestModel(BaseModel):
    """The base class of request bodies; unknown fields are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ResponseModel(ViewModel):
    """The base class of response bodies."""


def describe_event_stream(description: str, *, example: str) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI `responses` of an endpoint that streams server-sent events."""
    event = {
        "type": "object",
        "description": "One event of the stream.",
        "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": {"type": "string"}},
        "required": ["data"],
    }
    return {200: {"description": description, "content": {"text/event-stream": {"schema": event, "example": example}}}}


Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="Maximum number of items.")]
Cursor = Annotated[
    str | None,
    Query(max_length=500, description="The cursor of the page: `next` of the previous page. Default: the first page."),
]


MAX_ID_CHARS = 64

IdRef = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_CHARS)]
PathId = Annotated[
    IdRef, Path(description=f"The id, or at least its last {MIN_ID_DIGITS} digits.", examples=["3f9c2a71"])
]
