"""Items: JSON values that programs store under a namespace and a key, and whose text can be searched."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from newton.agent.item_inputs import NamespacesInput, PutItemInput, SearchItemsInput
from newton.agent.scope import AgentScope
from newton.errors import NotFoundError
from newton.heart.items import item_store
from newton.heart.items.item_filter import NamespacePattern, flatten_filter
from newton.heart.items.item_store import ItemAddress, ItemSelection, PutResult, StoredItem
from newton.memory.hygiene import clean_text
from newton.memory.memory import Trust
from newton.memory.query_vectors import embed_text
from newton.memory.redaction.tally import Redactions, count_redactions


class ItemSearchResult(NamedTuple):
    """The items found. `problem` is why they could not be searched by meaning, or None."""

    items: Sequence[StoredItem]
    problem: str | None = None


class DeletedItem(NamedTuple):
    """The id of a deleted item, and the ids of the memories that were deleted with it."""

    item_id: UUID
    memory_ids: Sequence[UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemService:
    """The items of one agent."""

    scope: AgentScope

    async def put(self, item: PutItemInput, *, trust: Trust | None = None) -> tuple[PutResult, Redactions]:
        """Store or replace an item; return the result, and the secrets removed from it, counted by kind."""
        await self.scope.reserve_storage(json.dumps(item.value))
        async with self.scope.write(trust) as (tx, ctx):
            result = await item_store.put_item(tx, item.address, item.value, text=item.text, ctx=ctx)
            memory_id = str(result.memory_id) if result.memory_id else None
            payload = {"item_id": str(result.item_id), "memory_id": memory_id, "status": result.status}
            self.scope.publish("item.stored", payload)
            return result, count_redactions(json.dumps(item.value), item.text or "")

    async def get(self, address: ItemAddress) -> StoredItem:
        """Return an item. Raises NotFoundError."""
        async with self.scope.transaction() as tx:
            item = await item_store.read_item(tx, address, agent_id=self.scope.agent_id)
        if item is None:
            raise _not_found_error(address)
        return item

    async def delete(self, address: ItemAddress, *, reason: str) -> DeletedItem:
        """Permanently delete an item, with the memories of its current and earlier texts. Raises NotFoundError."""
        async with self.scope.write() as (tx, ctx):
            deleted = await item_store.delete_item(tx, address, reason=clean_text(reason, what="reason"), ctx=ctx)
            if deleted is None:
                raise _not_found_error(address)
            item_id, memory_ids = deleted
            self.scope.publish("item.deleted", {"item_id": str(item_id), "forgotten": len(memory_ids)})
            return DeletedItem(item_id, memory_ids)

    async def search(self, search: SearchItemsInput) -> ItemSearchResult:
        """Return a page of the items that match; with a query, the most similar first.

        Raises InputError for a bad filter.
        """
        selection = ItemSelection(
            prefix=search.namespace,
            conditions=flatten_filter(search.filter),
            limit=search.limit,
            offset=search.offset,
        )
        agent_id = self.scope.agent_id
        if search.query is None:
            async with self.scope.transaction() as tx:
                return ItemSearchResult(await item_store.list_items(tx, selection, agent_id=agent_id))
        query, missing = await embed_text(search.query, self.scope.embedder)
        async with self.scope.transaction() as tx:
            items, other_model = await item_store.search_items(tx, query, selection, agent_id=agent_id)
        problem = f"the active embedding model is {other_model}" if other_model else missing.get("embeddings")
        return ItemSearchResult(items, problem)

    async def list_namespaces(self, listing: NamespacesInput) -> list[tuple[str, ...]]:
        """Return a page of the namespaces that contain items, sorted by their parts."""
        pattern = NamespacePattern(prefix=listing.prefix, suffix=listing.suffix, max_depth=listing.max_depth)
        async with self.scope.transaction() as tx:
            return await item_store.list_namespaces(
                tx, pattern, limit=listing.limit, offset=listing.offset, agent_id=self.scope.agent_id
            )


def _not_found_error(address: ItemAddress) -> NotFoundError:
    where = "/".join(address.namespace)
    hint = "`newton items list` lists the items."
    return NotFoundError(f"There is no item {address.key!r} in the namespace {where}.", hint=hint)
