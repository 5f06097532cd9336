"""Store of items (JSON values with a namespace and a key).

The text of an item is a memory. A new text supersedes it, and deleting the item deletes it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from asyncpg import Record

from newton.db.pool import Tx
from newton.db.queries import load
from newton.heart.items.item_filter import FilterCondition, NamespacePattern
from newton.heart.items.item_value import JsonObject
from newton.ids import derive_model_id, new_id
from newton.languages.search_words import prepare_words
from newton.memory import store
from newton.memory.forgetting import forget
from newton.memory.memory import NewMemory, WriteContext, digest
from newton.memory.quarantine import UNTRUSTED_TIERS
from newton.memory.reembedding import read_active_model
from newton.memory.representations import make_short_forms, one_line
from newton.memory.search_types import RecallQuery
from newton.memory.times.time_expressions import find_mentioned_times
from newton.memory.transitions import PlannedTransition, apply_transitions

SQL = load("newton.heart.items", "item_store.sql")

ItemStatus = Literal["new", "updated"]


class ItemAddress(NamedTuple):
    """The namespace and the key of an item, which identify it."""

    namespace: tuple[str, ...]
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """An item. `memory_id` is the memory of its text, or None if it has no text. `score` is set only by a search."""

    item_id: UUID
    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any]
    memory_id: UUID | None
    created_at: datetime
    updated_at: datetime
    score: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PutResult:
    """The result of storing an item: its id, the id of the memory of its text, and whether the item is new."""

    item_id: UUID
    memory_id: UUID | None
    status: ItemStatus
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSelection:
    """A page of the items whose namespace begins with `prefix` and whose value meets the conditions."""

    prefix: tuple[str, ...] = ()
    conditions: Sequence[FilterCondition] = ()
    limit: int = 10
    offset: int = 0

    @property
    def query_arguments(self) -> dict[str, object]:
        """The arguments that all queries for items share."""
        conditions = json.dumps([condition._asdict() for condition in self.conditions])
        return {"prefix": self.prefix, "conditions": conditions, "max_rows": self.limit, "skipped": self.offset}


async def read_item(tx: Tx, address: ItemAddress, *, agent_id: UUID) -> StoredItem | None:
    """Return an item; None if it does not exist."""
    row = await SQL["get_item"].fetch_one(tx, agent_id=agent_id, **address._asdict())
    return _to_item(row) if row else None


async def put_item(
    tx: Tx, address: ItemAddress, value: JsonObject, *, text: str | None, ctx: WriteContext
) -> PutResult:
    """Store an item, or replace its value, and store its text as a memory that supersedes the former text.

    Without a text, the item has no current memory. An unchanged text keeps its memory, unless that is in quarantine and
    the writer is trusted.
    """
    await _lock(tx, address, agent_id=ctx.agent_id)
    known = await read_item(tx, address, agent_id=ctx.agent_id)
    item_id = known.item_id if known else new_id()
    memory_id = await _replace_text(tx, item_id, known.memory_id if known else None, text, ctx=ctx)
    row = await SQL["upsert_item"].fetch_one(
        tx,
        agent_id=ctx.agent_id,
        item_id=item_id,
        **address._asdict(),
        value=json.dumps(value),
        memory_id=memory_id,
        now=ctx.now,
    )
    assert row is not None, "an insert that returns a row"
    return PutResult(
        item_id=item_id,
        memory_id=memory_id,
        status="updated" if known else "new",
        created_at=row["created_at"],
        updated_at=ctx.now,
    )


async def delete_item(
    tx: Tx, address: ItemAddress, *, reason: str, ctx: WriteContext
) -> tuple[UUID, list[UUID]] | None:
    """Delete an item and the memories of its present and past texts.

    Return the id of the item and those of all deleted memories; None if the item does not exist.
    """
    await _lock(tx, address, agent_id=ctx.agent_id)
    known = await read_item(tx, address, agent_id=ctx.agent_id)
    if known is None:
        return None
    await SQL["delete_item"].execute(tx, agent_id=ctx.agent_id, item_id=known.item_id)
    rows = await SQL["list_texts"].fetch_all(tx, agent_id=ctx.agent_id, item_id=known.item_id)
    ids = [row["memory_id"] for row in rows]
    return known.item_id, await forget(tx, ids, derived=True, reason=reason, ctx=ctx) if ids else []


async def list_items(tx: Tx, selection: ItemSelection, *, agent_id: UUID) -> list[StoredItem]:
    """Return a page of the items, the most recently updated first."""
    rows = await SQL["list_items"].fetch_all(tx, agent_id=agent_id, **selection.query_arguments)
    return list(map(_to_item, rows))


async def search_items(
    tx: Tx, query: RecallQuery, selection: ItemSelection, *, agent_id: UUID
) -> tuple[list[StoredItem], str | None]:
    """Return a page of the items, nearest to the query first, and None.

    If the query's vector is not of the active embedding model, that model is returned instead of None, and the items
    are searched by words, as for a query without a vector. Items without a text come last.
    """
    other_model = await _find_other_model(tx, query, agent_id=agent_id)
    if query.vector is not None and other_model is None:
        vector = {"model_id": query.model_id, "embedding": query.vector}
        rows = await SQL["search_vectors"].fetch_all(tx, agent_id=agent_id, **selection.query_arguments, **vector)
    else:
        rows = await SQL["search_words"].fetch_all(
            tx, agent_id=agent_id, **selection.query_arguments, input=prepare_words(query.text)
        )
    return list(map(_to_item, rows)), other_model


async def list_namespaces(
    tx: Tx, pattern: NamespacePattern, *, limit: int, offset: int, agent_id: UUID
) -> list[tuple[str, ...]]:
    """Return a page of the namespaces that match a pattern, sorted by their parts."""
    rows = await SQL["list_namespaces"].fetch_all(
        tx,
        agent_id=agent_id,
        prefix=pattern.prefix,
        suffix=pattern.suffix,
        max_depth=pattern.max_depth,
        max_rows=limit,
        skipped=offset,
    )
    return [tuple(row["namespace"]) for row in rows]


async def _lock(tx: Tx, address: ItemAddress, *, agent_id: UUID) -> None:
    await SQL["lock_item"].execute(tx, agent_id=agent_id, address=json.dumps([*address.namespace, address.key]))


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


async def _find_other_model(tx: Tx, query: RecallQuery, *, agent_id: UUID) -> str | None:
    """Return the identity of the active embedding model if the query's vector is of another model; otherwise None."""
    identity = await read_active_model(tx, agent_id=agent_id) if query.vector is not None else None
    return identity if identity is not None and derive_model_id(identity) != query.model_id else None


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
