"""Memories of a time, and what is read by id."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from newton.db.pool import Tx
from newton.dialogue import sessions
from newton.dialogue.messages import Message
from newton.heart.facts import fact_store
from newton.heart.facts.fact_store import NewFact
from newton.ids import derive_model_id
from newton.memory import memory_reader, store
from newton.memory.memory_reader import SQL
from newton.text.time_expressions import find_time_ranges
from tests.db.telling import says, tell
from tests.support import ANA, ground, teller

MAY = datetime(2023, 5, 8, 10, tzinfo=UTC)
LATER = datetime(2023, 9, 1, tzinfo=UTC)
SAID = (
    (MAY, "I went to the doctor yesterday."),
    (MAY, "We moved in March, and 2021 was quiet: nobody came in 2022."),
    (MAY + timedelta(days=1), "It was a fine day."),
    (MAY + timedelta(days=30), "Last month we sailed, and this month we row."),
)


async def lived(tx: Tx) -> dict[UUID, str]:
    ctx = teller(now=LATER)
    for number, (at, words) in enumerate(SAID):
        session_id = await sessions.ensure_session(tx, agent_id=ANA, ref=f"s{number}", now=at)
        line = Message(role="user", content=words, said_at=at)
        await sessions.append(tx, [line], session_id=session_id, ctx=ctx)
    told = NewFact(ref="f1", content="Ana moved to Oslo last Monday", valid_from=MAY + timedelta(days=2))
    await fact_store.add_facts(tx, [told], ctx=ground(ctx))
    rows = await tx.fetch("select memory_id, summary from memory.memories where agent_id = $1", ANA)
    return {row["memory_id"]: row["summary"] for row in rows}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("on 7 May 2023", ["doctor"]),
        ("on 8 May 2023", ["doctor", "moved in March", "moved to Oslo"]),
        ("on 9 May 2023", ["fine day"]),
        ("on 10 May 2023", []),  # the fact was told then, and tells of another day
        ("in May 2023", ["doctor", "moved in March", "fine day", "sailed", "moved to Oslo"]),
        ("in March 2023", ["moved in March"]),
        ("on 3 March 2023", []),  # a month is of no day
        ("in 2022", ["moved in March"]),
        ("before 2023", ["moved in March"]),
        ("since June 2023", ["sailed"]),
        ("on 9 May 2023 or in March 2023", ["fine day", "moved in March"]),
        ("next year", []),
    ],
)
async def test_what_is_of_a_time(tx: Tx, asked: str, found: list[str]) -> None:
    # S001-12
    said = await lived(tx)
    times = find_time_ranges(asked, now=LATER)
    kinds = ["exchange", "fact"]
    spread = {
        "agent_id": ANA,
        "kinds": kinds,
        "limits": [9, 9],
        "quarantined": [],
        "past_states": [],
        "excluded_ids": [],
        "shown_ids": [],
    }
    told = await memory_reader.find_in_range(tx, times, spread)
    assert {next(words for words in found if words in said[one]) for one in told} == set(found)
    assert await memory_reader.filter_in_range(tx, list(said), times, agent_id=ANA) == told.keys()
    without = await memory_reader.find_in_range(tx, times, {**spread, "excluded_ids": list(told)})
    assert without == {}


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
