"""Inputs that store, delete and search items (JSON values of programs), shared by the HTTP API and the command line."""

from functools import partial
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from newton.agent.field_types import CleanText, build_validator
from newton.agent.inputs import ToolInput
from newton.heart.items import item_value
from newton.heart.items.item_store import ItemAddress
from newton.memory import hygiene

MAX_ITEM_LIMIT = 200
MAX_ITEM_OFFSET = 1_000_000

JsonFields = dict[str, JsonValue]
ItemValue = Annotated[JsonFields, build_validator(item_value.clean_value)]
ItemKey = Annotated[str, build_validator(partial(hygiene.clean_ref, what="key"))]
NamespaceParts = Annotated[tuple[str, ...], build_validator(item_value.clean_namespace)]
FieldPaths = Annotated[tuple[str, ...], build_validator(item_value.clean_fields)]


class ItemAddressInput(ToolInput):
    """The namespace and the key that identify an item."""

    namespace: NamespaceParts = Field(
        min_length=1, description="The parts of the namespace, from the outermost to the innermost."
    )
    key: ItemKey = Field(description="The key of the item in its namespace.")

    @property
    def address(self) -> ItemAddress:
        return ItemAddress(self.namespace, self.key)


class PutItemInput(ItemAddressInput):
    """An item: a JSON object with a namespace and a key. The text of its fields is stored as a memory."""

    value: ItemValue = Field(description="The value of the item, a JSON object.")
    index: FieldPaths | Literal[False] | None = Field(
        default=None,
        description="The paths of the fields whose text is stored as a memory, such as `title`, `author.name` or "
        "`tags[*]`; null for all fields, false for none.",
    )
    source: Literal["own", "tool", "web"] = Field(
        default="own",
        description="Where the value is from: own (the person or the program), tool (a tool or a file), web (a page). "
        "Text of a tool or a page is not included in contexts.",
    )

    @property
    def text(self) -> str | None:
        """Return the text to store as a memory; None if there is none."""
        if self.index is False:
            return None
        fields = (item_value.WHOLE_VALUE,) if self.index is None else self.index
        return item_value.render_text(self.value, fields) or None


class SearchItemsInput(ToolInput):
    """A search for items in all namespaces that begin with `namespace`. The results are returned in pages."""

    namespace: NamespaceParts = Field(
        default=(), description="The first parts of the namespaces to search; empty for all namespaces."
    )
    query: CleanText | None = Field(
        default=None,
        description="A text: the items most similar to the text come first. Default: the last updated item first.",
    )
    filter: JsonFields = Field(
        default={},
        description="The fields that an item must have: a value to equal, an object with some of the fields, or the "
        "operators $eq, $ne, $gt, $gte, $lt and $lte.",
    )
    limit: int = Field(default=10, ge=1, le=MAX_ITEM_LIMIT, description="Maximum number of items.")
    offset: int = Field(default=0, ge=0, le=MAX_ITEM_OFFSET, description="Number of items to skip.")


class NamespacesInput(ToolInput):
    """The conditions on the namespaces to list. `*` in a prefix or suffix stands for any one part."""

    prefix: NamespaceParts = Field(default=(), description="Only namespaces that begin with these parts.")
    suffix: NamespaceParts = Field(default=(), description="Only namespaces that end with these parts.")
    max_depth: int | None = Field(
        default=None, ge=1, description="Shorten each namespace to this number of parts; equal ones are listed once."
    )
    limit: int = Field(default=100, ge=1, le=1_000, description="Maximum number of namespaces.")
    offset: int = Field(default=0, ge=0, le=MAX_ITEM_OFFSET, description="Number of namespaces to skip.")
