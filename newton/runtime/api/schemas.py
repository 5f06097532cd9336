"""Base models of requests and responses, and the parameters of lists."""

from collections.abc import Sequence
from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

Item = TypeVar("Item")

ORIGIN = "http"  # of everything that is written over HTTP
MAX_PAGE_SIZE = 200


class RequestModel(BaseModel):
    """Base of request bodies; unknown fields are rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ResponseModel(BaseModel):
    """Base of response bodies."""

    model_config = ConfigDict(frozen=True)


class ItemList(ResponseModel, Generic[Item]):
    """A complete list."""

    items: Sequence[Item]


class CursorPage(ResponseModel, Generic[Item]):
    """One page of a list. `next` is the cursor of the next page, null on the last one."""

    items: list[Item]
    next: str | None = Field(None, examples=["MDE5YTlmN2M"])


Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="Maximum number of items.")]
Cursor = Annotated[
    str | None, Query(max_length=500, description="`next` of the previous page; omitted, the first page.")
]
