"""Items: what is stored is read back, found, superseded and forgotten."""

import json
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from newton.db.pool import Database
from newton.heart.items import item_store
from newton.heart.items.item_store import ItemAddress, ItemChange, ItemSelection, StoredItem
from newton.heart.items.item_value import JsonObject, NamespacePattern, flatten_filter
from newton.memory.forgetting import forget
from newton.memory.memory import Trust
from newton.memory.query_vectors import embed_text
from newton.memory.vectors import EmbeddingOutbox
from newton.providers.fakes import HashEmbedder
from tests.support import EXAMPLES, NOON, teller

FOOD = ItemAddress(("users", "ana"), "food")


async def put(
    db: Database,
    agent: UUID,
    text: str | None,
    address: ItemAddress = FOOD,
    *,
    minutes: int = 0,
    trust: Trust = "user",
) -> ItemChange:
    ctx = teller(agent, trust=trust, now=NOON + timedelta(minutes=minutes))
    async with db.transaction(agent) as tx:
        return await item_store.put_item(tx, address, {"text": text}, text=text, ctx=ctx)


async def read(db: Database, agent: UUID) -> StoredItem | None:
    async with db.transaction(agent) as tx:
        return await item_store.read_item(tx, FOOD, agent_id=agent)


async def memories(db: Database, agent: UUID, column: str = "state") -> list[tuple[str, Any]]:
    query = f"select full_text, {column} from memory.memories where kind = 'item' and agent_id = $1 order by memory_id"
    async with db.transaction(agent) as tx:
        return [tuple(row) for row in await tx.fetch(query, agent)]


async def test_an_item_keeps_its_id_and_a_new_text_supersedes_the_former_one(db: Database, agent: UUID) -> None:
    first = await put(db, agent, "Ana likes pizza.")
    assert await put(db, agent, "Ana likes pizza.", minutes=1) == first
    other = await put(db, agent, "Ana likes soup.", minutes=2)
    assert other.item_id == first.item_id and other.memory_id != first.memory_id
    assert await memories(db, agent) == [("Ana likes pizza.", "SUPERSEDED"), ("Ana likes soup.", "ACTIVE")]
    again = await put(db, agent, "Ana likes pizza.", minutes=3)
    assert again.memory_id not in (first.memory_id, other.memory_id)
    stored = await read(db, agent)
    assert stored and (stored.value, stored.memory_id) == ({"text": "Ana likes pizza."}, again.memory_id)
    assert (stored.created_at, stored.updated_at) == (NOON, NOON + timedelta(minutes=3))
    async with db.transaction(agent) as tx:
        links = await tx.fetch("select memory_id, other_id from memory.links where link = 'supersedes' order by 1")
    assert [tuple(row) for row in links] == [(other.memory_id, first.memory_id), (again.memory_id, other.memory_id)]
    assert (await put(db, agent, None)).memory_id is None
    assert {state for _, state in await memories(db, agent)} == {"SUPERSEDED"}


async def test_what_a_tool_stored_is_quarantined_until_a_person_stores_it(db: Database, agent: UUID) -> None:
    steps: list[tuple[Trust, int]] = [("tool", 1), ("tool", 1), ("user", 2), ("web", 2)]
    for trust, texts in steps:
        await put(db, agent, "Ana likes pizza.", trust=trust)
        assert [one for _, one in await memories(db, agent, "quarantined")] == [True, False][:texts]


async def test_a_deleted_item_leaves_no_text(db: Database, agent: UUID) -> None:
    await put(db, agent, "Ana likes pizza.")
    await put(db, agent, "Ana likes soup.")
    await put(db, agent, "Ana plays the cello.", ItemAddress(("users", "ana"), "music"))
    async with db.transaction(agent) as tx:
        deleted = await item_store.delete_item(tx, FOOD, reason="asked for", ctx=teller(agent))
        assert deleted and len(deleted.memory_ids) == 2
        assert await item_store.delete_item(tx, FOOD, reason="again", ctx=teller(agent)) is None
        assert await tx.fetchval("select count(*) from memory.forgotten where kind = 'item'") == 2
    assert await memories(db, agent) == [("Ana plays the cello.", "ACTIVE")] and await read(db, agent) is None


async def test_forgetting_the_memory_of_an_item_deletes_the_item(db: Database, agent: UUID) -> None:
    stored = await put(db, agent, "Ana likes pizza.")
    assert stored.memory_id
    async with db.transaction(agent) as tx:
        await forget(tx, [stored.memory_id], derived=False, reason="asked for", ctx=teller(agent))
        assert await tx.fetchval("select count(*) from heart.items") == 0


class OtherEmbedder(HashEmbedder):
    """An embedding model that is not the active one."""

    identity = "another model"


@pytest.mark.parametrize("embedder", [HashEmbedder(), None, OtherEmbedder()], ids=["vectors", "words", "other model"])
async def test_a_search_finds_the_nearest_first_and_items_without_a_text_last(
    db: Database, agent: UUID, embedder: HashEmbedder | None
) -> None:
    for minutes, text in enumerate(("Ana likes pizza.", "Ana plays the cello.", None)):
        await put(db, agent, text, ItemAddress(("users", "ana"), str(minutes)), minutes=minutes)
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    query, _ = await embed_text("likes pizza", embedder)
    async with db.transaction(agent) as tx:
        found = await item_store.search_items(tx, query, ItemSelection(), agent_id=agent)
        page = await item_store.search_items(tx, None, ItemSelection(limit=2, offset=1), agent_id=agent)
    assert [item.key for item in found] == ["0", "1", "2"] and [item.key for item in page] == ["1", "0"]
    first, second, last = (item.score for item in found)
    assert first and second is not None and first > second and last is None
    # words are counted, so that the share of those in the text is exact
    assert (first == 1) == (not embedder or embedder.identity == "another model")


