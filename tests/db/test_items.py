"""Items: what is stored is read back, found, superseded and forgotten, for one agent and nobody else."""

import json
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from newton.agent.item_inputs import NamespacesInput, PutItemInput, SearchItemsInput
from newton.agent.services.items import ItemService
from newton.clock import ManualClock
from newton.db.pool import Database
from newton.errors import NotFoundError
from newton.heart.items import item_store
from newton.heart.items.item_filter import NamespacePattern, flatten_filter
from newton.heart.items.item_store import ItemAddress, ItemSelection
from newton.heart.items.item_value import JsonObject
from newton.memory import agents
from newton.memory.forgetting import forget
from newton.memory.memory import Trust
from newton.memory.outbox import EmbeddingOutbox
from newton.providers.fakes import HashEmbedder
from tests.support import EXAMPLES, NOON, agent_scope, teller

FOOD = ItemAddress(("users", "ana"), "food")


def service(db: Database, agent: UUID, *, minutes: int = 0, embedder: HashEmbedder | None = None) -> ItemService:
    clock = ManualClock(NOON + timedelta(minutes=minutes))
    return ItemService(scope=agent_scope(agent_id=agent, db=db, clock=clock, embedder=embedder))


def an_item(text: str, key: str = "food", **fields: Any) -> PutItemInput:
    return PutItemInput(namespace=("users", "ana"), key=key, value={"text": text}, **fields)


async def memories(db: Database, agent: UUID) -> list[tuple[str, str]]:
    async with db.transaction(agent) as tx:
        rows = await tx.fetch(
            "select full_text, state from memory.memories where kind = 'item' and agent_id = $1 order by memory_id",
            agent,
        )
    return [tuple(row) for row in rows]


async def test_an_item_keeps_its_id_and_a_new_text_supersedes_the_former_one(db: Database, agent: UUID) -> None:
    first, _ = await service(db, agent).put(an_item("Ana likes pizza."))
    same, _ = await service(db, agent, minutes=1).put(an_item("Ana likes pizza."))
    assert (first.status, same.status) == ("new", "updated")
    assert (same.item_id, same.memory_id, same.created_at) == (first.item_id, first.memory_id, first.created_at)
    assert same.updated_at == first.updated_at + timedelta(minutes=1)
    other, _ = await service(db, agent, minutes=2).put(an_item("Ana likes soup."))
    assert other.item_id == first.item_id and other.memory_id != first.memory_id
    assert await memories(db, agent) == [("Ana likes pizza.", "SUPERSEDED"), ("Ana likes soup.", "ACTIVE")]
    again, _ = await service(db, agent, minutes=3).put(an_item("Ana likes pizza."))
    assert again.memory_id not in (first.memory_id, other.memory_id)
    stored = await service(db, agent).get(FOOD)
    assert (stored.value, stored.memory_id) == ({"text": "Ana likes pizza."}, again.memory_id)
    async with db.transaction(agent) as tx:
        links = await tx.fetch("select memory_id, other_id from memory.links where link = 'supersedes' order by 1")
    assert [tuple(row) for row in links] == [(other.memory_id, first.memory_id), (again.memory_id, other.memory_id)]


async def test_an_item_that_is_not_indexed_has_no_memory(db: Database, agent: UUID) -> None:
    hidden, _ = await service(db, agent).put(an_item("Ana likes pizza.", index=False))
    assert hidden.memory_id is None and await memories(db, agent) == []
    await service(db, agent).put(an_item("Ana likes pizza."))
    last, _ = await service(db, agent).put(an_item("Ana likes pizza.", index=()))
    assert last.memory_id is None and await memories(db, agent) == [("Ana likes pizza.", "SUPERSEDED")]


async def test_what_a_tool_stores_is_quarantined_until_a_person_stores_it(db: Database, agent: UUID) -> None:
    steps: list[tuple[Trust, int]] = [("tool", 1), ("tool", 1), ("user", 2), ("web", 2)]
    for trust, texts in steps:
        await service(db, agent).put(an_item("Ana likes pizza."), trust=trust)
        async with db.transaction(agent) as tx:
            rows = await tx.fetch("select quarantined from memory.memories where kind = 'item' order by memory_id")
        assert [row[0] for row in rows] == [True, False][:texts]


