"""Results that several operations share: lists and pages of records."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Item = TypeVar("Item")


class ItemList(BaseModel, Generic[Item]):
    """A complete list of items, without pages."""

    model_config = ConfigDict(frozen=True)

    items: Sequence[Item]


class CursorPage(BaseModel, Generic[Item]):
    """One page of a list. `next` is the cursor for the next page; it is null on the last page."""

    model_config = ConfigDict(frozen=True)

    items: list[Item]
    next: str | None = Field(None, examples=["MDE5YTlmN2M"])


class CountedPage(CursorPage[Item], Generic[Item]):
    """One page of a list. `next` is the cursor for the next page; it is null on the last page."""

    count: int | None = Field(None, description="The number of all items; null after the first page.")
