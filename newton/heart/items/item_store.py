"""Store of items (JSON values with a namespace and a key).

The text of an item is a memory. A new text supersedes it, and deleting the item deletes it.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.errors import ForbiddenError
from newton.heart.items.item_value import FilterCondition, JsonObject, NamespacePattern
from newton.heart.speakers import may_supersede
from newton.ids import derive_model_id, new_id
from newton.memory import store
from newton.memory.forgetting import forget
from newton.memory.memory import UNTRUSTED_TIERS, NewMemory, WriteContext, digest
from newton.memory.representations import make_short_forms, one_line
from newton.memory.search_types import RecallQuery
from newton.memory.store import PlannedTransition, apply_transitions
from newton.memory.vectors import read_active_model
from newton.text.time_expressions import find_mentioned_times
from newton.text.words import prepare_words

SQL = load("newton.heart.items", "item_store.sql")


class ItemAddress(NamedTuple):
    """The namespace and the key of an item, which identify it."""

    namespace: tuple[str, ...]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """An item. `memory_id` is the memory of its text; null without a text.

    `score` is that of a search with a query: the cosine similarity of the texts or, without vectors, the share of the
    query's words in the text. It is null for an item without a text.
    """

    item_id: UUID
    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    memory_id: UUID | None
    created_at: datetime
    updated_at: datetime
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ItemChange:
    """A stored item, by its id and that of the memory of its text; null if the item has no text."""

    item_id: UUID
    memory_id: UUID | None


@dataclass(frozen=True, slots=True)
class DeletedItem:
    """The id of a deleted item, and the ids of the memories that were deleted with it."""

    item_id: UUID
    memory_ids: Sequence[UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSelection:
    """A page of the items whose namespace begins with `prefix` and whose value meets the conditions."""

    prefix: tuple[str, ...] = ()
    conditions: Sequence[FilterCondition] = ()
    limit: int = 10
    offset: int = 0


async def read_item(tx: Tx, address: ItemAddress, *, agent_id: UUID) -> StoredItem | None:
    """Return an item; None if it does not exist."""
    row = await SQL["get_item"].fetch_one(tx, agent_id=agent_id, **address._asdict())
    return _to_item(row) if row else None


async def put_item(
    tx: Tx, address: ItemAddress, value: JsonObject, *, text: str | None, ctx: WriteContext
) -> ItemChange:
    """Store an item, or replace its value, and store its text as a memory that supersedes the former text.

    Without a text, the item has no current memory. An unchanged text keeps its memory, unless an untrusted writer
    stored it (it is in quarantine) and this one is trusted. Raises ForbiddenError if `ctx` may not replace it.
    """
    await _lock(tx, address, agent_id=ctx.agent_id)
    known = await read_item(tx, address, agent_id=ctx.agent_id)
    if known and not await _may_replace(tx, known, ctx=ctx):
        if known.value == value:
            return ItemChange(known.item_id, known.memory_id)
        raise ForbiddenError("The stored item is from somebody of higher trust.", hint="Give it another key.")
    item_id = known.item_id if known else new_id()
    memory_id = await _replace_text(tx, item_id, known.memory_id if known else None, text, ctx=ctx)
    fields = {"item_id": item_id, "value": json.dumps(value), "memory_id": memory_id}
    await SQL["upsert_item"].execute(tx, agent_id=ctx.agent_id, **address._asdict(), **fields, now=ctx.now)
    return ItemChange(item_id, memory_id)


async def delete_item(tx: Tx, address: ItemAddress, *, reason: str, ctx: WriteContext) -> DeletedItem | None:
    """Delete an item and the memories of its present and past texts. Return None if the item does not exist."""
    await _lock(tx, address, agent_id=ctx.agent_id)
    known = await read_item(tx, address, agent_id=ctx.agent_id)
    if known is None:
        return None
    await SQL["delete_item"].execute(tx, agent_id=ctx.agent_id, item_id=known.item_id)
    rows = await SQL["list_texts"].fetch_all(tx, agent_id=ctx.agent_id, item_id=known.item_id)
    ids = [row["memory_id"] for row in rows]
    return DeletedItem(known.item_id, await forget(tx, ids, derived=True, reason=reason, ctx=ctx) if ids else [])


async def search_items(
    tx: Tx, query: RecallQuery | None, selection: ItemSelection, *, agent_id: UUID
) -> list[StoredItem]:
    """Return a page of the items, nearest to the query first; without a query, the most recently updated first.

    If the query has no vector of the active embedding model, the items are searched by words. Items without a text
    come last.
    """
    fields = asdict(selection) | {"conditions": json.dumps([one._asdict() for one in selection.conditions])}
    if query is None:
        search, fields = SQL["search_vectors"], fields | {"model_id": None, "embedding": None}
    elif query.vector is not None and await _is_active(tx, query, agent_id=agent_id):
        search, fields = SQL["search_vectors"], fields | {"model_id": query.model_id, "embedding": query.vector}
    else:
        search, fields = SQL["search_words"], fields | {"input": prepare_words(query.text)}
    return list(map(_to_item, await search.fetch_all(tx, agent_id=agent_id, **fields)))


async def list_namespaces(tx: Tx, pattern: NamespacePattern, *, agent_id: UUID) -> list[tuple[str, ...]]:
    """Return a page of the namespaces that match a pattern, sorted by their parts."""
    rows = await SQL["list_namespaces"].fetch_all(tx, agent_id=agent_id, **asdict(pattern))
    return [tuple(row["namespace"]) for row in rows]


async def _lock(tx: Tx, address: ItemAddress, *, agent_id: UUID) -> None:
    await SQL["lock_item"].execute(tx, agent_id=agent_id, address=json.dumps([*address.namespace, address.key]))


async def _may_replace(tx: Tx, item: StoredItem, *, ctx: WriteContext) -> bool:
    """Return whether the writer may replace an item. One without a text says of nobody that they stored it."""
    if item.memory_id is None:
        return True
    row = await SQL["get_current_text"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=item.memory_id)
    return row is None or may_supersede(ctx.trust, known=row["trust"], is_confirmed=False)


async def _replace_text(
    tx: Tx, item_id: UUID, known_id: UUID | None, text: str | None, *, ctx: WriteContext
) -> UUID | None:
    """Store a new text of an item as a memory that supersedes the former one; return the id of the current memory.

    An unchanged text keeps its memory, unless that is in quarantine and the writer is trusted. Return None without a
    text.
    """
    if known_id is not None:
        row = await SQL["get_current_text"].fetch_one(tx, agent_id=ctx.agent_id, memory_id=known_id)
        assert row is not None, "an item refers to its memory"
        if row["full_text"] == text and (not row["quarantined"] or ctx.trust in UNTRUSTED_TIERS):
            return known_id
        reason = "the item has another text" if text else "the item is not indexed any more"
        step = PlannedTransition(known_id, "replaced", "ACTIVE", "SUPERSEDED", reason)
        await apply_transitions(tx, [step], ctx=ctx)
    if text is None:
        return None
    earlier = await SQL["list_texts"].fetch_all(tx, agent_id=ctx.agent_id, item_id=item_id)
    memory = _to_new_memory(item_id, text, position=earlier[-1]["position"] + 1 if earlier else 0, ctx=ctx)
    await store.remember(tx, agent_id=ctx.agent_id, memories=[memory])
    if known_id is not None:
        await store.add_links(tx, "supersedes", [(memory.memory_id, known_id)], ctx=ctx)
    return memory.memory_id


async def _is_active(tx: Tx, query: RecallQuery, *, agent_id: UUID) -> bool:
    """Return whether the query's vector is of the active embedding model, if there is one."""
    identity = await read_active_model(tx, agent_id=agent_id)
    return identity is None or derive_model_id(identity) == query.model_id


def _to_new_memory(item_id: UUID, text: str, *, position: int, ctx: WriteContext) -> NewMemory:
    return NewMemory(
        kind="item",
        forms=make_short_forms(text, count_tokens=ctx.count_tokens),
        full_text=text,
        indexed_text=text,
        embedding_text=one_line(text),
        occurred_at=ctx.now,
        ctx=ctx,
        content_hash=digest(str(item_id), str(position), text),
        thread_id=item_id,
        position=position,
        mentioned_times=find_mentioned_times(text, moment=ctx.now),
    )


def _to_item(row: Record) -> StoredItem:
    fields: dict[str, Any] = dict(row)
    fields |= {"namespace": tuple(row["namespace"]), "value": json.loads(row["value"])}
    return StoredItem(**fields)