async def test_a_deleted_item_leaves_no_text(db: Database, agent: UUID) -> None:
    for text in ("Ana likes pizza.", "Ana likes soup."):
        await service(db, agent).put(an_item(text))
    await service(db, agent).put(an_item("Ana plays the cello.", "music"))
    deleted = await service(db, agent).delete(FOOD, reason="asked for")
    assert len(deleted.memory_ids) == 2 and await memories(db, agent) == [("Ana plays the cello.", "ACTIVE")]
    for missing in (service(db, agent).get(FOOD), service(db, agent).delete(FOOD, reason="again")):
        with pytest.raises(NotFoundError, match="'food' in the namespace users/ana"):
            await missing
    async with db.transaction(agent) as tx:
        assert await tx.fetchval("select count(*) from memory.forgotten where kind = 'item'") == 2


async def test_forgetting_the_memory_of_an_item_deletes_the_item(db: Database, agent: UUID) -> None:
    stored, _ = await service(db, agent).put(an_item("Ana likes pizza."))
    assert stored.memory_id
    async with db.transaction(agent) as tx:
        await forget(tx, [stored.memory_id], derived=False, reason="asked for", ctx=teller(agent))
        assert await tx.fetchval("select count(*) from heart.items") == 0


async def test_nobody_else_reads_finds_or_deletes_an_item(db: Database, agent: UUID) -> None:
    other_agent = await agents.get_or_create_agent(db, "ben", now=NOON)
    await service(db, agent).put(an_item("Ana likes pizza."))
    theirs = service(db, other_agent, embedder=HashEmbedder())
    await EmbeddingOutbox(db, HashEmbedder(), agent).drain()
    assert (await theirs.search(SearchItemsInput())).items == []
    assert (await theirs.search(SearchItemsInput(query="pizza"))).items == []
    assert await theirs.list_namespaces(NamespacesInput()) == []
    with pytest.raises(NotFoundError):
        await theirs.delete(FOOD, reason="asked for")
    await theirs.put(an_item("Ben likes soup."))
    assert (await service(db, agent).get(FOOD)).value == {"text": "Ana likes pizza."}
    async with db.transaction(other_agent) as tx:
        assert await tx.fetchval("select count(*) from heart.items") == 1


async def test_a_search_finds_the_nearest_first_and_items_without_a_text_last(db: Database, agent: UUID) -> None:
    embedder = HashEmbedder()
    for n, (key, text) in enumerate({"food": "Ana likes pizza.", "music": "Ana plays the cello."}.items()):
        await service(db, agent, minutes=n).put(an_item(text, key))
    await service(db, agent, minutes=9).put(an_item("pizza", "hidden", index=False))
    await EmbeddingOutbox(db, embedder, agent).drain()
    for chosen in (embedder, None):
        found = await service(db, agent, embedder=chosen).search(SearchItemsInput(query="likes pizza"))
        assert [item.key for item in found.items] == ["food", "music", "hidden"]
        scores = [item.score for item in found.items]
        assert scores[0] and scores[1] is not None and scores[0] > scores[1] and scores[2] is None
        assert (found.problem is None) == (chosen is not None)
    listed = await service(db, agent).search(SearchItemsInput(limit=2, offset=1))
    assert [item.key for item in listed.items] == ["music", "food"] and listed.problem is None
    wrong = replace(service(db, agent).scope, embedder=OtherEmbedder())
    found = await ItemService(scope=wrong).search(SearchItemsInput(query="cello"))
    assert found.problem == f"the active embedding model is {embedder.identity}" and found.items[0].key == "music"


class OtherEmbedder(HashEmbedder):
    """An embedding model that is not the active one."""

    identity = "another model"


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
            every = await item_store.list_namespaces(tx, pattern, limit=1_000, offset=0, agent_id=agent)
            expected = {n[:depth] for n in stored if matches(prefix, n) and matches(suffix[::-1], n[::-1])}
            assert every == sorted(expected), pattern
            page = await item_store.list_namespaces(tx, pattern, limit=3, offset=2, agent_id=agent)
            assert page == every[2:5]
            below = ItemSelection(prefix=prefix, limit=1_000)
            found = await item_store.list_items(tx, below, agent_id=agent)
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
            return [some_filter(draw, depth - 1) for _ in range(draw.randint(0, 2))]
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
    if isinstance(wanted, list):
        elements, others = cast("list[object]", wanted), cast("list[object]", value)
        fits = isinstance(value, list) and len(others) == len(elements)
        return fits and all(map(is_met, others, elements))
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
            found = {item.key for item in await item_store.list_items(tx, selection, agent_id=agent)}
            assert found == {key for key, value in values.items() if is_met(value, fields)}, json.dumps(fields)
            hits += bool(found)
    assert hits > 3 * EXAMPLES, "most filters select nothing"
