"""What the bodies of requests and answers have in common."""

from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

Item = TypeVar("Item")

MAX_PAGE_SIZE = 200


class RequestModel(BaseModel):
    """A request: what it does not know, it refuses."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ResponseModel(BaseModel):
    """What is answered."""

    model_config = ConfigDict(frozen=True)


class CursorPage(ResponseModel, Generic[Item]):
    """A part of a list. `next` is the cursor of the part behind it; null when this is the last one."""

    items: list[Item]
    next: str | None = Field(None, examples=["MDE5YTlmN2M"])


Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="The most to be listed.")]
Cursor = Annotated[
    str | None, Query(max_length=500, description="`next` of the page before; without it, the beginning.")
]
