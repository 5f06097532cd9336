"""Operations on items: JSON values that programs store under a namespace and a key, and whose text can be searched."""

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

from pydantic import Field, JsonValue

from newton.agent.field_types import CleanText, build_validator
from newton.errors import NotFoundError
from newton.heart.items import item_store, item_value
from newton.heart.items.item_store import DeletedItem, ItemAddress, ItemChange, ItemSelection, StoredItem
from newton.heart.items.item_value import NamespacePattern, flatten_filter
from newton.memory.hygiene import clean_ref
from newton.memory.query_vectors import embed_text
from newton.operations.declaration import Door, operation
from newton.operations.fields import Limit
from newton.operations.results import ItemList

if TYPE_CHECKING:
    from newton.operations.caller import OperationCaller

FOR_PROGRAMS: Mapping[Door, str] = {
    "cli": "Programs store items; `list --kind item` lists their texts, and `forget` deletes one with its item.",
    "mcp": "Programs store items; a model finds their texts by `recall`.",
    "chat": "Programs store items; `/recall` finds their texts.",
}

Parts = Annotated[tuple[str, ...], build_validator(item_value.clean_namespace)]
Namespace = Annotated[
    Parts, Field(min_length=1, description="The parts of the namespace, from the outermost to the innermost.")
]
Key = Annotated[
    str,
    build_validator(partial(clean_ref, what="key")),
    Field(description="The key of the item in its namespace."),
]
Fields = dict[str, JsonValue]
FieldPaths = Annotated[tuple[str, ...], build_validator(item_value.clean_fields)]
Offset = Annotated[int, Field(ge=0, le=1_000_000, description="Number of results to skip.")]


@operation("PUT /v1/items", "adds", act="state", absent=FOR_PROGRAMS)
async def put_item(
    caller: "OperationCaller",
    namespace: Namespace,
    key: Key,
    value: Annotated[
        Fields, build_validator(item_value.clean_value), Field(description="The value of the item, a JSON object.")
    ],
    *,
    index: Annotated[
        FieldPaths | Literal[False] | None,
        Field(
            description="The paths of the fields whose text is stored as a memory, such as `title`, `author.name` or "
            "`tags[*]`. Default: all fields; false for none."
        ),
    ] = None,
) -> ItemChange:
    """Store a JSON value as an item, or replace the value of an existing item.

    The text of its fields becomes a memory that searches find, and supersedes the former text.

    Example: {"namespace": ["users", "ana"], "key": "food", "value": {"text": "Ana likes pizza."}}
    """
    await caller.scope.reserve_storage(json.dumps(value))
    paths = (item_value.WHOLE_VALUE,) if index is None else index or ()
    text = item_value.render_text(value, paths) or None
    async with caller.scope.write() as (tx, ctx):
        change = await item_store.put_item(tx, ItemAddress(namespace, key), value, text=text, ctx=ctx)
    memory_id = str(change.memory_id) if change.memory_id else None
    caller.scope.publish("item.stored", {"item_id": str(change.item_id), "memory_id": memory_id})
    return change


@operation("GET /v1/items", "reads", absent=FOR_PROGRAMS)
async def item(caller: "OperationCaller", namespace: Namespace, key: Key) -> StoredItem:
    """Show one item. Send one `namespace` parameter for each part of the namespace.

    Example: {"namespace": ["kitchen"], "key": "tea"}
    """
    async with caller.scope.transaction() as tx:
        found = await item_store.read_item(tx, ItemAddress(namespace, key), agent_id=caller.scope.agent_id)
    return found or _refuse(namespace, key)


@operation("DELETE /v1/items", "destroys", act="delete", absent=FOR_PROGRAMS)
async def delete_item(caller: "OperationCaller", namespace: Namespace, key: Key) -> DeletedItem:
    """Permanently delete an item with the memories of its present and past texts.

    Example: {"namespace": ["kitchen"], "key": "tea"}
    """
    async with caller.scope.write() as (tx, ctx):
        deleted = await item_store.delete_item(tx, ItemAddress(namespace, key), reason="the item was deleted", ctx=ctx)
    if deleted is None:
        return _refuse(namespace, key)
    payload = {"item_id": str(deleted.item_id), "forgotten": len(deleted.memory_ids)}
    caller.scope.publish("item.deleted", payload)
    return deleted


@operation("POST /v1/items/search", "reads", absent=FOR_PROGRAMS)
async def search_items(
    caller: "OperationCaller",
    *,
    namespace: Annotated[
        Parts, Field(description="The first parts of the namespaces to search; empty for all namespaces.")
    ] = (),
    query: Annotated[
        CleanText | None,
        Field(
            description="A text: the items most similar to the text come first. Default: the last updated item first."
        ),
    ] = None,
    filter: Annotated[
        Fields | None,
        Field(
            description="The fields that an item must have: a value to equal, an object with some of the fields, or "
            "the operators $eq, $ne, $gt, $gte, $lt and $lte."
        ),
    ] = None,
    limit: Limit = 10,
    offset: Offset = 0,
) -> ItemList[StoredItem]:
    """Search the items of all namespaces that begin with `namespace`, by meaning, by fields, or both.

    Example: {"namespace": ["kitchen"], "query": "Which tea?", "filter": {"leaf": "green"}}
    """
    conditions = flatten_filter(filter or {})
    selection = ItemSelection(prefix=namespace, conditions=conditions, limit=limit, offset=offset)
    # without a vector the items are searched by words
    text = (await embed_text(query, caller.scope.embedder))[0] if query is not None else None
    async with caller.scope.transaction() as tx:
        found = await item_store.search_items(tx, text, selection, agent_id=caller.scope.agent_id)
    return ItemList(items=found)


@operation("GET /v1/items/namespaces", "reads", absent=FOR_PROGRAMS)
async def item_namespaces(
    caller: "OperationCaller",
    *,
    prefix: Annotated[Parts, Field(description="Only namespaces that begin with these parts.")] = (),
    suffix: Annotated[Parts, Field(description="Only namespaces that end with these parts.")] = (),
    max_depth: Annotated[
        int | None,
        Field(ge=1, description="Shorten each namespace to this number of parts; equal ones are listed once."),
    ] = None,
    limit: Limit = 100,
    offset: Offset = 0,
) -> ItemList[tuple[str, ...]]:
    """List the namespaces that contain items. `*` in a prefix or suffix stands for any one part.

    Example: {"prefix": ["*"], "max_depth": 1}
    """
    pattern = NamespacePattern(prefix=prefix, suffix=suffix, max_depth=max_depth, limit=limit, offset=offset)
    async with caller.scope.transaction() as tx:
        return ItemList(items=await item_store.list_namespaces(tx, pattern, agent_id=caller.scope.agent_id))


def _refuse(namespace: tuple[str, ...], key: str) -> NoReturn:
    message = f"There is no item {key!r} in the namespace {'/'.join(namespace)}."
    raise NotFoundError(message, hint="`POST /v1/items/search` lists the items of a namespace.")
