"""Endpoints of items, which are JSON values stored under a namespace and a key."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import Field

from newton.agent.item_inputs import ItemAddressInput, JsonFields, NamespacesInput, PutItemInput, SearchItemsInput
from newton.heart.items.item_value import render_text
from newton.operations.results import ItemList
from newton.runtime.api.auth import ReadAccess
from newton.runtime.api.base_models import ORIGIN, ResponseModel, with_example
from newton.runtime.api.idempotency import AdminAction, WriteAction, replace_body
from newton.runtime.wiring import AgentServices

router = APIRouter(prefix="/v1/items", tags=["items"])


class PutItemRequest(PutItemInput):
    """An item to store."""

    model_config = with_example(namespace=["users", "ana"], key="food", value={"text": "Ana likes pizza."})


class PutItemResponse(ResponseModel):
    """The stored item. `memory_id` is the memory with its text; null if the item is not indexed."""

    item_id: UUID
    memory_id: UUID | None
    status: Literal["new", "updated"] = Field(examples=["new"])
    created_at: datetime
    updated_at: datetime
    redacted: dict[str, int] = Field(
        default={}, description="The secrets that were removed from the value before it was stored, counted by kind."
    )
    warning: str | None = Field(
        default=None, description="A warning if the text matches a censor. The item is stored nevertheless."
    )


class ItemResponse(ResponseModel):
    """A stored item. `memory_id` is the memory with its text; null if the item is not indexed."""

    item_id: UUID
    namespace: tuple[str, ...]
    key: str
    value: JsonFields
    memory_id: UUID | None
    created_at: datetime
    updated_at: datetime


class FoundItem(ItemResponse):
    """An item found by a search, with its score."""

    score: float | None = Field(
        description="The cosine similarity of the item's text and the query or, without vectors, the share of the"
        " query's words in the text. Null without a query or a text."
    )


class SearchItemsRequest(SearchItemsInput):
    """A search for items."""

    model_config = with_example(namespace=["users", "ana"], query="What does Ana eat?", limit=5)


class SearchItemsResponse(ResponseModel):
    """A page of the found items. `missing` names the kinds of search that were unavailable, and why."""

    items: list[FoundItem]
    missing: dict[str, str]


class DeleteItemResponse(ResponseModel):
    """The id of the deleted item, and the ids of the memories deleted with it."""

    item_id: UUID
    items: list[UUID]


@router.put("", response_model=PutItemResponse)
async def put_item(body: PutItemRequest, act: WriteAction) -> Response:
    """Store an item, or replace the value of an existing item. Its text becomes a memory and supersedes the old text.

    An item whose `source` is a tool or the web is not stored if a censor blocks its text.
    """
    newton, warnings = act.caller.newton, list[str]()
    scope = newton.scope.at(ORIGIN, None if body.source == "own" else body.source)

    async def check(newton: AgentServices) -> None:
        if warning := await newton.action_gate(ORIGIN).check_write(render_text(body.value), trust=scope.trust):
            warnings.append(warning)

    async def work(newton: AgentServices, _: None) -> PutItemResponse:
        result, redacted = await newton.items(ORIGIN).put(body, trust=scope.trust)
        return PutItemResponse.from_source(result, redacted=redacted)

    response = await act.run_after(check, work)
    await newton.maintenance(ORIGIN).process_pending()
    stored = PutItemResponse.model_validate_json(bytes(response.body))
    # the warning is not stored for a repetition of the request: it is text of the user
    return replace_body(response, PutItemResponse.from_source(stored, warning=next(iter(warnings), None)))


@router.get("")
async def get_item(caller: ReadAccess, query: Annotated[ItemAddressInput, Query()]) -> ItemResponse:
    """Return one item by its key and its namespace. Send one `namespace` parameter for each part of the namespace."""
    return ItemResponse.from_source(await caller.newton.items(ORIGIN).get(query.address))


@router.delete("", response_model=DeleteItemResponse)
async def delete_item(
    query: Annotated[ItemAddressInput, Query()],
    act: AdminAction,
) -> Response:
    """Permanently delete an item with the memories of its present and past texts."""

    async def work(newton: AgentServices) -> DeleteItemResponse:
        deleted = await newton.items(ORIGIN).delete(query.address, reason="the item was deleted")
        return DeleteItemResponse(item_id=deleted.item_id, items=list(deleted.memory_ids))

    return await act.run_once(work)


@router.post("/search")
async def search_items(body: SearchItemsRequest, caller: ReadAccess) -> SearchItemsResponse:
    """Search the items of all namespaces that begin with `namespace`, by meaning, by fields, or both."""
    found = await caller.newton.items(ORIGIN).search(body)
    items = [FoundItem.from_source(item) for item in found.items]
    return SearchItemsResponse(items=items, missing={"embeddings": found.problem} if found.problem else {})


@router.get("/namespaces")
async def list_namespaces(caller: ReadAccess, query: Annotated[NamespacesInput, Query()]) -> ItemList[tuple[str, ...]]:
    """List the namespaces that contain items. `*` in a prefix or suffix stands for any one part."""
    return ItemList(items=await caller.newton.items(ORIGIN).list_namespaces(query))
