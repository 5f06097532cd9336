"""Memories that are read by their ids are found by their ids, whether or not the server has statistics."""

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from newton.db.pool import Tx
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.ids import derive_model_id
from newton.memory import store
from newton.memory.memory_reader import SQL
from tests.db.telling import says, tell
from tests.support import ANA, teller

MANY = 400
MODEL_ID = derive_model_id("seeded/1")
VECTOR = np.array([1, 0], dtype=np.float32)


async def learn(tx: Tx, number: int) -> tuple[list[UUID], list[UUID]]:
    """So many messages and a fact learnt from each; every fact contradicts the next one. Returns the ids of both."""
    ctx = teller(ANA)
    session_id = await sessions.ensure_session(tx, agent_id=ANA, ref="s", now=ctx.now)
    lines = [Message(role="user", content=f"Person {n} likes cup {n}.", said_at=ctx.now) for n in range(number)]
    await sessions.append(tx, lines, session_id=session_id, ctx=ctx)
    messages = await list_ids(tx, "exchange")
    stated = (says(f"cup {n}", subject=f"Person {n}", attribute="likes") for n in range(number))
    await tell(tx, *(replace(fact, sources=(source,)) for fact, source in zip(stated, messages, strict=True)))
    facts = await list_ids(tx, "fact")
    await store.add_links(tx, "contradicts", list(pairwise(facts)), ctx=ctx)
    return facts, messages


async def list_ids(tx: Tx, kind: str) -> list[UUID]:
    rows = await tx.fetch("select memory_id from memory.memories where kind = $1 order by memory_id", kind)
    return [row["memory_id"] for row in rows]


async def embed_all(tx: Tx) -> None:
    """Give every memory the same vector."""
    await tx.execute("insert into memory.models (model_id, identity, dimensions) values ($1, 'seeded/1', 2)", MODEL_ID)
    embedded = "select agent_id, $1, kind, memory_id, $2 from memory.memories"
    columns = "agent_id, model_id, kind, memory_id, embedding"
    await tx.execute(f"insert into memory.embeddings ({columns}) {embedded}", MODEL_ID, VECTOR)


async def read_rows(tx: Tx, ids: list[UUID], model_id: UUID | None) -> int:
    """How many rows the scans of the statement read in all."""
    query = SQL["get_memories"]
    vectors = {"model_id": model_id, "embedding": VECTOR, "text_embedding": VECTOR}
    bound = query.bind(agent_id=ANA, memory_ids=ids, moment=None, **vectors)
    rows = await tx.fetch(f"explain (analyze, format json) {query.sql}", *bound)
    return sum(scanned(node) for node in walk(json.loads(rows[0][0])[0]["Plan"]) if "Relation Name" in node)


@pytest.mark.one_server("Citus explains no statement in a transaction that wrote the models")
async def test_what_is_read_by_id_grows_only_with_the_contradictions_of_the_agent(tx: Tx) -> None:
    facts, messages = await learn(tx, MANY)
    await embed_all(tx)
    ids = [*facts[:30], *messages[:30]]
    plain, compared = await read_rows(tx, ids, None), await read_rows(tx, ids, MODEL_ID)
    assert plain < 3 * MANY
    # one vector for each memory read; the facts contradict each other in a chain, which adds one
    assert 0 < compared - plain <= len(ids) + 1


def scanned(node: dict[str, Any]) -> int:
    return round((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])


def walk(node: dict[str, Any]) -> list[dict[str, Any]]:
    return [node, *(inner for child in node.get("Plans", []) for inner in walk(child))]
