"""What the bodies of requests and answers have in common."""

from typing import Annotated, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

Item = TypeVar("Item")

MOST_LISTED = 200


class Given(BaseModel):
    """A request: what it does not know, it refuses."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Answer(BaseModel):
    """What is answered."""

    model_config = ConfigDict(frozen=True)


class Page(Answer, Generic[Item]):
    """A part of a list. `next` is the cursor of the part behind it; null when this is the last one."""

    items: list[Item]
    next: str | None = Field(None, examples=["MDE5YTlmN2M"])


Limit = Annotated[int, Query(ge=1, le=MOST_LISTED, description="The most to be listed.")]
Cursor = Annotated[
    str | None, Query(max_length=500, description="`next` of the page before; without it, the beginning.")
]
