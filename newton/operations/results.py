"""Results that several operations share: lists and pages of records, and of a proposal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, field_serializer

from newton.operations.cursors import encode_cursor

Item = TypeVar("Item")
Row = TypeVar("Row")


class ItemList(BaseModel, Generic[Item]):
    """A complete list of items, without pages."""

    model_config = ConfigDict(frozen=True)

    items: Sequence[Item]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalResult:
    """The result of a proposal. `is_new` is false if the same was proposed, or is in the identity, already."""

    is_new: bool


class SelectedFields(BaseModel):
    """A result with `items`. If `selected` is not empty, the JSON has only these fields of each item."""

    model_config = ConfigDict(frozen=True)

    selected: Annotated[tuple[str, ...], Field(exclude=True)] = ()  # the fields; all if it is empty

    @field_serializer("items", mode="wrap", check_fields=False)
    def _select_fields(self, items: object, to_data: SerializerFunctionWrapHandler) -> Any:
        found = cast("list[dict[str, object]]", to_data(items))
        return [{name: one[name] for name in self.selected} for one in found] if self.selected else found


class CursorPage(BaseModel, Generic[Item]):
    """One page of a list. `next` is the cursor for the next page; it is null on the last page."""

    model_config = ConfigDict(frozen=True)

    items: list[Item]
    next: str | None = Field(None, examples=["MDE5YTlmN2M"])


class CountedPage(CursorPage[Item], Generic[Item]):
    """One page of a list. `next` is the cursor for the next page; it is null on the last page."""

    count: int | None = Field(None, description="The number of all items; null after the first page.")


def build_page(
    rows: Sequence[Row], limit: int, to_item: Callable[[Row], Item], position: Callable[[Row], object]
) -> CursorPage[Item]:
    """Return a page of the first `limit` rows, each converted by `to_item`.

    `rows` has one row more if there is a next page; its cursor is then the `position` of the last row of this page.
    """
    page = rows[:limit]
    following = encode_cursor(str(position(page[-1]))) if len(rows) > limit else None
    return CursorPage(items=[to_item(row) for row in page], next=following)