PARTS = ("a", "b", "*", "ä")


def matches(path: Sequence[str], parts: Sequence[str]) -> bool:
    return len(path) <= len(parts) and all(p in ("*", n) for p, n in zip(path, parts, strict=False))


async def test_namespaces_match_prefixes_suffixes_and_depths_as_a_list_of_tuples_does(
    db: Database, agent: UUID
) -> None:
    draw, ctx = random.Random(5), teller(agent)
    async with db.transaction(agent) as tx:
        stored = {tuple(draw.choices(PARTS, k=draw.randint(1, 4))) for _ in range(40)}
        for namespace in stored:
            await item_store.put_item(tx, ItemAddress(namespace, "k"), {}, text=None, ctx=ctx)
        for _ in range(10 * EXAMPLES):
            prefix, suffix = (tuple(draw.choices(PARTS, k=draw.choice((0, 1, 1, 2, 3)))) for _ in range(2))
            depth = draw.choice((None, 1, 2, 3, 9))
            pattern = NamespacePattern(prefix=prefix, suffix=suffix, max_depth=depth)
            every = await item_store.list_namespaces(tx, pattern, agent_id=agent)
            expected = {n[:depth] for n in stored if matches(prefix, n) and matches(suffix[::-1], n[::-1])}
            assert every == sorted(expected), pattern
            page = await item_store.list_namespaces(tx, replace(pattern, limit=3, offset=2), agent_id=agent)
            assert page == every[2:5]
            below = ItemSelection(prefix=prefix, limit=1_000)
            found = await item_store.search_items(tx, None, below, agent_id=agent)
            assert {item.namespace for item in found} == {n for n in stored if n[: len(prefix)] == prefix}


LEAVES = (None, True, 0, 1, 2.5, -3, "", "a", "b", "10")
TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def some_value(draw: random.Random, depth: int = 2) -> Any:
    match draw.randint(0, 5 if depth else 0):
        case 4:
            return {name: some_value(draw, depth - 1) for name in draw.sample("xyz", draw.randint(0, 2))}
        case 5:
            return [some_value(draw, depth - 1) for _ in range(draw.randint(0, 2))]
        case _:
            return draw.choice(LEAVES)


def some_filter(draw: random.Random, depth: int = 2) -> Any:
    if draw.random() < 0.4:
        return {name: some_value(draw, 1) for name in draw.sample(list(TESTS), draw.randint(1, 2))}
    match draw.randint(0, 3 if depth else 0):
        case 2:
            return {name: some_filter(draw, depth - 1) for name in draw.sample("xyz", draw.randint(0, 2))}
        case 3:
            return [some_value(draw, depth - 1) for _ in range(draw.randint(0, 2))]
        case _:
            return draw.choice(LEAVES)


def typed(value: object) -> object:
    """The value, in which true is not 1, as in JSON."""
    if isinstance(value, dict):
        return {name: typed(one) for name, one in cast("JsonObject", value).items()}
    if isinstance(value, list):
        return [typed(one) for one in cast("list[object]", value)]
    return ("boolean", value) if isinstance(value, bool) else value


def is_met(value: object, wanted: object) -> bool:
    """The meaning of a filter, written as a recursion."""
    if isinstance(wanted, dict):
        fields = cast("JsonObject", wanted).items()
        if any(name.startswith("$") for name, _ in fields):
            return all(is_compared(value, name, operand) for name, operand in fields)
        return isinstance(value, dict) and all(is_met(cast("JsonObject", value).get(name), one) for name, one in fields)
    return typed(value) == typed(wanted)


def is_compared(value: object, name: str, operand: object) -> bool:
    if name in ("$eq", "$ne"):
        return TESTS[name](typed(value), typed(operand))
    numbers = [isinstance(one, int | float) and not isinstance(one, bool) for one in (value, operand)]
    texts = [isinstance(one, str) for one in (value, operand)]
    return (all(numbers) or all(texts)) and TESTS[name](value, operand)


async def test_a_filter_selects_the_values_that_its_meaning_as_a_recursion_selects(db: Database, agent: UUID) -> None:
    draw, ctx = random.Random(7), teller(agent)
    values = {str(n): {name: some_value(draw) for name in draw.sample("xyz", draw.randint(0, 3))} for n in range(80)}
    hits = 0
    async with db.transaction(agent) as tx:
        for key, value in values.items():
            await item_store.put_item(tx, ItemAddress(("n",), key), value, text=None, ctx=ctx)
        for _ in range(20 * EXAMPLES):
            fields = {name: some_filter(draw) for name in draw.sample("xyz", draw.randint(1, 2))}
            selection = ItemSelection(conditions=flatten_filter(fields), limit=1_000)
            found = {item.key for item in await item_store.search_items(tx, None, selection, agent_id=agent)}
            assert found == {key for key, value in values.items() if is_met(value, fields)}, json.dumps(fields)
            hits += bool(found)
    assert hits > 3 * EXAMPLES, "most filters select nothing"
